"""What a call brings, checked against the schedule: buffers of its size, ranks of its number."""

from dataclasses import replace
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Channel
from collwise.mpi.combining import Operator, copying_first
from collwise.mpi.memory import KEPT, Memory, Scratch, Unit
from collwise.mpi.route import Route, in_place, route
from collwise.schedule.operations import Copy, Slot
from collwise.schedule.problem import ROOTLESS, Problem
from collwise.schedule.program import Schedule


def for_ranks(schedule: Schedule, channel: Channel) -> Problem:
    """The problem of a schedule, which must be for so many ranks; raises InvalidArgument."""
    problem = schedule.problem
    if channel.size != problem.ranks:
        raise InvalidArgument(
            f"a schedule for {problem.ranks} ranks",
            f"the communicator has {channel.size}",
            f"plan for {channel.size} ranks",
        )
    return problem


def is_in_place(sendbuf: Any) -> bool:
    """Whether the input lies where the output will be; for mpi4py, None says so too."""
    return sendbuf is MPI.IN_PLACE or sendbuf is None


def fitting(problem: Problem, channel: Channel, spec: Any, *, writable: bool) -> Buffer:
    """A buffer, which must have the problem's bytes; raises InvalidArgument."""
    buffer = Buffer(spec, writable=writable)
    if buffer.nbytes != problem.nbytes:
        raise InvalidArgument(
            f"a schedule for {problem.nbytes} bytes",
            f"the buffer of rank {channel.rank} has {buffer.nbytes}",
            "plan for the bytes that all ranks pass, or correct count and type",
        )
    return buffer


class Operands:
    """The buffers of a reduction: where this rank's input and output are."""

    def __init__(self, problem: Problem, channel: Channel, sendbuf: Any, recvbuf: Any) -> None:
        owed = has_output(problem, channel.rank)
        self.in_place = owed and is_in_place(sendbuf)
        self.slots: dict[int, Memory] = {}
        self._keep: list[Buffer] = []
        if owed:
            output = fitting(problem, channel, recvbuf, writable=True)
            self.slots[Slot.OUTPUT] = output.elements
            self._keep.append(output)
        if self.in_place:
            self.slots[Slot.INPUT] = output.elements
        else:
            given = fitting(problem, channel, sendbuf, writable=False)
            self.slots[Slot.INPUT] = given.elements
            self._keep.append(given)
        self.datatype = self._keep[0].datatype
        if problem.item % (self.datatype.Get_size() or 1):
            raise InvalidArgument(
                f"a schedule for elements of {problem.item} bytes",
                f"the elements of rank {channel.rank} have {self.datatype.Get_size()}",
                "plan with the size of the elements",
            )

    def own_type(self) -> list[MPI.Datatype]:
        """From now on hold on to a type of the user's, who may free it; what to free in the end."""
        if self.datatype.is_predefined:
            return []
        self.datatype = self.datatype.Dup()
        unit = Unit.of(self.datatype)
        self.slots = {slot: replace(memory, unit=unit) for slot, memory in self.slots.items()}
        return [self.datatype]


class Way(NamedTuple):
    """One rank's route, and whether its input has to be kept aside."""

    route: Route
    kept: bool
    scratch: Scratch
    """Of its scratch, the input kept aside included."""


class Ways:
    """One rank's routes, made when they are first asked for."""

    def __init__(self, schedule: Schedule, rank: int) -> None:
        self._operations, self._whole = schedule.rank(rank), schedule.problem.whole
        self._made: dict[tuple[bool, bool], Way] = {}

    def of(self, sharing: bool, operator: Operator) -> Way:
        """The way for an operator, where the input lies where the output will be, or does not."""
        copies = operator.ufunc is None
        if (sharing, copies) not in self._made:
            renamed = in_place(self._operations) if sharing else None
            operations = self._operations if renamed is None else renamed
            way = route(tuple(copying_first(operations)) if copies else operations)
            kept = sharing and renamed is None
            extra = [Copy(Slot.OUTPUT, KEPT, (self._whole,))] if kept else []
            self._made[sharing, copies] = Way(way, kept, Scratch([*way.operations, *extra]))
        return self._made[sharing, copies]


def has_output(problem: Problem, rank: int) -> bool:
    """Whether a rank gets the result of a reduction."""
    return problem.collective in ROOTLESS or rank == problem.root
