"""Repositioning: one permutation moves the sources' data to ideal places, then it is spread.

Ideal are the places from which every round doubles who holds data, as far as that can be: on the
snake, or full rows of the mesh [Hambrusch1998 §3, §5.2].
"""

from collections.abc import Iterator

from collwise.algorithms.s_to_p.ideal_places import Places
from collwise.algorithms.s_to_p.repositioning import register_repositioned
from collwise.algorithms.s_to_p.spreading import Holdings, Spread, reposition
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid


def repositioned(
    spread: Spread, places: Places, grid: Grid, holdings: Holdings, rank: int | None
) -> Iterator[Delivery]:
    """Move, then spread."""
    targets = [grid.rank(inner) for inner in places(grid.shape, len(holdings))]
    deliveries, after = reposition(holdings, targets)
    yield from deliveries
    yield from spread(grid, after, rank)


register_repositioned(
    "repos",
    "moves the sources' data to {places}, then as {then}",
    "one permutation, then that of {then} from ideal places",
    repositioned,
)
