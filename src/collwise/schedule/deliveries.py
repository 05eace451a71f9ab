"""Programs for allgatherv, written as one list of deliveries for all ranks.

A delivery is a message of whole contributions from one rank to another.  The list is in an order in
which the deliveries could happen one after another.  A rank's operations are the deliveries that it
sends or receives, in this order.
"""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Rows
from collwise.system.integers import Ints

Blocks: TypeAlias = tuple[Block, ...]
_OWNER = itemgetter(0)


class Delivery(NamedTuple):
    """One message from one rank to another; `needed` sorts its blocks by owner."""

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

    def makes_rows(self) -> bool:
        """True: one pass over the deliveries makes the lists of all ranks."""
        return True

    def given_from(self, first: int, count: int) -> Blocks:
        """The contributions of `count` consecutive ranks from rank `first` on, modulo p."""
        blocks, stop = self.problem.gathered, first + count - self.problem.ranks
        low = bisect_left(blocks, first, key=_OWNER)
        if stop <= 0:
            return blocks[low : bisect_left(blocks, first + count, key=_OWNER)]
        return blocks[low:] + blocks[: bisect_left(blocks, stop, key=_OWNER)]

    @property
    def source_ranks(self) -> Ints:
        """Ranks of the sources, ascending."""
        return np.array([block.owner for block in self.problem.gathered], dtype=np.int64)


class SeparateMessages(Deliveries):
    """A program for allgatherv that sends every contribution as a separate message."""

    @abstractmethod
    def messages(self) -> tuple[Ints, Ints, Ints]:
        """All messages in order, in arrays: source, target, and index in `problem.gathered`."""

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

    def rows(self, *, combines: bool) -> Rows:
        """All messages; each waits until its sender has the contribution."""
        source, target, which = self.messages()
        needed = (source != target) & (self.source_ranks[which] != target)
        source, target, which = source[needed], target[needed], which[needed]
        ranks = np.column_stack((source, target)).ravel()
        order, places = np.argsort(ranks, kind="stable"), np.empty_like(ranks)
        places[order] = np.arange(len(ranks)) - np.searchsorted(ranks[order], ranks[order])
        lengths = np.array([block.length for block in self.problem.gathered], dtype=np.int64)
        waits = self.source_ranks[which] != source
        wanted, brought = source * len(lengths) + which, target * len(lengths) + which
        by_target = np.argsort(brought)
        needs = by_target[np.searchsorted(brought[by_target], wanted[waits])]
        begins = np.append(0, np.cumsum(waits))
        return Rows(source, target, places[::2], places[1::2], lengths[which], begins, needs)


def needed(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """Deliveries to other ranks, blocks sorted by owner, without the target's; none is empty."""
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
