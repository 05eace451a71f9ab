"""Combining in groups of ranks, stage after stage, whole vectors or parts: one program, many names.

Groups of two are recursive doubling (whole), halving and doubling (divided) and the hybrids of van
de Geijn (some of both) [vandeGeijn1991 §3]; one group of all is "everybody sends to everybody".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import ByRank, Span


class Stage(NamedTuple):
    """One stage of an exchange: groups of `radix` ranks, which combine whole or divided vectors.

    divided: every member combines its part only, and the parts are put together on the way back.
    """

    radix: int
    divided: bool

    def __str__(self) -> str:
        return f"{self.radix}{'d' if self.divided else ''}"


class _Seat(NamedTuple):
    """A rank's place in a stage."""

    members: tuple[int, ...]
    """The ranks of its group, in order."""
    place: int
    """Which of them it is."""


@dataclass(frozen=True)
class Exchange(ByRank):
    """An allreduce, or a reduce to (virtual) rank 0, in groups.

    Ranks are numbered in a mixed radix, the first stage's digit lowest.  So a group combines
    intervals of ranks that lie side by side: everything is combined in the order of the ranks, and
    alike on all of them.  Ranks beyond the product of the radices first hand their vectors to the
    rank before them.  In a reduce, of ranks with whole vectors only the first goes on.
    """

    problem: Problem
    stages: tuple[Stage, ...]

    @property
    def to_root(self) -> bool:
        """Whether only rank 0 ends with the result."""
        return self.problem.collective == "reduce"

    @cached_property
    def extra(self) -> int:
        """How many pairs of ranks, the first ones, have one that only hands its vector over."""
        return self.problem.ranks - prod(stage.radix for stage in self.stages)

    def is_alike(self) -> bool:
        """Whether all ranks do the same, each relative to its own place."""
        divisor = prod(stage.radix for stage in self.stages if stage.divided)
        items = self.problem.nbytes // self.problem.itemsize
        return items % divisor == 0 and not self.extra and not self.to_root

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        whole = Span(0, self.problem.nbytes)
        if not whole.blocks:
            return []
        paired = rank < 2 * self.extra
        if paired and rank % 2:
            back = [] if self.to_root else [Recv(rank - 1, whole.blocks)]
            return [Send(rank - 1, whole.blocks, Slot.INPUT), *back]
        has_output = rank == 0 or not self.to_root
        told = _Telling(Slot.OUTPUT if has_output else scratch(0))
        if paired:
            told.combine(_Seat((rank, rank + 1), 0), [whole, whole], final=not self.stages)
        self._exchange(told, rank // 2 if paired else rank - self.extra, whole)
        if paired and not self.to_root:
            told.operations.append(Send(rank + 1, whole.blocks))
        return told.operations

    def _exchange(self, told: "_Telling", number: int, span: Span) -> None:
        """All stages of the rank with this number among those that take part."""
        ways_back: list[tuple[_Seat, list[Span]]] = []
        for position, stage in enumerate(self.stages):
            seat = self._seat(number, position)
            parts = [span] * stage.radix
            if stage.divided:
                parts = span.parts(stage.radix, self.problem.itemsize)
                span = parts[seat.place]
                ways_back.append((seat, parts))
            if stage.divided or not self.to_root:
                told.send(seat, parts)
            elif seat.place:
                told.give(seat, span)
                return
            told.combine(seat, parts, final=position == len(self.stages) - 1)
        for seat, parts in reversed(ways_back):
            if self.to_root and seat.place:
                told.give(seat, parts[seat.place])
                return
            told.gather(seat, parts, answers=not self.to_root)

    def _seat(self, number: int, position: int) -> _Seat:
        weight, radix = prod(s.radix for s in self.stages[:position]), self.stages[position].radix
        index = number // weight % radix
        first = number - index * weight
        numbers = (first + weight * digit for digit in range(radix))
        return _Seat(tuple(n + min(n, self.extra) for n in numbers), index)


class _Telling:
    """One rank's list as it is written: where its value lies now, which scratch is still new."""

    def __init__(self, result: int) -> None:
        self.operations: list[Operation] = []
        self.value: int = Slot.INPUT
        self.result = result
        self._new = 1  # scratch 0 is for the result of ranks without an output

    def _fresh(self) -> int:
        self._new += 1
        return scratch(self._new - 1)

    def send(self, seat: _Seat, parts: Sequence[Span]) -> None:
        """To every other member its part, the next one in the circle first."""
        for offset in range(1, len(seat.members)):
            other = (seat.place + offset) % len(seat.members)
            self.give(seat, parts[other], other)

    def give(self, seat: _Seat, span: Span, other: int = 0) -> None:
        """Send a span of the value to one member."""
        if span.blocks:
            self.operations.append(Send(seat.members[other], span.blocks, self.value))

    def combine(self, seat: _Seat, parts: Sequence[Span], *, final: bool) -> None:
        """Receive this member's part from all others, and combine it in the order of the ranks."""
        mine, count = parts[seat.place].blocks, len(seat.members)
        slots = [self._fresh() for _ in range(count)]
        if final:
            slots[-1] = self.result
        slots[seat.place] = self.value
        if mine:
            for offset in range(1, count):
                other = (seat.place - offset) % count
                self.operations.append(Recv(seat.members[other], mine, slots[other]))
            for right in slots[1:]:
                into = right
                if final and right == slots[-1]:
                    into = self.result
                elif right == Slot.INPUT:
                    into = self._fresh()
                self.operations.append(Combine(slots[0], right, into, mine))
                slots[0] = into
        self.value = self.result if final else slots[0]

    def gather(self, seat: _Seat, parts: Sequence[Span], *, answers: bool) -> None:
        """Receive all other parts of the result, and send everybody one's own if asked to."""
        for offset in range(1, len(seat.members)):
            before = (seat.place - offset) % len(seat.members)
            after = (seat.place + offset) % len(seat.members)
            if answers:
                self.give(seat, parts[seat.place], after)
            if parts[before].blocks:
                message = Recv(seat.members[before], parts[before].blocks, self.result)
                self.operations.append(message)
