"""Combining in groups of ranks, stage after stage, on whole or divided vectors.

Groups of two on whole vectors are recursive doubling.  Groups of two on divided vectors are
recursive halving and doubling.  Mixtures are the hybrids of van de Geijn [vandeGeijn1991 §3].  With
one group of all ranks, every rank sends to every other rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import Blocks, equal_parts
from collwise.schedule.rows import Class
from collwise.system.integers import Ints


class Stage(NamedTuple):
    """One stage of an exchange: groups of `radix` ranks combine whole or divided vectors.

    divided: whether every member combines only its part; the parts are gathered later.
    """

    radix: int
    divided: bool

    def __str__(self) -> str:
        return f"{self.radix}{'d' if self.divided else ''}"


class _Group(NamedTuple):
    """The ranks that exchange in a stage, in order; `place` is this rank's index among them."""

    members: tuple[int, ...]
    place: int


def digit_by_digit(stages: Sequence[Stage], ranks: int) -> Class:
    """One class of all ranks: rank r's peers are those of rank 0, with r added digit by digit.

    Digits are added modulo their radix, without a carry.  The radices are those of the stages; the
    first stage has the lowest digit.
    """
    all_ranks = np.arange(ranks, dtype=np.int64)

    def peers(of_first: Ints) -> Ints:
        table, weight = np.zeros((ranks, len(of_first)), np.int64), 1
        for radix, _ in stages:
            digits = np.add.outer(all_ranks // weight, of_first // weight) % radix
            table += digits * weight
            weight *= radix
        return table

    return Class(0, all_ranks, peers)


@dataclass(frozen=True)
class Exchange(Program):
    """An allreduce, a reduce to (virtual) rank 0 or a reduce-scatter, in groups.

    Ranks are numbered in a mixed radix, and the first stage has the lowest digit.  So a group
    combines adjacent intervals of ranks: everything is combined in rank order, and in the same way
    on all ranks.  If there are e ranks more than the product of the radices, ranks 1, 3, …, 2e − 1
    first send their vectors to the rank before them.  In a reduce, only the first rank of a group
    with whole vectors goes on to the next stage.  In a reduce-scatter, all stages are divided, and
    parts are not gathered.
    """

    problem: Problem
    stages: tuple[Stage, ...]

    @property
    def to_root(self) -> bool:
        """Whether only rank 0 ends with the result."""
        return self.problem.kind.output == "root"

    @property
    def scatters(self) -> bool:
        """Whether every rank ends with its own block only."""
        return self.problem.kind.output == "own block"

    @cached_property
    def extra(self) -> int:
        """Number of ranks beyond the product of the radices."""
        return self.problem.ranks - prod(stage.radix for stage in self.stages)

    def classes(self) -> list[Class] | None:  # noqa: D102
        divisor = prod(stage.radix for stage in self.stages if stage.divided)
        items = self.problem.nbytes // self.problem.itemsize
        uneven = items % divisor or self.extra or self.to_root
        return None if uneven else [digit_by_digit(self.stages, self.problem.ranks)]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        vector = self.problem.vector
        if not vector:
            return []
        paired = rank < 2 * self.extra
        if paired and rank % 2:
            result = () if self.to_root else self._result(rank)
            back = [Recv(rank - 1, result)] * bool(result)
            return [Send(rank - 1, vector, Slot.INPUT), *back]
        in_output = (rank == 0 or not self.to_root) and not (paired and self.scatters)
        writer = _Writer(Slot.OUTPUT if in_output else scratch(0))
        if paired:
            pair = _Group((rank, rank + 1), 0)
            writer.combine(pair, [vector, vector], final=not self.stages)
        number = rank // 2 if paired else rank - self.extra
        self._exchange(writer, number, self._result_blocks if self.scatters else vector)
        if paired and self.scatters:
            writer.operations.append(Copy(writer.value, Slot.OUTPUT, self._result(rank)))
        if paired and not self.to_root:
            writer.operations.append(Send(rank + 1, self._result(rank + 1), writer.value))
        return writer.operations

    def _result(self, rank: int) -> Blocks:
        """The blocks of the result that a (virtual) rank has at the end."""
        return self.problem.output_of(rank) if self.scatters else self.problem.vector

    def _exchange(self, writer: "_Writer", number: int, blocks: Blocks) -> None:
        """Write the operations of all stages for one of the participating ranks.

        number: its index among these.   blocks: the whole vector; in a reduce-scatter, the
        `_result_blocks`.
        """
        ways_back: list[tuple[_Group, list[Blocks]]] = []
        for position, stage in enumerate(self.stages):
            group = self._group(number, position)
            parts = [blocks] * stage.radix
            if stage.divided:
                parts = self._parts(position, blocks)
                blocks = parts[group.place]
                ways_back.append((group, parts))
            if stage.divided or not self.to_root:
                writer.send_parts(group, parts)
            elif group.place:
                writer.send(group, blocks)
                return
            writer.combine(group, parts, final=position == len(self.stages) - 1)
        for group, parts in [] if self.scatters else reversed(ways_back):
            if self.to_root and group.place:
                writer.send(group, parts[group.place])
                return
            writer.allgather(group, parts, sends=not self.to_root)

    def _group(self, number: int, position: int) -> _Group:
        weight, radix = self._weight(position), self.stages[position].radix
        index = number // weight % radix
        first = number - index * weight
        numbers = (first + weight * digit for digit in range(radix))
        return _Group(tuple(n + min(n, self.extra) for n in numbers), index)

    def _weight(self, position: int) -> int:
        """The difference between adjacent members' numbers in the groups of stage `position`."""
        return prod(stage.radix for stage in self.stages[:position])

    def _parts(self, position: int, blocks: Blocks) -> list[Blocks]:
        """The part of each member of a group, in the stage at `position`, which divides the vector.

        In a reduce-scatter, the member with digit d at this stage gets those of the given result
        blocks that belong to ranks with this digit.
        """
        radix = self.stages[position].radix
        if self.scatters:
            return [blocks[digit::radix] for digit in range(radix)]
        (block,) = blocks or (Block(0, 0, 0),)
        return equal_parts(block, radix, self.problem.itemsize)

    @cached_property
    def _result_blocks(self) -> Blocks:
        """For each participating rank: its result block, joined with its paired rank's, if any."""
        length, extra = self.problem.nbytes // self.problem.ranks, self.extra
        paired = [Block(0, 2 * low * length, 2 * length) for low in range(extra)]
        unpaired = [Block(0, low * length, length) for low in range(2 * extra, self.problem.ranks)]
        return tuple(paired + unpaired)


class _Writer:
    """Writes one rank's list, and tracks which slot has the rank's current value.

    result: the slot for the result.
    """

    def __init__(self, result: int) -> None:
        self.operations: list[Operation] = []
        self.value: int = Slot.INPUT
        self.result = result
        self._unused = 1  # scratch 0 is for the result of ranks without an output

    def _new_scratch(self) -> int:
        self._unused += 1
        return scratch(self._unused - 1)

    def send_parts(self, group: _Group, parts: Sequence[Blocks]) -> None:
        """Send every other member its part of the current value, beginning with the next member."""
        for offset in range(1, len(group.members)):
            other = (group.place + offset) % len(group.members)
            self.send(group, parts[other], other)

    def send(self, group: _Group, blocks: Blocks, other: int = 0) -> None:
        """Send blocks of the current value, if any, to the member with index `other`."""
        if blocks:
            self.operations.append(Send(group.members[other], blocks, self.value))

    def combine(self, group: _Group, parts: Sequence[Blocks], *, final: bool) -> None:
        """Receive this member's part from all others, and combine all of them in rank order.

        final: whether to write the result into the slot `result`.
        """
        own_part, count = parts[group.place], len(group.members)
        slots = [self._new_scratch() for _ in range(count)]
        if final:
            slots[-1] = self.result
        slots[group.place] = self.value
        if own_part:
            for offset in range(1, count):
                other = (group.place - offset) % count
                self.operations.append(Recv(group.members[other], own_part, slots[other]))
            for right in slots[1:]:
                into = right
                if final and right == slots[-1]:
                    into = self.result
                elif right == Slot.INPUT:
                    into = self._new_scratch()
                self.operations.append(Combine(slots[0], right, into, own_part))
                slots[0] = into
        self.value = self.result if final else slots[0]

    def allgather(self, group: _Group, parts: Sequence[Blocks], *, sends: bool) -> None:
        """Receive the other members' parts of the result; if `sends`, send them this one's part."""
        for offset in range(1, len(group.members)):
            before = (group.place - offset) % len(group.members)
            after = (group.place + offset) % len(group.members)
            if sends:
                self.send(group, parts[group.place], after)
            if parts[before]:
                message = Recv(group.members[before], parts[before], self.result)
                self.operations.append(message)
