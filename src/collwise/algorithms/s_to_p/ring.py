"""Ring: every contribution goes from neighbour to neighbour, p − 1 hops.

What MPI libraries run for long allgathervs, whoever has data.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collwise.algorithms.s_to_p.spreading import register_s_to_p
from collwise.schedule.deliveries import Deliveries, Delivery


@dataclass(frozen=True)
class Ring(Deliveries):
    """In turn t rank i sends on what rank i − t gave."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks = self.problem.ranks
        own = {block.owner: (block,) for block in self.problem.gathered}
        for turn in range(ranks - 1) if rank is None else self._turns(rank):
            mine = () if rank is None else ((rank - turn) % ranks, (rank - turn - 1) % ranks)
            for owner in own if rank is None else sorted(own.keys() & mine):
                sender = (owner + turn) % ranks
                yield Delivery(sender, (sender + 1) % ranks, own[owner])

    def _turns(self, rank: int) -> list[int]:
        """The turns in which a rank receives or sends anything."""
        ranks = self.problem.ranks
        turns = {(rank - b.owner) % ranks - d for b in self.problem.gathered for d in (0, 1)}
        return sorted(turn for turn in turns if 0 <= turn < ranks - 1)


register_s_to_p(
    "ring",
    "every contribution goes around a ring of all ranks",
    ("Thakur2005",),
    "p − 1 rounds of one contribution",
    lambda problem, _: Ring(problem),
)
