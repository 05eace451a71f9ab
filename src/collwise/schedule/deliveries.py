"""Programs for allgatherv, written as one list of deliveries for all ranks.

A delivery is a message of whole contributions from one rank to another.  The list is in an order in
which the deliveries could happen one after another.  A rank's operations are the deliveries that it
sends or receives, in this order.
"""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Columns
from collwise.system.integers import Ints

Blocks: TypeAlias = tuple[Block, ...]
_OWNER = _BEGIN = itemgetter(0)
_LENGTH = itemgetter(2)


class Delivery(NamedTuple):
    """One message from one rank to another; its blocks are in the order of their owners."""

    source: int
    target: int
    blocks: Blocks


@dataclass(frozen=True)
class Deliveries(Program):
    """A program for allgatherv, defined by one list of deliveries for all ranks.

    A rank never receives its own contribution.  Empty messages are left out.
    """

    problem: Problem

    @abstractmethod
    def deliveries(self, rank: int | None) -> Iterable[Delivery]:
        """All deliveries in order; if a rank is given, at least those that it sends or receives."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations: list[Operation] = []
        mine = (t for t in self.deliveries(rank) if rank in t[:2])
        for source, target, blocks in needed(mine):
            if source == rank:
                operations.append(Send(target, blocks))
            else:
                operations.append(Recv(source, blocks))
        return operations

    def every(self, ranks: int) -> list[list[Operation]]:  # noqa: D102
        lists: list[list[Operation]] = [[] for _ in range(ranks)]
        for source, target, blocks in needed(self.deliveries(None)):
            lists[source].append(Send(target, blocks))
            lists[target].append(Recv(source, blocks))
        return lists

    def columns(self) -> Columns:  # noqa: D102
        number = {block.owner: at for at, block in enumerate(self.problem.gathered)}
        messages: list[tuple[int, int, int]] = []
        parts: list[tuple[int, int]] = []
        before: Blocks = ()  # consecutive deliveries often have equal blocks
        whole: list[tuple[int, int]] = []
        for source, target, blocks in self.deliveries(None):
            if blocks is not before:
                before, whole = blocks, _runs(number[block.owner] for block in blocks)
            carried = _without(whole, number.get(target))
            if source != target and carried:
                messages.append((source, target, len(carried)))
                parts += carried
        table = np.array(messages, dtype=np.int64).reshape(-1, 3)
        first, stop = np.array(parts, dtype=np.int64).reshape(-1, 2).T
        return self._columns(table[:, 0], table[:, 1], table[:, 2], first, stop)

    def given_from(self, first: int, count: int) -> Blocks:
        """The contributions of `count` consecutive ranks, the first being `first`, modulo p."""
        blocks, stop = self.problem.gathered, first + count - self.problem.ranks
        low = bisect_left(blocks, first, key=_OWNER)
        if stop <= 0:
            return blocks[low : bisect_left(blocks, first + count, key=_OWNER)]
        return blocks[low:] + blocks[: bisect_left(blocks, stop, key=_OWNER)]

    @property
    def source_ranks(self) -> Ints:
        """Ranks of the sources, ascending."""
        return np.array([block.owner for block in self.problem.gathered], dtype=np.int64)

    def _columns(
        self, source: Ints, target: Ints, rows: Ints | int, first: Ints, stop: Ints
    ) -> Columns:
        """Columns of the given messages; consecutive contributions in a message share a row.

        rows: number of rows per message.   first, stop: per row, message by message, the range of
        contribution indices [first, stop).
        """
        ranks = np.column_stack((source, target)).ravel()
        order = np.argsort(ranks, kind="stable")
        places = np.empty_like(ranks)
        places[order] = np.arange(len(ranks)) - np.searchsorted(ranks[order], ranks[order])
        lengths = [block.length for block in self.problem.gathered]
        begins = np.concatenate(([0], np.cumsum(np.array(lengths, dtype=np.int64))))
        source, target, at_source, at_target = (
            np.repeat(column, rows) for column in (source, target, places[::2], places[1::2])
        )
        low, high = begins[first], begins[stop]
        return Columns(source, target, at_source, at_target, low, high - low)


class SeparateMessages(Deliveries):
    """A program for allgatherv that sends every contribution as a separate message."""

    @abstractmethod
    def messages(self) -> tuple[Ints, Ints, Ints]:
        """All messages in order: sources, targets, and contributions (indices in `gathered`)."""

    @abstractmethod
    def messages_of(self, rank: int) -> Iterable[Delivery]:
        """All messages of one rank, in order; other ranks' messages may be among them."""

    def deliveries(self, rank: int | None) -> Iterable[Delivery]:  # noqa: D102
        if rank is not None:
            return self.messages_of(rank)
        contributions = [(block,) for block in self.problem.gathered]
        messages = zip(*(row.tolist() for row in self.messages()), strict=True)
        return (
            Delivery(source, target, contributions[which]) for source, target, which in messages
        )

    def columns(self) -> Columns:  # noqa: D102
        source, target, which = self.messages()
        needed = (source != target) & (self.source_ranks[which] != target)
        source, target, which = source[needed], target[needed], which[needed]
        return self._columns(source, target, 1, which, which + 1)


def needed(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """The deliveries without blocks that the target itself contributed; empty ones are left out."""
    for delivery in deliveries:
        source, target, blocks = delivery
        needed = [block for block in blocks if block.owner != target]
        if source == target or not needed:
            continue
        if len(blocks) == 1:
            yield delivery
        else:
            needed.sort(key=_OWNER)
            yield Delivery(source, target, tuple(needed))


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted runs of consecutive numbers, as half-open pairs (first, stop)."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        begins = number
        if runs and runs[-1][1] == number:
            begins, _ = runs.pop()
        runs.append((begins, number + 1))
    return runs


def _without(runs: list[tuple[int, int]], number: int | None) -> list[tuple[int, int]]:
    """The half-open runs, with one number removed."""
    at = -1 if number is None else bisect_right(runs, number, key=_BEGIN) - 1
    if number is None or at < 0 or number >= runs[at][1]:
        return runs
    begin, end = runs[at]
    parts = [part for part in ((begin, number), (number + 1, end)) if part[0] < part[1]]
    return [*runs[:at], *parts, *runs[at + 1 :]]
