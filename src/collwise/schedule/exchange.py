"""Combining in groups of ranks, stage after stage, on whole or divided vectors.

Allreduces in groups of two are recursive doubling on whole vectors, and recursive halving and
doubling on divided vectors.  Mixtures are the hybrids of van de Geijn [vandeGeijn1991 §3].  In an
allreduce with one group of all ranks, every rank sends to all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem, brackets
from collwise.schedule.program import Program
from collwise.schedule.reduction import Blocks, equal_parts
from collwise.schedule.rows import Class
from collwise.system.integers import Ints


class Stage(NamedTuple):
    """One stage of an exchange: groups of `radix` ranks combine whole or divided vectors.

    divided: whether a member combines only its part; allreduces and reduces gather parts later.
    """

    radix: int
    divided: bool

    def __str__(self) -> str:
        return f"{self.radix}{'d' if self.divided else ''}"


class _Group(NamedTuple):
    """The ranks that exchange in a stage, in order.

    place: this rank's index.   lead: the index of the member that gets the result of a reduce.
    """

    members: tuple[int, ...]
    place: int
    lead: int = 0


def digit_by_digit(stages: Sequence[Stage], ranks: int) -> Class:
    """All ranks as one `Class`: rank r's peers are those of rank 0, with r added digit by digit.

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
    """An allreduce, a reduce or a reduce-scatter, in groups of ranks that exchange and combine.

    Ranks are numbered in a mixed radix, and the first stage has the lowest digit.  So a group
    combines adjacent intervals of ranks: everything is combined in rank order, and in the same way
    on all ranks.  There may be e ranks more than the product of the radices.  Then each rank
    2i + 1 < 2e first sends its vector to rank 2i; if rank 2i + 1 is the root, rank 2i sends
    instead.  A group combines with the brackets of the order "fixed".  The whole program has these
    brackets if every radix but the last is a power of two, and also the last one if e > 0.  In a
    reduce, after a stage on whole vectors, only the member with the root's digit goes on.  In a
    reduce-scatter, all stages are divided, and parts are not gathered.  An *index* is a rank in the
    user's numbering.
    """

    problem: Problem
    stages: tuple[Stage, ...]

    @property
    def to_root(self) -> bool:
        """Whether only the root ends with the result."""
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
        index = (rank + self.problem.root) % self.problem.ranks
        paired = index < 2 * self.extra
        number, other = self._number(index), self._virtual(index ^ 1)
        if index != self._index(number):
            result = () if self.to_root else self._result(index)
            back = [Recv(other, result)] * bool(result)
            return [Send(other, vector, Slot.INPUT), *back]
        in_output = (rank == 0 or not self.to_root) and not (paired and self.scatters)
        writer = _Writer(Slot.OUTPUT if in_output else scratch(0))
        if paired:
            pair = _Group((other, rank) if index % 2 else (rank, other), index % 2)
            writer.combine(pair, [vector, vector], final=not self.stages)
        self._exchange(writer, number, self._result_blocks if self.scatters else vector)
        if paired and self.scatters:
            writer.operations.append(Copy(writer.value, Slot.OUTPUT, self._result(index)))
        if paired and not self.to_root:
            writer.operations.append(Send(other, self._result(index + 1), writer.value))
        return writer.operations

    def _virtual(self, index: int) -> int:
        return (index - self.problem.root) % self.problem.ranks

    def _number(self, index: int) -> int:
        """The number of a rank among the participants; a pair of ranks has one number."""
        return index // 2 if index < 2 * self.extra else index - self.extra

    def _index(self, number: int) -> int:
        """The index of a participant: the lower one of a pair, unless the other one is the root."""
        index = number + min(number, self.extra)
        return index + (number < self.extra and self.problem.root == index + 1)

    def _result(self, index: int) -> Blocks:
        """The blocks of the result that a rank has at the end."""
        return self.problem.output_of(index) if self.scatters else self.problem.vector

    def _exchange(self, writer: "_Writer", number: int, blocks: Blocks) -> None:
        """Write the operations of all stages for one of the participating ranks.

        number: the rank's number among the participants.   blocks: the whole vector; in a
        reduce-scatter, the `_result_blocks`.
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
            elif group.place != group.lead:
                writer.send(group, blocks, group.lead)
                return
            writer.combine(group, parts, final=position == len(self.stages) - 1)
        for group, parts in [] if self.scatters else reversed(ways_back):
            if self.to_root and group.place != group.lead:
                writer.send(group, parts[group.place], group.lead)
                return
            writer.allgather(group, parts, sends=not self.to_root)

    def _group(self, number: int, position: int) -> _Group:
        weight, radix = self._weight(position), self.stages[position].radix
        place, lead = (n // weight % radix for n in (number, self._number(self.problem.root)))
        first = number - place * weight
        numbers = range(first, first + weight * radix, weight)
        return _Group(tuple(self._virtual(self._index(n)) for n in numbers), place, lead)

    def _weight(self, position: int) -> int:
        """The difference between adjacent members' numbers in the groups of stage `position`."""
        return prod(stage.radix for stage in self.stages[:position])

    def _parts(self, position: int, blocks: Blocks) -> list[Blocks]:
        """The part of each member of a group, in the stage at `position`, which divides the vector.

        In a reduce-scatter, the member with digit d at this stage gets the given result blocks that
        belong to ranks with digit d.
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
        """Send the other members their parts of the current value, beginning with the next one."""
        for offset in range(1, len(group.members)):
            other = (group.place + offset) % len(group.members)
            self.send(group, parts[other], other)

    def send(self, group: _Group, blocks: Blocks, other: int) -> None:
        """Send blocks of the current value, if any, to the member with index `other`."""
        if blocks:
            self.operations.append(Send(group.members[other], blocks, self.value))

    def combine(self, group: _Group, parts: Sequence[Blocks], *, final: bool) -> None:
        """Receive the other members' values of this rank's part; combine all values by `brackets`.

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
            for left, right in brackets(count):
                into = slots[right]
                if final and right == count - 1:
                    into = self.result
                elif into == Slot.INPUT:
                    into = self._new_scratch()
                self.operations.append(Combine(slots[left], slots[right], into, own_part))
                slots[right] = into
        self.value = self.result if final else slots[-1]

    def allgather(self, group: _Group, parts: Sequence[Blocks], *, sends: bool) -> None:
        """Receive the other members' parts of the result; if `sends`, send this rank's part."""
        for offset in range(1, len(group.members)):
            before = (group.place - offset) % len(group.members)
            after = (group.place + offset) % len(group.members)
            if sends:
                self.send(group, parts[group.place], after)
            if parts[before]:
                message = Recv(group.members[before], parts[before], self.result)
                self.operations.append(message)
