"""2-Step: every source sends its data directly to one rank, which broadcasts everything.

All messages of the gather arrive at one rank.  [Hambrusch1998] warns of this bottleneck.
"""

from collections.abc import Iterator

from collwise.algorithms.allgatherv.spreading import Holdings, register_spread, spread_snake
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid, Snake


def two_step(grid: Grid, holdings: Holdings, rank: int | None) -> Iterator[Delivery]:
    """Deliveries that gather all blocks at the first rank of a `Snake`, then spread them along it.

    rank: after the gather, yield only deliveries that may involve this rank; None for all.
    """
    first = Snake(grid)[0]
    yield from (Delivery(holder, first, blocks) for holder, blocks in holdings.items())
    everything = tuple(block for blocks in holdings.values() for block in blocks)
    yield from spread_snake(grid, {first: everything}, rank)


register_spread(
    "two_step",
    "every source sends to one rank, which broadcasts everything along the snake",
    ("Hambrusch1998 §2",),
    "s + ⌈log2 p⌉ rounds, the last ones of all contributions",
    two_step,
    searched=False,
)
