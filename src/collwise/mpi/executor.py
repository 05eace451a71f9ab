"""Runs one rank's part of a schedule on MPI: once, or compiled into persistent requests.

The executor never knows which algorithm made what it walks.  It posts all receives at once, starts
each send as soon as its data is here, in list order, and keeps other running schedules moving.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers import Buffer, Message, copy
from collwise.mpi.channel import BLOCKING_TAG, PACKING_TAG, Channel
from collwise.mpi.progress import ENGINE
from collwise.mpi.route import Route, route_of
from collwise.schedule.data import Schedule, Send


class Persistent:
    """A collective that can be started again and again: `Start`, then `Wait` or `Test`.

    Make it with `persistent`, on all ranks in the same order.  Not an `MPI.Request`: use
    `collwise.startall` and `collwise.waitall` on lists that hold both kinds.
    """

    def __init__(self, channel: Channel, buffer: Buffer, way: Route, root: int) -> None:
        self._channel = channel
        self._buffer = buffer
        self._root = channel.rank == root
        self._packed = _scratch(buffer, way)
        self._messages = [buffer.message(op.blocks, self._packed) for op in way.operations]
        tag = channel.take_tag()
        comm = channel.comm
        self._requests: list[MPI.Prequest] = [
            (comm.Send_init if isinstance(op, Send) else comm.Recv_init)(message.spec, op.peer, tag)
            for op, message in zip(way.operations, self._messages, strict=True)
        ]
        self._first = self._chosen(way.first)
        self._stages = [(self._chosen(s.receives), self._chosen(s.sends)) for s in way.stages]
        self._begin = self._begin_simple()
        self._finish = self._finish_simple()
        self._at = len(self._stages)
        self._active = False
        channel.own(self)

    def _chosen(self, places: Iterable[int]) -> list[MPI.Prequest]:
        return [self._requests[place] for place in places]

    @property
    def active(self) -> bool:
        """Whether it was started and not yet completed."""
        return self._active

    def Start(self) -> None:  # noqa: N802
        """Start the collective; the buffer belongs to it until `Wait` returns.

        Raises BrokenCommunicator after an interrupted collective, RuntimeError if it is running.
        """
        if self._active or self._channel.broken:
            self._refuse()
        self._active = True
        try:
            self._begin()
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise

    def Wait(self) -> None:  # noqa: N802
        """Return when this rank's part is complete; at once if it is not started."""
        try:
            if ENGINE.running:
                self._wait_moving()
            else:
                self._finish()
            if self._packed is not None:
                self._unpack()
        except BaseException as problem:
            self._channel.mark_broken(problem)
            raise
        self._active = False

    def Test(self) -> bool:  # noqa: N802
        """Whether this rank's part is complete; completes it if so.  Never blocks."""
        ENGINE.advance()
        if self._at < len(self._stages) or not MPI.Request.Testall(self._requests):
            return False
        self.Wait()
        return True

    def advance(self) -> bool:
        """Start the sends whose data is here (called under the engine's lock)."""
        while self._at < len(self._stages):
            receives, sends = self._stages[self._at]
            if not MPI.Request.Testall(receives):
                return False
            MPI.Prequest.Startall(sends)
            self._at += 1
        return True

    # Which way it begins and ends is decided once, so that a call does little but call MPI.

    def _begin_simple(self) -> Callable[[], Any]:
        if self._stages or self._packed is not None:
            return self._begin_full
        if len(self._first) == 1:
            return self._first[0].Start
        return partial(MPI.Prequest.Startall, self._first) if self._first else _nothing

    def _begin_full(self) -> None:
        if self._packed is not None and self._root:
            copy(self._buffer, self._packed, self._channel.comm, PACKING_TAG)
        MPI.Prequest.Startall(self._first)
        if self._stages:
            self._at = 0
            ENGINE.add(self)

    def _finish_simple(self) -> Callable[[], Any]:
        if len(self._requests) == 1:
            return self._requests[0].Wait
        return partial(MPI.Request.Waitall, self._requests) if self._requests else _nothing

    def _unpack(self) -> None:
        if self._active and not self._root:
            assert self._packed is not None
            copy(self._packed, self._buffer, self._channel.comm, PACKING_TAG)

    def _wait_moving(self) -> None:
        """Complete it, moving others on if there are any."""
        with ENGINE.lock:
            if ENGINE.running == [self]:  # nobody else to care for: MPI may block for us
                while self._at < len(self._stages):
                    receives, sends = self._stages[self._at]
                    MPI.Request.Waitall(receives)
                    MPI.Prequest.Startall(sends)
                    self._at += 1
                ENGINE.running = []
        while self._at < len(self._stages):  # only then are all its sends started
            ENGINE.advance()
        _moving(*self._requests)
        ENGINE.remove(self)

    def Free(self) -> None:  # noqa: N802
        """Give the requests back to MPI; a running collective is completed first."""
        if self._active and not self._channel.broken:
            self.Wait()
        ENGINE.remove(self)
        for request in self._requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        for message in self._messages:
            if message.derived is not None:
                message.derived.Free()
        self._requests, self._messages, self._first, self._stages = [], [], [], []

    def _refuse(self) -> None:
        self._channel.check()
        raise RuntimeError("this collective is running: Wait for it before you start it again")


