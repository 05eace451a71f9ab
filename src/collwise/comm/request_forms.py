"""METHOD_init and IMETHOD of a communicator: they return requests of ours, or the library's.

Where no plan may serve, a communicator has mpi4py's own methods.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from inspect import Parameter, signature
from typing import Any

from mpi4py import MPI

from collwise.comm.dispatch import Dispatch
from collwise.comm.recording import OBJECTS, Way
from collwise.mpi.engine.loading import COMPILED
from collwise.schedule.collectives import COLLECTIVES

_METHODS = [method for collective in COLLECTIVES.values() for method in collective.methods]
_NONBLOCKING = {f"I{method[0].lower()}{method[1:]}": method for method in _METHODS}
_PERSISTENT = {f"{method}_init": method for method in _METHODS}
_WAYS: Mapping[Way, Mapping[str, str]] = {
    "nonblocking": _NONBLOCKING,
    "persistent": _PERSISTENT,
}
_SERVING: dict[tuple[Way, str], Callable[..., Any]] = {}
_FORMS = _NONBLOCKING | _PERSISTENT | dict.fromkeys(OBJECTS, "Allgather") | {"bcast": "Bcast"}
"""By name, the method that plans must be able to serve; otherwise mpi4py's own takes its place."""


def librarys_methods(comm: Any, ours: type[Any], served: Collection[str]) -> dict[str, Any]:
    """mpi4py's own methods, by name: where no plan may serve, an object has them at no extra cost.

    ours: the class whose methods they replace, but not those of a user's subclass.
    """
    return {
        name: getattr(MPI.Intracomm, name).__get__(comm)
        for name, method in _FORMS.items()
        if method not in served and getattr(type(comm), name) is getattr(ours, name)
    }


def compiled_forms(
    comm: Any, ours: type[Any], served: Collection[str], dispatch: Dispatch
) -> dict[str, Callable[..., Any]]:
    """The same methods in C, by name; none without the compiled engine.   ours: as above."""
    made: dict[str, Callable[..., Any]] = {}
    for way, names in _WAYS.items() if COMPILED else ():
        own = [name for name in names if getattr(type(comm), name) is getattr(ours, name)]
        if own := [name for name in own if names[name] in served]:
            calls = dispatch.requesting(way, comm, partial(serve_request, comm, way))
            made |= {name: getattr(calls, f"request_{names[name].lower()}") for name in own}
    return made


def add_request_forms(owner: type[Any]) -> None:
    """Give a class these methods, beside its blocking ones."""
    for way, docstring in _DOCSTRINGS.items():
        for name, method in _WAYS[way].items():
            form = _request_form(owner, method, name, way)
            form.__doc__ = docstring.format(method)
            setattr(owner, name, form)


def serve_request(
    comm: Any, way: Way, method: str, fast_key: bytes | None, *positional: Any, **named: Any
) -> Any:
    """Make a request that the compiled engine cannot make, or not yet; see `Dispatch.serve`."""
    return _SERVING[way, method](comm, fast_key, positional, named)


def _request_form(owner: type[Any], method: str, name: str, way: Way) -> Callable[..., Any]:
    library = getattr(MPI.Intracomm, name)
    form = signature(getattr(owner, method))
    if way == "persistent":
        info = Parameter("info", Parameter.POSITIONAL_OR_KEYWORD, default=MPI.INFO_NULL)
        form = form.replace(parameters=[*form.parameters.values(), info])

    defaults = tuple(parameter.default for parameter in form.parameters.values())
    fewest = defaults.count(Parameter.empty)

    def serve(comm: Any, fast_key: bytes | None, positional: tuple[Any, ...], named: Any) -> Any:
        if not named and fewest <= len(positional) + 1 <= len(defaults):
            arguments = positional + defaults[len(positional) + 1 :]
        else:  # takes longer
            bound = form.bind(comm, *positional, **named)
            bound.apply_defaults()
            arguments = bound.args[1:]
        make_librarys = partial(library, comm, *arguments)
        return comm._dispatch.request(way, method, make_librarys, arguments, fast_key)

    def make(comm: Any, *positional: Any, **named: Any) -> Any:
        if method not in comm._served:
            return library(comm, *positional, **named) if named else library(comm, *positional)
        return serve(comm, None, positional, named)

    _SERVING[way, method] = serve
    make.__name__, make.__qualname__ = name, f"Comm.{name}"
    make.__signature__ = form  # type: ignore[attr-defined]
    return make


_DOCSTRINGS: Mapping[Way, str] = {
    "nonblocking": """Start a {0}; its buffers belong to it until `Wait`.

        Collective, in the same order on all ranks; errors are those of `{0}`.  A user's `op`
        must not be freed before the request has completed.
        Returns an `MPI.Request` if the library serves the call, or calls collwise when it makes
        progress (MPICH from 4.2).  Otherwise the request has the same methods, and lists of
        requests need `collwise.waitall`.
        """,
    "persistent": """Make a persistent {0}: `Start`, `Wait`, and at the end `Free`.

        Collective, in the same order on all ranks; errors are those of `{0}`.  A user's `op`
        must not be freed before the request.  For lists of requests use `collwise.startall` and
        `collwise.waitall`.
        """,
}
