"""Blocking calls of an s-to-p broadcast: much is remembered, but nothing by a buffer's address.

Nothing is packed, whatever the length: a layout that was met before needs no new derived types.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.mpi.blocking import once
from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.gathering import Gathering
from collwise.mpi.memory import Gathered, indexed
from collwise.mpi.operands import is_in_place
from collwise.mpi.pieces import Parts, Pieces, places_key, vector_key, vector_parts
from collwise.mpi.progress import moving
from collwise.schedule.operations import Combine, Copy, Operation, Recv, Slot
from collwise.schedule.program import Schedule

Read: TypeAlias = Callable[[Any, int], Parts]
"""How the parts of a receive buffer are found."""
Run: TypeAlias = Callable[[Any, Any], None]
"""Takes a send buffer and a receive buffer, as mpi4py takes them."""
_MOST = 64
"""Of layouts that are remembered, and of those for which there are derived types."""
_CODES = frozenset("?bBhHiIlLqQfdgFDG")
"""NumPy's codes of elements that mpi4py sends as they are."""
_LISTS = (list, tuple)
_WORD = np.dtype(np.uint64)
_LONG = 16384
"""Bytes from which on a ufunc copies, which costs a microsecond more; see `memory.LONG`."""


class Gatherer:
    """Runs this rank's part of an s-to-p broadcast once, on the buffers of each call."""

    def __init__(self, schedule: Schedule, channel: Channel) -> None:
        self.gathering, self.channel = Gathering(schedule, channel), channel
        self._known: dict[Hashable, Run] = {}
        self._placed: dict[Hashable, _Placed] = {}
        self._held: list[_Direct] = []
        channel.own(self)

    def __call__(self, sendbuf: Any, recvbuf: Any) -> None:
        """Run it.  Raises as mpi4py does for odd buffers, InvalidArgument for other sizes."""
        try:
            run = self._known[vector_key(recvbuf)]
        except Exception:  # not met before, or nothing that can be looked up
            run = self.alike(vector_parts)
            _remember(self._known, vector_key, recvbuf, run)
        run(sendbuf, recvbuf)

    def alike(self, read: Read) -> Run:
        """What runs it for receive buffers of one type and size, wherever their pieces lie.

        read: how the parts of a receive buffer are found.
        """
        known: dict[Hashable, Run] = {}

        def run(sendbuf: Any, recvbuf: Any) -> None:
            try:
                placed = known[places_key(recvbuf)]
            except Exception:  # not met before, or nothing that can be looked up
                placed = self._place(read, recvbuf)
                _remember(known, places_key, recvbuf, placed)
            placed(sendbuf, recvbuf)

        return run

    def _place(self, read: Read, recvbuf: Any) -> Run:
        """What runs it for such a layout: the same one, whatever form it comes in."""
        pieces = self.gathering.place(read(recvbuf, self.channel.size))
        anywhere, datatype = partial(self._anywhere, read), pieces.unit.datatype
        if not (pieces.unit.plain and datatype.is_predefined) or pieces.places.low < 0:
            return anywhere
        key = read, datatype.handle, tuple(pieces.places.starts.items())
        found = self._placed.get(key)
        if found is None:
            if len(self._placed) >= _MOST:
                self._placed.clear()
            found = self._placed[key] = _Placed(self, pieces, anywhere)
        return found

    def _anywhere(self, read: Read, sendbuf: Any, recvbuf: Any) -> None:
        """Run it on whatever it is."""
        channel, gathering = self.channel, self.gathering
        channel.check()
        pieces = gathering.place(read(recvbuf, channel.size))
        given = None if is_in_place(sendbuf) else gathering.given(sendbuf)
        memory = None if given is None else given.elements
        try:
            once(gathering.way(given is None), gathering.work(memory, pieces, BLOCKING_TAG))
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    def hold(self, direct: "_Direct") -> None:
        """Free its types together with the rest, or when there are many; then it makes new ones."""
        if len(self._held) >= _MOST:
            self._release()
        self._held.append(direct)

    @property
    def types(self) -> int:
        """How many derived types MPI holds for it."""
        return sum(len(direct.types) for direct in self._held)

    def _release(self) -> None:
        while self._held:
            self._held.pop().free()

    def Free(self) -> None:  # noqa: N802
        """Give back what MPI holds for it."""
        self._known.clear()
        self._placed.clear()
        self._release()


