"""Xor: a pairwise exchange in which every source sends the same data to all other ranks.

In turn k the partner of rank i is rank i xor k.  If p is not a power of two, the next
larger power of two gives the number of turns, and a rank without a partner skips the turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.allgatherv.spreading import register_allgatherv
from collwise.schedule.deliveries import Delivery, SeparateMessages
from collwise.system.integers import Ints


@dataclass(frozen=True)
class Xor(SeparateMessages):
    """Every source sends its contribution to every other rank, one after another."""

    def messages(self) -> tuple[Ints, Ints, Ints]:  # noqa: D102
        source_ranks = self.source_ranks
        target = np.bitwise_xor.outer(np.array(self._turns, dtype=np.int64), source_ranks).ravel()
        source, which = (
            np.tile(x, len(self._turns)) for x in (source_ranks, np.arange(len(source_ranks)))
        )
        there = target < self.problem.ranks
        return source[there], target[there], which[there]

    def messages_of(self, rank: int) -> Iterator[Delivery]:  # noqa: D102
        by_owner = {block.owner: (block,) for block in self.problem.gathered}
        turns: Iterable[int] = self._turns
        if rank not in by_owner:
            turns = sorted(rank ^ sender for sender in by_owner)
        for turn in turns:
            for sender in sorted((rank, rank ^ turn)):
                if sender in by_owner and sender ^ turn < self.problem.ranks:
                    yield Delivery(sender, sender ^ turn, by_owner[sender])

    @property
    def _turns(self) -> range:
        return range(1, 1 << (self.problem.ranks - 1).bit_length())


register_allgatherv(
    "xor",
    "every source sends to every rank, in turns of partners i xor k",
    ("Hambrusch1998 §2", "Bruck1997"),
    "p − 1 rounds of one contribution (2^⌈log2 p⌉ − 1 turns)",
    lambda problem, _: Xor(problem),
    searched=False,
)
