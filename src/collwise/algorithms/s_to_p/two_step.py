"""2-Step: every source sends straight to one rank, which broadcasts all of it.

No tree gathers, so that the bottleneck shows that the paper warns of.
"""

from collections.abc import Iterator

from collwise.algorithms.s_to_p.spreading import Held, along_snake, enter_spread, moving
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid, Snake


def two_step(grid: Grid, held: Held, rank: int | None) -> Iterator[Delivery]:
    """All to the first of the snake; from there along it."""
    first = Snake(grid)[0]
    to = dict.fromkeys(held, first)
    yield from moving(held, to)
    everything = tuple(block for blocks in held.values() for block in blocks)
    yield from along_snake(grid, {first: everything}, rank)


enter_spread(
    "two_step",
    "every source sends to one rank, which broadcasts everything along the snake",
    ("Hambrusch1998 §2",),
    "s + ⌈log2 p⌉ rounds, the last ones of all contributions",
    two_step,
)
