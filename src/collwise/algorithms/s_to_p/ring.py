"""Ring: every contribution goes from neighbour to neighbour, p − 1 hops.

What MPI libraries run for long allgathervs, whoever has data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collwise.algorithms.gathering import enter
from collwise.schedule.deliveries import Deliveries, Delivery


@dataclass(frozen=True)
class Ring(Deliveries):
    """In turn t rank i sends on what rank i − t gave."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks, given = self.problem.ranks, self.problem.gathered
        own = {block.owner: (block,) for block in given}
        for turn in range(ranks - 1) if rank is None else self._turns(rank):
            owners: Iterable[int] = own
            if rank is not None:
                owners = sorted({(rank - turn - d) % ranks for d in (0, 1)} & own.keys())
            for owner in owners:
                sender = (owner + turn) % ranks
                yield Delivery(sender, (sender + 1) % ranks, own[owner])

    def _turns(self, rank: int) -> list[int]:
        """The turns in which a rank receives or sends anything."""
        ranks = self.problem.ranks
        turns = {(rank - b.owner) % ranks - d for b in self.problem.gathered for d in (0, 1)}
        return sorted(turn for turn in turns if 0 <= turn < ranks - 1)


enter(
    "ring",
    "every contribution goes around a ring of all ranks",
    ("Thakur2005",),
    "p − 1 rounds of one contribution",
    lambda problem, _: Ring(problem),
)
