"""Calls that the library serves on a communicator with plans for others: one lookup and no more.

An object has functions in the place of its methods.  Those that make requests are in C, if they can
be: there the same table as for blocking calls, which begin in C anyway, says who serves, and the
library's requests are made.  Where Python serves, each function makes a key of what is at hand; MPI
guarantees that all of it is equal on all ranks, and it decides who serves.  An unknown call goes to
the method, and what that found out is remembered.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial, update_wrapper
from typing import Any, TypeAlias

from mpi4py import MPI

from collwise.comm.call_keys import call_key
from collwise.comm.dispatch import MAX_ENTRIES, Dispatch
from collwise.comm.recording import Way
from collwise.comm.request_forms import serve_request
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.progress import ENGINE

Call: TypeAlias = Callable[..., Any]
Known: TypeAlias = dict[Hashable, bool]
"""By key, whether the library serves; nothing where nobody asked yet."""
_SUM, _IN_PLACE, _RUNNING = MPI.SUM, MPI.IN_PLACE, ENGINE.running
_NO_ARRAY = AttributeError, TypeError, ValueError


def quick_methods(
    comm: Any, ours: type[Any], dispatch: Dispatch, forms: Collection[tuple[str, str, Way]]
) -> dict[str, Call]:
    """Functions for an object to have in the place of its methods.

    ours: the class whose methods they replace, but not those of a user's subclass.
    forms: the name of each, the blocking method, and how it is called.
    """
    own = [one for one in forms if getattr(type(comm), one[0]) is getattr(ours, one[0])]
    if COMPILED is not None:
        ways: Iterable[Way] = dict.fromkeys(way for _, _, way in own)
        calls = {
            way: dispatch.requesting(way, comm, partial(serve_request, comm, way)) for way in ways
        }
        return {name: getattr(calls[way], f"request_{method.lower()}") for name, method, way in own}
    quick: dict[str, Call] = {}
    for name, method, way in own:
        slow, known = getattr(type(comm), name).__get__(comm), dispatch.known[name]
        library = getattr(MPI.Intracomm, name).__get__(comm)
        made = _MAKERS[method](library, _asking(slow, known, dispatch, method, way), known)
        quick[name] = update_wrapper(made, slow)
    return quick


def _asking(slow: Call, known: Known, dispatch: Dispatch, method: str, way: Way) -> Call:
    def ask(key: Hashable, *arguments: Any, info: Any = None) -> Any:
        result = slow(*arguments) if info is None else slow(*arguments, info)
        if key is not None and known.get(key) is None:
            served: Any = call_key(method, arguments)
            call = dispatch.calls.get(served and (served if way == "blocking" else (way, served)))
            if len(known) >= MAX_ENTRIES:
                dispatch.forget()
            elif call is not None:
                known[key] = call.executor is None
                dispatch.operators.append(call.op)  # kept alive, since its id is part of the key
        return result

    return ask


# `info` is what METHOD_init takes besides; with one, and beside running schedules, methods serve.
# Every ten nanoseconds count: what is usual (root 0, MPI.SUM) is left out of keys, and what has no
# such attributes is found out by the exception.


def _listed(known: Known, spec: Any, *more: Hashable) -> tuple[Hashable, bool]:
    """The key of [array, type] or [array, count, type], and what is known of it."""
    if type(spec) is not list:
        return None, False
    try:
        data, *count, datatype = spec
        key = data.nbytes, *count, datatype.handle, *more
        return key, known.get(key, False)
    except _NO_ARRAY:
        return None, False


def _bcast(library: Call, ask: Call, known: Known) -> Call:
    def call(buf: Any, root: int = 0, info: Any = None) -> Any:
        try:
            key: Hashable = (buf.nbytes, root) if root else buf.nbytes
            serves = known[key]
        except KeyError:
            serves = False
        except _NO_ARRAY:
            key, serves = _listed(known, buf, root)
        if serves and info is None and not _RUNNING:
            return library(buf, root)
        return ask(key, buf, root, info=info)

    return call


def _reduce(library: Call, ask: Call, known: Known) -> Call:
    def call(sendbuf: Any, recvbuf: Any, op: MPI.Op = _SUM, root: int = 0, info: Any = None) -> Any:
        vector = recvbuf if sendbuf is _IN_PLACE else sendbuf
        try:
            key: Hashable = vector.dtype, vector.nbytes, None if op is _SUM else id(op), root
            serves = known[key]
        except KeyError:
            serves = False
        except _NO_ARRAY:
            key, serves = _listed(known, vector, id(op), root)
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf, op, root)
        return ask(key, sendbuf, recvbuf, op, root, info=info)

    return call


def _allreduce(library: Call, ask: Call, known: Known) -> Call:
    def call(sendbuf: Any, recvbuf: Any, op: MPI.Op = _SUM, info: Any = None) -> Any:
        vector = recvbuf if sendbuf is _IN_PLACE else sendbuf
        try:
            key: Hashable = vector.dtype, vector.nbytes, None if op is _SUM else id(op)
            serves = known[key]
        except KeyError:
            serves = False
        except _NO_ARRAY:
            key, serves = _listed(known, vector, id(op))
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf, op)
        return ask(key, sendbuf, recvbuf, op, info=info)

    return call


def _allgather(library: Call, ask: Call, known: Known) -> Call:
    def call(sendbuf: Any, recvbuf: Any, info: Any = None) -> Any:
        try:
            key = recvbuf.nbytes
            serves = known[key]
        except KeyError:
            serves = False
        except _NO_ARRAY:
            key, serves = _listed(known, recvbuf)
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf)
        return ask(key, sendbuf, recvbuf, info=info)

    return call


def _allgatherv(library: Call, ask: Call, known: Known) -> Call:
    def call(sendbuf: Any, recvbuf: Any, info: Any = None) -> Any:
        key = None
        try:
            _, counts, datatype = recvbuf
            key = datatype.handle, *counts
            serves = known[key]
        except KeyError:
            serves = False
        except _NO_ARRAY:  # (counts, displacements), for instance
            key, serves = None, False
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf)
        return ask(key, sendbuf, recvbuf, info=info)

    return call


_MAKERS = {
    "Bcast": _bcast,
    "Reduce": _reduce,
    "Allreduce": _allreduce,
    "Reduce_scatter_block": _allreduce,
    "Allgather": _allgather,
    "Allgatherv": _allgatherv,
}
