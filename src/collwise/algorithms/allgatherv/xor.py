"""Xor: a pairwise exchange, as for an all-to-all, in which only sources send.

In turn k the partner of rank i is rank i xor k.  If p is not a power of two, there are as many
turns as for the next larger power, and ranks without a partner skip the turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collwise.algorithms.allgatherv.spreading import register_allgatherv
from collwise.schedule.deliveries import Deliveries, Delivery


@dataclass(frozen=True)
class Xor(Deliveries):
    """Every source sends its contribution to every other rank, one after another."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        by_owner = {block.owner: (block,) for block in self.problem.gathered}
        turns: Iterable[int] = range(1, 1 << (self.problem.ranks - 1).bit_length())
        if rank is not None and rank not in by_owner:
            turns = sorted(rank ^ sender for sender in by_owner)
        for turn in turns:
            for sender in by_owner if rank is None else sorted((rank, rank ^ turn)):
                if sender in by_owner and sender ^ turn < self.problem.ranks:
                    yield Delivery(sender, sender ^ turn, by_owner[sender])


register_allgatherv(
    "xor",
    "every source sends to every rank, in turns of partners i xor k",
    ("Hambrusch1998 §2", "Bruck1997"),
    "p − 1 rounds of one contribution (2^⌈log2 p⌉ − 1 turns)",
    lambda problem, _: Xor(problem),
    searched=False,
)
