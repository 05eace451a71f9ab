"""Scatter, then allgather around a ring in p − 1 steps, for very long messages on few ranks.

The allgather is also known as the bucket algorithm.  Only neighbours exchange messages in it, so a
network that contains a ring has no contention.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

from collwise.algorithms.broadcast.scatter_collect import register_scatter_collect
from collwise.model.limits import RING_RANKS
from collwise.schedule.data_movement import Step


@dataclass(frozen=True)
class Turns:
    """The p − 1 steps of an allgather around a ring of p = `ranks` ranks.

    In each step rank r sends the piece that it received last, at first its own, to rank r − 1.
    """

    ranks: int

    def __len__(self) -> int:
        return self.ranks - 1

    def __iter__(self) -> Iterator[Step]:
        return map(Step, repeat(1), range(1, self.ranks), range(2, self.ranks + 1))


register_scatter_collect(
    "scatter_ring",
    "scatter down a binomial tree, collect around a ring in p − 1 steps",
    "recurrence over ⌈log2 p⌉ + p − 1 rounds; about (p − 1 + log2 p)·α + 2(p − 1)/p·nβ",
    ("vandeGeijn1991 §3", "Barnett1994"),
    Turns,
    most=RING_RANKS,
)
