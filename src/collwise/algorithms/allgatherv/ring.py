"""Ring allgather: every contribution is sent from rank to next rank, in p − 1 hops.

MPI libraries use this algorithm for long contributions, whichever ranks have data.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.allgatherv.spreading import register_allgatherv
from collwise.schedule.deliveries import Delivery, SeparateMessages
from collwise.schedule.rows import Class, around_a_circle
from collwise.system.integers import Ints


@dataclass(frozen=True)
class Ring(SeparateMessages):
    """In turn t rank i sends the contribution of rank i − t to rank i + 1."""

    def classes(self) -> list[Class] | None:  # noqa: D102
        return [around_a_circle(self.problem.ranks)] if self.problem.all_give_alike else None

    def messages(self) -> tuple[Ints, Ints, Ints]:  # noqa: D102
        ranks, source_ranks = self.problem.ranks, self.source_ranks
        turns = np.arange(ranks - 1)
        source = np.add.outer(turns, source_ranks).ravel() % ranks
        return source, (source + 1) % ranks, np.tile(np.arange(len(source_ranks)), len(turns))

    def messages_of(self, rank: int) -> Iterator[Delivery]:  # noqa: D102
        ranks = self.problem.ranks
        by_owner = {block.owner: (block,) for block in self.problem.gathered}
        for turn in self._turns(rank):
            for owner in sorted({(rank - turn - d) % ranks for d in (0, 1)} & by_owner.keys()):
                sender = (owner + turn) % ranks
                yield Delivery(sender, (sender + 1) % ranks, by_owner[owner])

    def _turns(self, rank: int) -> list[int]:
        """The turns in which `rank` sends or receives a message."""
        ranks = self.problem.ranks
        turns = {(rank - b.owner) % ranks - d for b in self.problem.gathered for d in (0, 1)}
        return sorted(turn for turn in turns if 0 <= turn < ranks - 1)


register_allgatherv(
    "ring",
    "every contribution goes around a ring of all ranks",
    ("Thakur2005",),
    "p − 1 rounds of one contribution",
    lambda problem, _: Ring(problem),
    alike=True,
    usual=True,
)
