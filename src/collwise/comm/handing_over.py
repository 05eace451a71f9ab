"""Calls that the library serves, on a communicator with plans for others: each costs one lookup.

A communicator gets functions in the place of its methods.  With the compiled engine they make
requests, and look calls up in a table in C, as blocking calls do anyway.  Otherwise each function
makes a key of its arguments, from what MPI requires to be equal on all ranks.  A call with a new
key goes to the method, and who served it is remembered.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial, update_wrapper
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.comm.call_keys import call_key
from collwise.comm.dispatch import MAX_ENTRIES, Dispatch
from collwise.comm.recording import Way
from collwise.comm.request_forms import serve_request
from collwise.mpi.buffers.buffer import locate
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.runtime.progress import ENGINE

Call: TypeAlias = Callable[..., Any]
Known: TypeAlias = dict[Hashable, bool]
"""By key, whether the library serves; no entry for calls not made yet."""
Latest: TypeAlias = dict[Hashable, Any]
"""The last call of each size that the library served: types, operator and root, or MPI's type."""
_SUM, _IN_PLACE, _RUNNING = MPI.SUM, MPI.IN_PLACE, ENGINE.running
_NO_ARRAY = AttributeError, IndexError, TypeError, ValueError
_UNKNOWN = KeyError, *_NO_ARRAY
_ARRAY, _NOTHING = np.ndarray, (None,) * 4


def quick_methods(
    comm: Any, ours: type[Any], dispatch: Dispatch, forms: Collection[tuple[str, str, Way]]
) -> dict[str, Call]:
    """Functions for a communicator to have in the place of its methods, by name.

    ours: the class whose methods are replaced; those of a user's subclass are not.
    forms: as `request_forms.forms_of` returns them.
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
        ask = _asking(slow, known, dispatch, method, way)
        made = _MAKERS[method](library, ask, known, dispatch.latest[name])
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


# `info`: METHOD_init's last argument.  With one, or while schedules are running, the method serves.
# Every ten nanoseconds count, and an exception takes a thousand.  So types are compared first, and
# keys leave out root 0.  The key of a reduction or of counts takes too long to make, so a call is
# first compared with `latest`, the last one of its size that the library served.  Passing the type
# of an array in a tuple is faster than letting mpi4py find it.


def _listed(known: Known, spec: Any, *more: Hashable) -> tuple[Hashable, bool]:
    """The key of [array, type] or [array, count, type], and whether the library serves it."""
    try:
        count = spec[1] if len(spec) == 3 else None
        key = spec[0].nbytes, spec[-1].handle, count, more
        return (key, known.get(key, False)) if len(spec) < 4 else (None, False)
    except _NO_ARRAY:
        return None, False


def _bcast(library: Call, ask: Call, known: Known, _: Latest) -> Call:
    def call(buf: Any, root: int = 0, info: Any = None) -> Any:
        if type(buf) is list:
            key, serves = _listed(known, buf, root)
        else:
            try:
                key = (buf.nbytes, root) if root else buf.nbytes
                serves = known[key]
            except KeyError:
                serves = False
            except _NO_ARRAY:
                key, serves = None, False
        if serves and info is None and not _RUNNING:
            return library(buf, root)
        return ask(key, buf, root, info=info)

    return call


def _reduce(library: Call, ask: Call, known: Known, latest: Latest) -> Call:
    other = _combining(library, ask, known, latest)

    def call(sendbuf: Any, recvbuf: Any, op: MPI.Op = _SUM, root: int = 0, info: Any = None) -> Any:
        vector = recvbuf if sendbuf is _IN_PLACE else sendbuf
        if type(vector) is _ARRAY:
            try:
                dtype, datatype, last_op, last_root = latest[vector.nbytes]
                same = dtype is vector.dtype and last_op is op and last_root is root
            except KeyError:
                same = False
            if same and info is None and not _RUNNING:
                if vector is sendbuf and type(recvbuf) is _ARRAY and recvbuf.dtype is dtype:
                    return library((sendbuf, datatype), (recvbuf, datatype), op, root)
                return library(sendbuf, recvbuf, op, root)
        return other(vector, info, sendbuf, recvbuf, op, root)

    return call


def _allreduce(library: Call, ask: Call, known: Known, latest: Latest) -> Call:
    other = _combining(library, ask, known, latest)

    def call(sendbuf: Any, recvbuf: Any, op: MPI.Op = _SUM, info: Any = None) -> Any:
        vector = recvbuf if sendbuf is _IN_PLACE else sendbuf
        if type(vector) is _ARRAY:
            try:
                dtype, datatype, last_op, _ = latest[vector.nbytes]
                same = dtype is vector.dtype and last_op is op
            except KeyError:
                same = False
            if same and info is None and not _RUNNING:
                if vector is sendbuf and type(recvbuf) is _ARRAY and recvbuf.dtype is dtype:
                    return library((sendbuf, datatype), (recvbuf, datatype), op)
                return library(sendbuf, recvbuf, op)
        return other(vector, info, sendbuf, recvbuf, op)

    return call


def _combining(library: Call, ask: Call, known: Known, latest: Latest) -> Call:
    def other(vector: Any, info: Any, sendbuf: Any, recvbuf: Any, op: MPI.Op, *root: int) -> Any:
        if type(vector) is list:
            key, serves = _listed(known, vector, id(op), *root)
        else:
            try:
                key = vector.dtype, vector.nbytes, id(op), *root
                serves = known[key]
            except KeyError:
                serves = False
            except _NO_ARRAY:
                key, serves = None, False
        if type(vector) is _ARRAY:
            latest[vector.nbytes] = _NOTHING
            if serves:
                datatype = locate(vector, None, False, writable=False).unit.datatype
                latest[vector.nbytes] = vector.dtype, datatype, op, root[0] if root else None
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf, op, *root)
        return ask(key, sendbuf, recvbuf, op, *root, info=info)

    return other


def _allgather(library: Call, ask: Call, known: Known, _: Latest) -> Call:
    def call(sendbuf: Any, recvbuf: Any, info: Any = None) -> Any:
        if type(recvbuf) is list:
            key, serves = _listed(known, recvbuf)
        else:
            try:
                key = recvbuf.nbytes
                serves = known[key]
            except KeyError:
                serves = False
            except _NO_ARRAY:
                key, serves = None, False
        if serves and info is None and not _RUNNING:
            return library(sendbuf, recvbuf)
        return ask(key, sendbuf, recvbuf, info=info)

    return call


def _allgatherv(library: Call, ask: Call, known: Known, latest: Latest) -> Call:
    def call(sendbuf: Any, recvbuf: Any, info: Any = None) -> Any:
        try:
            _, counts, datatype = recvbuf
            each = tuple(counts)
            same = latest[each] is datatype and each is not counts
        except _UNKNOWN:
            same = False
        if same and info is None and not _RUNNING:
            return library(sendbuf, recvbuf)
        return other(sendbuf, recvbuf, info)

    def other(sendbuf: Any, recvbuf: Any, info: Any) -> Any:
        key: Any = None
        serves = False
        try:
            counts, datatype = recvbuf[1], recvbuf[-1]
            each = tuple(counts[0] if type(counts) is tuple else counts)  # besides displacements
            key = datatype.handle, each
            serves = known.get(key, False)
            latest[each] = datatype if serves else None
        except _UNKNOWN:
            key = None
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
