"""What repositioning and partitioning share: ways of spreading, each with its ideal places."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from collwise.algorithms.s_to_p.ideal_places import Places, rows, snake
from collwise.algorithms.s_to_p.spreading import (
    Holdings,
    Spread,
    register_spread,
    spread_mesh_by_sources,
    spread_snake,
)
from collwise.schedule.deliveries import Delivery
from collwise.schedule.grids import Grid

Reposition: TypeAlias = Callable[[Spread, Places, Grid, Holdings, int | None], Iterator[Delivery]]
"""A way to move the sources' data to ideal places, and to spread it from there."""


def register_repositioned(prefix: str, summary: str, time: str, algorithm: Reposition) -> None:
    """Register it for every way of spreading.

    summary, time: with {then} for the algorithm that spreads, and {places} in words.
    """
    for name, spread, places, words in (
        ("lin", spread_snake, snake, "well placed ranks of the snake"),
        ("xy_source", spread_mesh_by_sources, rows, "well placed rows"),
    ):
        register_spread(
            f"{prefix}_{name}",
            summary.format(then=f"br_{name}", places=words),
            ("Hambrusch1998 §3",),
            time.format(then=f"br_{name}"),
            partial(algorithm, spread, places),
            repositions=f"s_to_p/br_{name}",
        )
