"""Programs told as deliveries: who sends what to whom, in an order in which it could happen.

Every rank's list is what concerns it, in that order.  For collectives that gather: a message is the
contributions of some sources, each whole.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from collwise.schedule.data import (
    Block,
    Columns,
    Operation,
    Problem,
    Program,
    Recv,
    Send,
    tabulate,
)

Blocks: TypeAlias = tuple[Block, ...]


class Delivery(NamedTuple):
    """One message, blocks in the order of their owners."""

    source: int
    target: int
    blocks: Blocks


@dataclass(frozen=True)
class Deliveries(Program):
    """A program that gathers.  What a rank gave itself is never sent to it, nor an empty message.

    So a source that handed its contribution on to another rank is not sent it again.
    """

    problem: Problem

    @abstractmethod
    def deliveries(self, rank: int | None) -> Iterable[Delivery]:
        """All deliveries; or at least those of one rank, in the same order."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        found: list[Operation] = []
        mine = (t for t in self.deliveries(rank) if rank in t[:2])
        for source, target, blocks in _lacking(mine):
            if source == rank:
                found.append(Send(target, blocks))
            else:
                found.append(Recv(source, blocks))
        return found

    def every(self, ranks: int) -> list[list[Operation]]:  # noqa: D102
        lists: list[list[Operation]] = [[] for _ in range(ranks)]
        for source, target, blocks in _lacking(self.deliveries(None)):
            lists[source].append(Send(target, blocks))
            lists[target].append(Recv(source, blocks))
        return lists

    def columns(self) -> Columns:  # noqa: D102
        gathered = self.problem.gathered
        ends = accumulate((block.length for block in gathered), initial=0)
        starts = {block.owner: start for block, start in zip(gathered, ends, strict=False)}
        return tabulate(self.every(self.problem.ranks), starts)


def _lacking(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """The deliveries without what the target gave itself, and without empty ones."""
    owner = itemgetter(0)
    for transfer in deliveries:
        source, target, blocks = transfer
        lacking = [block for block in blocks if block.owner != target]
        if source == target or not lacking:
            continue
        if len(blocks) == 1:
            yield transfer
        else:
            lacking.sort(key=owner)
            yield Delivery(source, target, tuple(lacking))
