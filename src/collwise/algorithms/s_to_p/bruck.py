"""Bruck's allgather: in round k rank i gets all that rank i + 2^k holds; ⌈log2 p⌉ rounds, any p."""

from collections.abc import Iterator
from dataclasses import dataclass

from collwise.algorithms.s_to_p.spreading import register_s_to_p
from collwise.schedule.deliveries import Deliveries, Delivery


@dataclass(frozen=True)
class Bruck(Deliveries):
    """After the round of distance d rank i holds what ranks i … i + 2d − 1 gave, around the end."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks, contributions = self.problem.ranks, self.problem.gathered
        distance = 1
        while distance < ranks:
            count = min(distance, ranks - distance)
            mine = () if rank is None else (rank, (rank + distance) % ranks)
            for sender in range(ranks) if rank is None else sorted(set(mine)):
                blocks = tuple(b for b in contributions if (b.owner - sender) % ranks < count)
                yield Delivery(sender, (sender - distance) % ranks, blocks)
            distance *= 2


register_s_to_p(
    "bruck",
    "in round k rank i gets all that rank i + 2^k holds",
    ("Bruck1997",),
    "⌈log2 p⌉ rounds",
    lambda problem, _: Bruck(problem),
)
