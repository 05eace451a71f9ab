"""The functions that serve a communicator's methods: one table, by the method's name.

The functions become attributes of the object.  Python finds these before the methods of the class,
so a call goes directly to the function that serves it.  A function of the table is

- a method in C (`Calls`), which executes a plan or calls the library;
- mpi4py's own method, where no plan may serve;
- one of these or the class's method, which `recording` or `checking` wrapped.

The methods of `Comm` do the same in Python, through `call`.  C calls `call`, too, for what C cannot
serve, or cannot serve yet.  Methods that a user's subclass overrides are at most wrapped.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any

from mpi4py import MPI

from collwise.comm.recording import OBJECTS, Way
from collwise.measure.race import method_name
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.progress import advance
from collwise.mpi.runtime.world import library_line
from collwise.profiles.records import FORMS
from collwise.schedule.collectives import COLLECTIVES

METHODS = [method for collective in COLLECTIVES.values() for method in collective.methods]
NAMES: Mapping[tuple[Way, str], str] = {
    (form, method): method_name(method, form) for form in FORMS for method in METHODS
}
"""mpi4py's name of each form of each method."""
_SIGNATURES: dict[str, Signature] = {}
"""The signature of each form, by mpi4py's name; the first parameter is the communicator."""
_DEFAULTS: dict[str, tuple[int, tuple[Any, ...]]] = {}
"""The fewest arguments of each form, and the defaults of its parameters after the first."""
_OURS: dict[str, Any] = {}
"""The methods of the class `Comm`, by name, to recognize those that a subclass overrides."""


def served_methods(comm: Any) -> dict[str, Callable[..., Any]]:
    """The table of functions for `comm`, not yet wrapped to count or to check calls."""
    table: dict[str, Callable[..., Any]] = {}
    in_c: dict[str, Any] = {}
    if COMPILED is not None:
        # Python counts the starts of requests.
        ways = FORMS if comm._served and comm._record is None else FORMS[:1]
        in_c = {way: comm._dispatch.calls_in_c(way, comm, partial(call, comm, way)) for way in ways}
    for (way, method), name in NAMES.items():
        if way in in_c and (way == "blocking" or method in comm._served):
            table[name] = getattr(in_c[way], method.lower())
        elif way == "nonblocking" and method not in comm._served:
            table[name] = getattr(MPI.Intracomm, name).__get__(comm)
    for name, method in OBJECTS.items():
        if method not in comm._served:
            table[name] = getattr(MPI.Intracomm, name).__get__(comm)
    return {name: f for name, f in table.items() if getattr(type(comm), name) is _OURS[name]}


def call(
    comm: Any, way: Way, method: str, fast_key: bytes | None, *positional: Any, **named: Any
) -> Any:
    """Serve a call in Python.   way: the form.   method: the blocking method's name.

    fast_key: the key under which C remembers how to serve the call; None if C cannot.
    """
    advance()
    name = NAMES[way, method]
    fewest, defaults = _DEFAULTS[name]
    arguments = positional + defaults[len(positional) :]
    if named or not fewest <= len(positional) <= len(defaults):
        bound = _SIGNATURES[name].bind(comm, *positional, **named)  # binding takes microseconds
        bound.apply_defaults()
        arguments = bound.args[1:]
    library = partial(getattr(MPI.Intracomm, name), comm, *arguments)
    try:
        if method not in comm._served:
            return library()
        return comm._dispatch.call(way, method, library, arguments, fast_key)
    except NotImplementedError as problem:
        if problem.args:
            raise
        raise NotImplementedError(  # mpi4py says nothing
            f"{name}: {library_line()} has no persistent collectives, and no plan serves this call;"
            f" start {method_name(method, 'nonblocking')} each time, or run `collwise tune`"
        ) from None


def add_request_forms(owner: type[Any]) -> None:
    """Give a class its blocking methods' non-blocking and persistent forms; note all signatures."""
    for (way, method), name in NAMES.items():
        form = signature(getattr(owner, method))
        if way == "persistent":
            info = Parameter("info", Parameter.POSITIONAL_OR_KEYWORD, default=MPI.INFO_NULL)
            form = form.replace(parameters=[*form.parameters.values(), info])
        _SIGNATURES[name] = form
        defaults = tuple(known.default for known in [*form.parameters.values()][1:])
        _DEFAULTS[name] = sum(one is Parameter.empty for one in defaults), defaults
        if way != "blocking":
            setattr(owner, name, _request_form(way, method, name))
    _OURS.update((name, getattr(owner, name)) for name in (*NAMES.values(), *OBJECTS))


def _request_form(way: Way, method: str, name: str) -> Callable[..., Any]:
    def make(comm: Any, *positional: Any, **named: Any) -> Any:
        return call(comm, way, method, None, *positional, **named)

    make.__name__, make.__qualname__ = name, f"Comm.{name}"
    make.__doc__ = _DOCSTRINGS[way].format(method)
    make.__signature__ = _SIGNATURES[name]  # type: ignore[attr-defined]
    return make


_DOCSTRINGS: Mapping[Way, str] = {
    "nonblocking": """Start a {0}, to which the buffers belong until `Wait`.

        Collective, in the same order on all ranks; errors are those of `{0}`.  A user's `op`
        must not be freed before the request has completed.
        Returns an `MPI.Request` if the library serves the call, or if the library calls collwise
        when it makes progress (MPICH from 4.2).  Otherwise the request has the same methods but
        `Cancel`, which MPI forbids here, and lists of requests need `collwise.waitall`.
        """,
    "persistent": """Make a persistent {0}: `Start`, `Wait`, and at the end `Free`.

        Collective, in the same order on all ranks; errors are those of `{0}`.  A user's `op`
        must not be freed before the request.  For lists of requests use `collwise.startall` and
        `collwise.waitall`.
        """,
}
