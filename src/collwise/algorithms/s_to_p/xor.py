"""Xor: a personalised all-to-all in which only sources send, partner by partner.

In turn k rank i is with rank i xor k.  If p is no power of two there are turns enough for the next
one, and partners beyond the last rank are skipped.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collwise.algorithms.s_to_p.spreading import register_s_to_p
from collwise.schedule.deliveries import Deliveries, Delivery


@dataclass(frozen=True)
class Xor(Deliveries):
    """Every source to everybody."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks = self.problem.ranks
        own = {block.owner: (block,) for block in self.problem.gathered}
        turns: Iterable[int] = range(1, 1 << (ranks - 1).bit_length())
        if rank is not None and rank not in own:
            turns = sorted(rank ^ sender for sender in own)
        for turn in turns:
            for sender in own if rank is None else sorted(own.keys() & {rank, rank ^ turn}):
                if sender ^ turn < ranks:
                    yield Delivery(sender, sender ^ turn, own[sender])


register_s_to_p(
    "xor",
    "every source sends to every rank, in turns of partners i xor k",
    ("Hambrusch1998 §2", "Bruck1997"),
    "p − 1 rounds of one contribution (2^⌈log2 p⌉ − 1 turns)",
    lambda problem, _: Xor(problem),
)