def _nothing() -> None:
    """What there is to do for a message of no bytes."""


def persistent(schedule: Schedule, channel: Channel, spec: Any) -> Persistent:
    """Compile this rank's part of a schedule for a buffer.  All ranks, in the same order.

    spec: the buffer in any form that mpi4py takes; its bytes must be the schedule's.
    Raises InvalidArgument for a buffer or a communicator of another size than the schedule's.
    """
    buffer = _fitting(schedule, channel, spec)
    return Persistent(channel, buffer, route_of(schedule, channel.rank), schedule.problem.root)


def runner(schedule: Schedule, channel: Channel) -> Callable[[Any], None]:
    """A function that runs this rank's part once on the buffer that it is given."""
    way = route_of(schedule, channel.rank)
    if _is_whole(way, schedule.problem.nbytes) and len(way.stages) <= 1:
        return _whole_runner(way, channel)

    def run(spec: Any) -> None:
        channel.check()
        buffer = _fitting(schedule, channel, spec)
        try:
            _once(way, channel, buffer, channel.rank == schedule.problem.root)
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    return run


def _whole_runner(way: Route, channel: Channel) -> Callable[[Any], None]:
    """The short way for trees without segments: the user's buffer as it is, no pieces to make."""
    comm = channel.comm
    parents = [op.peer for op in way.operations if not isinstance(op, Send)]
    children = [op.peer for op in way.operations if isinstance(op, Send)]

    def run(spec: Any) -> None:
        if channel.broken:
            channel.check()
        try:
            for parent in parents:
                if ENGINE.running:
                    _moving(comm.Irecv(spec, parent, BLOCKING_TAG))
                else:
                    comm.Recv(spec, parent, BLOCKING_TAG)
            if len(children) == 1 and not ENGINE.running:
                comm.Send(spec, children[0], BLOCKING_TAG)
            elif children:
                _moving(*[comm.Isend(spec, child, BLOCKING_TAG) for child in children])
        except BaseException as problem:
            channel.mark_broken(problem)
            raise

    return run


def _moving(*requests: MPI.Request) -> None:
    """Complete requests of ours, moving running schedules on meanwhile."""
    while ENGINE.running and not MPI.Request.Testall(requests):
        ENGINE.advance()
    MPI.Request.Waitall(requests)


def _once(way: Route, channel: Channel, buffer: Buffer, root: bool) -> None:
    comm = channel.comm
    packed = _scratch(buffer, way)
    if packed is not None and root:
        copy(buffer, packed, comm, PACKING_TAG)
    messages: list[Message] = [buffer.message(op.blocks, packed) for op in way.operations]
    requests: dict[int, MPI.Request] = {}

    def begin(place: int) -> None:
        op = way.operations[place]
        call = comm.Isend if isinstance(op, Send) else comm.Irecv
        requests[place] = call(messages[place].spec, op.peer, BLOCKING_TAG)

    for place in way.first:
        begin(place)
    for stage in way.stages:
        _moving(*[requests[place] for place in stage.receives])
        for place in stage.sends:
            begin(place)
    _moving(*requests.values())
    for message in messages:
        if message.derived is not None:
            message.derived.Free()
    if packed is not None and not root:
        copy(packed, buffer, comm, PACKING_TAG)


def _scratch(buffer: Buffer, way: Route) -> Buffer | None:
    """Packed scratch, where messages are pieces of a buffer whose bytes are not in order."""
    return None if buffer.contiguous or _is_whole(way, buffer.nbytes) else buffer.packed()


def _is_whole(way: Route, nbytes: int) -> bool:
    return all(len(op.blocks) == 1 and op.blocks[0].length == nbytes for op in way.operations)


def _fitting(schedule: Schedule, channel: Channel, spec: Any) -> Buffer:
    problem = schedule.problem
    if channel.size != problem.ranks:
        raise InvalidArgument(
            f"a schedule for {problem.ranks} ranks",
            f"the communicator has {channel.size}",
            f"plan for {channel.size} ranks",
        )
    buffer = Buffer(spec, writable=channel.rank != problem.root)
    if buffer.nbytes != problem.nbytes:
        raise InvalidArgument(
            f"a schedule for {problem.nbytes} bytes",
            f"the buffer of rank {channel.rank} has {buffer.nbytes}",
            "plan for the bytes that all ranks pass, or correct count and type",
        )
    return buffer


def startall(requests: Any) -> None:
    """Start every request of a list, collwise's and MPI's persistent ones alike."""
    for request in requests:
        request.Start()


def waitall(requests: Any) -> None:
    """Complete every request of a list, collwise's and MPI's alike."""
    ours = [r for r in requests if isinstance(r, Persistent)]
    theirs = [r for r in requests if not isinstance(r, Persistent)]
    _moving(*theirs)
    for request in ours:
        request.Wait()
