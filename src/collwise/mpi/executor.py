"""Runs one rank's part of a schedule on MPI: once, or compiled into persistent requests.

The executor never knows which algorithm made what it walks.  It posts all receives at once, starts
each send as soon as its data is here, in list order, and keeps other running schedules moving.
"""

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.blocking import moving_whole, once
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import BLOCKING_TAG, Channel
from collwise.mpi.combining import Operator
from collwise.mpi.memory import Memory
from collwise.mpi.persistent import Persistent
from collwise.mpi.route import Route, in_place, route, route_of
from collwise.mpi.workspace import for_combining, for_moving, whole_only
from collwise.schedule.data import Problem, Schedule, Slot


def persistent(schedule: Schedule, channel: Channel, spec: Any) -> Persistent:
    """Compile this rank's part of a broadcast for a buffer.  All ranks, in the same order.

    spec: the buffer in any form that mpi4py takes; its bytes must be the schedule's.
    Raises InvalidArgument for a buffer or a communicator of another size than the schedule's.
    """
    problem = _for_ranks(schedule, channel)
    buffer = _fitting(problem, channel, spec, writable=channel.rank != problem.root)
    way, tag = route_of(schedule, channel.rank), channel.take_tag()
    root = channel.rank == problem.root
    work = for_moving(way.operations, buffer, root, channel.comm, tag)
    return Persistent(channel, way, work, tag)


def runner(schedule: Schedule, channel: Channel) -> Callable[[Any], None]:
    """A function that runs this rank's part of a broadcast once on the buffer that it is given."""
    way, problem = route_of(schedule, channel.rank), _for_ranks(schedule, channel)
    if whole_only(way.operations, problem.nbytes) and len(way.stages) <= 1:
        return moving_whole(way, channel)
    root = channel.rank == problem.root

    def run(spec: Any) -> None:
        channel.check()
        buffer = _fitting(problem, channel, spec, writable=not root)
        try:
            once(way, for_moving(way.operations, buffer, root, channel.comm, BLOCKING_TAG))
        except BaseException as problem_:
            channel.mark_broken(problem_)
            raise

    return run


def persistent_combine(
    schedule: Schedule, channel: Channel, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Persistent:
    """Compile this rank's part of a reduce or an allreduce.  All ranks, in the same order.

    sendbuf, recvbuf: as mpi4py takes them, `MPI.IN_PLACE` included; recvbuf counts only where there
    is an output.   op: an operator that fits the type; it must live as long as the request.
    Raises InvalidArgument for buffers or a communicator of another size than the schedule's, or
    elements of another size.
    """
    problem = _for_ranks(schedule, channel)
    data = Operands(problem, channel, sendbuf, recvbuf)
    way, kept = Ways(schedule, channel.rank).of(data.in_place)
    tag = channel.take_tag()
    operator = Operator.of(op, data.datatype)
    work = for_combining(
        way.operations,
        operator,
        problem.nbytes,
        data.slots,
        kept,
        channel.comm,
        tag,
        keep=[data],
    )
    return Persistent(channel, way, work, tag)


def combiner(schedule: Schedule, channel: Channel, op: MPI.Op) -> Callable[[Any, Any], None]:
    """A function that runs this rank's part of a reduce or an allreduce once, on given buffers."""
    problem, ways = _for_ranks(schedule, channel), Ways(schedule, channel.rank)

    def run(sendbuf: Any, recvbuf: Any) -> None:
        channel.check()
        data = Operands(problem, channel, sendbuf, recvbuf)
        way, kept = ways.of(data.in_place)
        try:
            work = for_combining(
                way.operations,
                Operator.of(op, data.datatype),
                problem.nbytes,
                data.slots,
                kept,
                channel.comm,
                BLOCKING_TAG,
                keep=[data],
                allocate=channel.arena.allocate,
            )
            once(way, work)
        except BaseException as problem_:
            channel.mark_broken(problem_)
            raise

    return run


class Operands:
    """The buffers of a reduction: where this rank's input and output are."""

    def __init__(self, problem: Problem, channel: Channel, sendbuf: Any, recvbuf: Any) -> None:
        owed = problem.collective != "reduce" or channel.rank == problem.root
        self.in_place = owed and sendbuf is MPI.IN_PLACE
        self.slots: dict[int, Memory] = {}
        self._keep: list[Buffer] = []
        if owed:
            output = _fitting(problem, channel, recvbuf, writable=True)
            self.slots[Slot.OUTPUT] = output.elements
            self._keep.append(output)
        if self.in_place:
            self.slots[Slot.INPUT] = output.elements
        else:
            given = _fitting(problem, channel, sendbuf, writable=False)
            self.slots[Slot.INPUT] = given.elements
            self._keep.append(given)
        self.datatype = self._keep[0].datatype
        if problem.item % (self.datatype.Get_size() or 1):
            raise InvalidArgument(
                f"a schedule for elements of {problem.item} bytes",
                f"the elements of rank {channel.rank} have {self.datatype.Get_size()}",
                "plan with the size of the elements",
            )


class Ways:
    """One rank's route, and the one for an input that lies where the output will be."""

    def __init__(self, schedule: Schedule, rank: int) -> None:
        self._operations = schedule.rank(rank)
        self._made: dict[bool, tuple[Route, bool]] = {}

    def of(self, sharing: bool) -> tuple[Route, bool]:
        """The route, and whether the input has to be kept aside."""
        if sharing not in self._made:
            renamed = in_place(self._operations) if sharing else None
            kept = sharing and renamed is None
            self._made[sharing] = route(self._operations if renamed is None else renamed), kept
        return self._made[sharing]


def _for_ranks(schedule: Schedule, channel: Channel) -> Problem:
    problem = schedule.problem
    if channel.size != problem.ranks:
        raise InvalidArgument(
            f"a schedule for {problem.ranks} ranks",
            f"the communicator has {channel.size}",
            f"plan for {channel.size} ranks",
        )
    return problem


def _fitting(problem: Problem, channel: Channel, spec: Any, *, writable: bool) -> Buffer:
    buffer = Buffer(spec, writable=writable)
    if buffer.nbytes != problem.nbytes:
        raise InvalidArgument(
            f"a schedule for {problem.nbytes} bytes",
            f"the buffer of rank {channel.rank} has {buffer.nbytes}",
            "plan for the bytes that all ranks pass, or correct count and type",
        )
    return buffer
