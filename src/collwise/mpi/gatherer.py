"""Blocking calls of an s-to-p broadcast: what a call needs, found again at later ones.

Nothing is packed.  A layout that was met before needs no new derived types, wherever the buffers
are; buffers that were met before need no new requests either.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.mpi.blocking import once
from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.gathering import Gathering
from collwise.mpi.memory import Gathered, Memory, Unit, indexed
from collwise.mpi.operands import is_in_place
from collwise.mpi.persistent import Persistent
from collwise.mpi.pieces import Parts, Pieces, places_key, vector_key, vector_parts
from collwise.mpi.progress import moving
from collwise.schedule.data import Combine, Copy, Operation, Recv, Schedule, Slot

Read: TypeAlias = Callable[[Any, int], Parts]
"""How the parts of a receive buffer are found."""
Run: TypeAlias = Callable[[Any, Any], None]
"""Takes a send buffer and a receive buffer, as mpi4py takes them."""
_MOST = 64
_MOST_BUFFERS = 16
"""For so many buffers in a layout there are requests."""
_CODES = frozenset("?bBhHiIlLqQfdgFDG")
"""NumPy's codes of arrays that mpi4py sends as they are."""
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
        self._held: set[_Placed] = set()
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

    def hold(self, placed: "_Placed") -> None:
        """Free what it makes together with the rest, or when there is much; then it makes anew."""
        if len(self._held) >= _MOST:
            self._release()
        self._held.add(placed)

    @property
    def types(self) -> int:
        """How many derived types MPI holds for messages that are made anew."""
        return sum(len(placed.direct.types) for placed in self._held)

    @property
    def requests(self) -> int:
        """For how many buffers it has requests."""
        return sum(placed.requests for placed in self._held)

    def _release(self) -> None:
        while self._held:
            self._held.pop().free()

    def Free(self) -> None:  # noqa: N802
        """Give back what MPI holds for it."""
        self._known.clear()
        self._placed.clear()
        self._release()


class _Placed:
    """Runs it for one layout of plain bytes, whatever their address.

    Buffers at addresses that are met again get requests of their own: making and starting messages
    anew takes half as long again.  An address, not a buffer: what lies there now is as good.
    """

    def __init__(self, gatherer: Gatherer, like: Pieces, anywhere: Run) -> None:
        self._gatherer, self._channel = gatherer, gatherer.channel
        self._like, self._high, self._anywhere = like._replace(keep=[]), like.places.high, anywhere
        self._nbytes = gatherer.gathering.lengths[self._channel.rank]
        self.direct = _Direct(gatherer.gathering, like)
        self._bound: dict[tuple[int, int], Persistent | None] = {}

    def __call__(self, sendbuf: Any, recvbuf: Any) -> None:
        data = recvbuf[0] if isinstance(recvbuf, _LISTS) else recvbuf
        if type(sendbuf) is np.ndarray and sendbuf.dtype.char in _CODES:
            sent = MPI.buffer.frombuffer(sendbuf, readonly=True)
            known, start = sent.nbytes == self._nbytes, sent.address if self._nbytes else 0
        else:
            sent, known, start = None, is_in_place(sendbuf), 0
        if known and data is not None and data is not MPI.BOTTOM and not self._channel.broken:
            memory = MPI.buffer.frombuffer(data)
            if self._high <= memory.nbytes:
                bound = self._bound.get((memory.address, start))
                if bound is not None:
                    bound.run()
                else:
                    self._run(sendbuf, sent, memory, start)
                return
        self._anywhere(sendbuf, recvbuf)  # it knows more forms, and what is wrong

    def _run(self, sendbuf: Any, sent: Any, memory: Any, start: int) -> None:
        """Where there are no requests yet: at the second meeting there will be."""
        self._gatherer.hold(self)
        here = memory.address, start
        try:
            if here in self._bound:
                request = self._bound[here] = self._request(sendbuf, *here)
                request.run()
                return
            if len(self._bound) >= _MOST_BUFFERS:
                self._unbind()
            self._bound[here] = None
            self.direct(sendbuf, sent, memory)
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise

    def _request(self, sendbuf: Any, address: int, start: int) -> Persistent:
        gathering, given = self._gatherer.gathering, None
        if start:
            given = Memory(start, Unit.of(MPI.Datatype.fromcode(sendbuf.dtype.char)))
        # All blocking calls have one tag: they come in the same order on all ranks.
        work = gathering.work(given, self._like._replace(address=address), BLOCKING_TAG)
        return Persistent(self._channel, gathering.way(given is None), work, BLOCKING_TAG)

    @property
    def requests(self) -> int:
        """For how many buffers there are requests."""
        return sum(request is not None for request in self._bound.values())

    def free(self) -> None:
        """Free requests and types; later calls make new ones."""
        self._unbind()
        self.direct.free()

    def _unbind(self) -> None:
        while self._bound:
            _, request = self._bound.popitem()
            if request is not None:
                request.Free()


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

    def __init__(self, gathering: Gathering, like: Pieces) -> None:
        self._gathering, self._comm = gathering, gathering.channel.comm
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
        way = self._gathering.way(in_place)
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