class _Placed:
    """Runs it for one layout of plain bytes, whatever their address."""

    def __init__(self, gatherer: Gatherer, like: Pieces, anywhere: Run) -> None:
        self._channel, self._anywhere = gatherer.channel, anywhere
        self._high, self._nbytes = like.places.high, gatherer.gathering.lengths[self._channel.rank]
        self._direct = _Direct(gatherer, like)

    def __call__(self, sendbuf: Any, recvbuf: Any) -> None:
        data = recvbuf[0] if isinstance(recvbuf, _LISTS) else recvbuf
        if type(sendbuf) is np.ndarray and _plain(sendbuf):
            sent = MPI.buffer.frombuffer(sendbuf, readonly=True)
            known = sent.nbytes == self._nbytes
        else:
            sent, known = None, is_in_place(sendbuf)
        if known and data is not None and data is not MPI.BOTTOM and not self._channel.broken:
            memory = MPI.buffer.frombuffer(data)
            if self._high <= memory.nbytes:
                try:
                    self._direct(sendbuf, sent, memory)
                except BaseException as problem:
                    self._channel.mark_broken(problem)
                    raise
                return
        self._anywhere(sendbuf, recvbuf)  # it knows more forms, and what is wrong


def _plain(array: NDArray[Any]) -> bool:
    """Whether mpi4py sends an array as it is."""
    dtype = array.dtype
    return dtype.char in _CODES and dtype.isnative and array.flags.aligned


class _Step(NamedTuple):
    """An operation on bytes that lie somewhere from an address on."""

    place: int
    kind: str
    peer: int
    start: int
    span: int
    number: int
    datatype: MPI.Datatype


class _Direct:
    """Messages from and to wherever the data is.   types: the derived ones, to free in the end."""

    def __init__(self, gatherer: Gatherer, like: Pieces) -> None:
        self._gatherer, self._comm = gatherer, gatherer.channel.comm
        self._like = Gathered(0, like.unit, like.places.starts)
        self._ways: dict[bool, list[tuple[tuple[int, ...], list[_Step]]]] = {}
        self.types: list[MPI.Datatype] = []

    def __call__(self, sendbuf: Any, sent: Any, memory: Any) -> None:
        """Run it.   sent: the memory of the send buffer, None where the data is in its place.

        memory: that of the receive buffer.
        """
        comm, address, at = self._comm, memory.address, MPI.buffer.fromaddress
        requests: dict[int, MPI.Request] = {}
        for awaited, steps in self._ways.get(sent is None) or self._prepared(sent is None):
            if awaited:
                moving(*[requests[place] for place in awaited])
            for place, kind, peer, start, span, number, datatype in steps:
                if kind == "copy":
                    _copy(memoryview(memory)[start : start + span], sent)
                    continue
                spec = sendbuf if kind == "give" else [at(address + start, span), number, datatype]
                act = comm.Irecv if kind == "recv" else comm.Isend
                requests[place] = act(spec, peer, BLOCKING_TAG)
        moving(*requests.values())

    def _prepared(self, in_place: bool) -> list[tuple[tuple[int, ...], list[_Step]]]:
        if not self._ways:
            self._gatherer.hold(self)
        way = self._gatherer.gathering.way(in_place)
        steps = [self._step(place, op) for place, op in enumerate(way.operations)]
        stages = [((), (*way.first, *way.opening)), *way.stages, *way.tail]
        made = [(awaited, [steps[place] for place in acts]) for awaited, acts in stages]
        self._ways[in_place] = made
        return made

    def _step(self, place: int, op: Operation) -> _Step:
        pieces, unit = self._like.pieces(op.blocks), self._like.unit
        start, span = pieces[0]
        number, datatype = span // unit.size, unit.datatype
        if isinstance(op, Combine | Copy):
            return _Step(place, "copy", 0, start, span, number, datatype)
        kind = "recv" if isinstance(op, Recv) else "send"
        if op.slot == Slot.INPUT:
            kind = "give"
        elif len(pieces) > 1:
            start, span, datatype = indexed(pieces, unit)
            number = 1
            self.types.append(datatype)
        return _Step(place, kind, op.peer, start, span, number, datatype)

    def free(self) -> None:
        """Free the types; the next call makes them anew."""
        self._ways.clear()
        while self.types:
            self.types.pop().Free()


def _remember(
    known: dict[Hashable, Run], key: Callable[[Any], Hashable], recvbuf: Any, run: Run
) -> None:
    if len(known) >= _MOST:
        known.clear()
    with suppress(Exception):
        known[key(recvbuf)] = run


def _copy(target: Any, source: Any) -> None:
    """Copy as many bytes as the target has."""
    if len(target) >= _LONG and len(target) % _WORD.itemsize == 0:
        np.positive(np.frombuffer(source, _WORD), np.frombuffer(target, _WORD))
    else:
        target[:] = source
