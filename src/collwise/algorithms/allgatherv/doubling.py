"""Recursive doubling: in round k rank i swaps all data that it holds with rank i xor 2^k.

If p is no power of two, each rank beyond the largest power of two first sends its data to a
partner, and receives all data from the partner at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collwise.algorithms.allgatherv.spreading import register_allgatherv
from collwise.schedule.deliveries import Deliveries, Delivery
from collwise.schedule.operations import Block


@dataclass(frozen=True)
class Doubling(Deliveries):
    """Recursive doubling on the first 2^k ranks; the partner of a rank i >= 2^k is i − 2^k."""

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks, contributions = self.problem.ranks, self.problem.gathered
        cube = 1 << (ranks.bit_length() - 1)
        for block in contributions:
            if block.owner >= cube:
                yield Delivery(block.owner, block.owner - cube, (block,))
        inside = 0 if rank is None else rank % cube
        distance = 1
        while distance < cube:
            groups: dict[int, list[Block]] = {}
            for block in contributions:
                groups.setdefault(block.owner % cube // distance, []).append(block)
            for member in range(cube) if rank is None else sorted((inside, inside ^ distance)):
                if (blocks := groups.get(member // distance)) is not None:
                    yield Delivery(member, member ^ distance, tuple(blocks))
            distance *= 2
        represented = inside + cube
        partner = range(represented, min(represented + 1, ranks))
        for late in range(cube, ranks) if rank is None else partner:
            yield Delivery(late - cube, late, contributions)


register_allgatherv(
    "recursive_doubling",
    "in round k rank i swaps all that it holds with rank i xor 2^k",
    ("Thakur2005",),
    "⌈log2 p⌉ rounds (2 more unless p is a power of two)",
    lambda problem, _: Doubling(problem),
    usual=True,
)
