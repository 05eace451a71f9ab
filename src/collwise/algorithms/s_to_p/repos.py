"""Repositioning: one permutation moves the sources' data to ideal places, then it is spread.

Ideal are the places from which every round doubles who holds data, as far as that can be: on the
snake, or full rows of the mesh [Hambrusch1998 §3, §5.2].
"""

from collections.abc import Iterator
from functools import partial

from collwise.algorithms.gathering import (
    Held,
    Spread,
    across_by_sources,
    after_moving,
    along_snake,
    enter_spread,
    moved,
    moving,
)
from collwise.algorithms.ideal_places import Places, rows, snake
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid


def repositioned(
    spread: Spread, places: Places, grid: Grid, held: Held, rank: int | None
) -> Iterator[Delivery]:
    """Move, then spread."""
    to = moved(held, [grid.rank(inner) for inner in places(grid.shape, len(held))])
    yield from moving(held, to)
    yield from spread(grid, after_moving(held, to), rank)


for _name, _spread, _places, _where in (
    ("lin", along_snake, snake, "well placed ranks of the snake"),
    ("xy_source", across_by_sources, rows, "well placed rows"),
):
    enter_spread(
        f"repos_{_name}",
        f"moves the sources' data to {_where}, then as br_{_name}",
        ("Hambrusch1998 §3",),
        f"one permutation, then that of br_{_name} from ideal places",
        partial(repositioned, _spread, _places),
        repositions=f"s_to_p/br_{_name}",
    )
