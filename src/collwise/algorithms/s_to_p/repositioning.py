"""What repositioning and partitioning share: ways of spreading, each with its ideal places."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from collwise.algorithms.s_to_p.ideal_places import Places, rows, snake
from collwise.algorithms.s_to_p.spreading import (
    Held,
    Spread,
    across_by_sources,
    along_snake,
    enter_spread,
)
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid

Moving: TypeAlias = Callable[[Spread, Places, Grid, Held, int | None], Iterator[Delivery]]
"""A way to move the sources' data to ideal places, and to spread it from there."""


def enter_moving(prefix: str, summary: str, time: str, moving: Moving) -> None:
    """Register it for every way of spreading.

    summary, time: with {then} for the algorithm that spreads, and {places} in words.
    """
    for name, spread, places, words in (
        ("lin", along_snake, snake, "well placed ranks of the snake"),
        ("xy_source", across_by_sources, rows, "well placed rows"),
    ):
        enter_spread(
            f"{prefix}_{name}",
            summary.format(then=f"br_{name}", places=words),
            ("Hambrusch1998 §3",),
            time.format(then=f"br_{name}"),
            partial(moving, spread, places),
            repositions=f"s_to_p/br_{name}",
        )
