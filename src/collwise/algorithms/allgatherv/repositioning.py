"""Repositioning and partitioning: sources send their data to ideal ranks, which then spread it.

Ranks are ideal if every round doubles the number of ranks with data as long as possible: ranks on
the snake through the mesh, or full rows [Hambrusch1998 §3, §5.2].  Repositioning spreads the data
from the ideal ranks in the whole mesh.  Partitioning gives each half of the mesh its share of the
sources; each half spreads its data, then the halves swap all data.
"""

from collections.abc import Iterator
from functools import partial

from collwise.algorithms.allgatherv.ideal_places import Places, rows, snake
from collwise.algorithms.allgatherv.spreading import (
    Holdings,
    Spread,
    register_spread,
    reposition,
    spread_mesh_by_sources,
    spread_snake,
)
from collwise.schedule.deliveries import Blocks, Delivery
from collwise.schedule.grids import Grid


def repositioned(
    spread: Spread, places: Places, grid: Grid, holdings: Holdings, rank: int | None
) -> Iterator[Delivery]:
    """Deliveries that move the data to ideal ranks, then spread it in the whole grid.

    spread: yields the deliveries of the spreading.   places: returns the ideal ranks.
    rank: yield all moves, but only the spreading's deliveries for this rank; None for all.
    """
    targets = [grid.rank(inner) for inner in places(grid.shape, len(holdings))]
    deliveries, after = reposition(holdings, targets)
    yield from deliveries
    yield from spread(grid, after, rank)


def partitioned(
    spread: Spread, places: Places, grid: Grid, holdings: Holdings, rank: int | None
) -> Iterator[Delivery]:
    """Deliveries that move the data to ideal ranks of both halves, spread it in each, then swap.

    rank: yield all moves, but only later deliveries that may involve this rank; None for all.
    """
    if grid.size == 1:
        return
    halves = grid.halves()
    first = -(-len(holdings) * halves[0].size // grid.size)
    shares = (first, len(holdings) - first)
    targets = [
        half.rank(inner)
        for half, share in zip(halves, shares, strict=True)
        if share
        for inner in places(half.shape, share)
    ]
    deliveries, after = reposition(holdings, targets)
    yield from deliveries
    inside = [{r: blocks for r, blocks in after.items() if half.has(r)} for half in halves]
    for half, holding in zip(halves, inside, strict=True):
        if rank is None or half.has(rank):
            yield from spread(half, holding, rank)
    everything = [tuple(b for blocks in each.values() for b in blocks) for each in inside]
    yield from _swap(halves, everything, rank)


def _swap(
    halves: tuple[Grid, Grid], everything: list[Blocks], rank: int | None
) -> Iterator[Delivery]:
    """Deliveries in which the i-th ranks of both halves swap all blocks of their halves.

    If the first half is larger, its surplus ranks only receive.   everything: the blocks of each
    half.   rank: yield only deliveries that may involve this rank; None for all.
    """
    larger, smaller = halves
    if rank is None:
        numbers = range(larger.size)
    else:
        number = larger.inner(rank) if larger.has(rank) else smaller.inner(rank)
        numbers = range(number, larger.size, smaller.size)  # in `larger`: the rank's or partners'
    for inner in numbers:
        a, b = larger.rank(inner), smaller.rank(inner % smaller.size)
        if inner < smaller.size:
            yield Delivery(a, b, everything[0])
        yield Delivery(b, a, everything[1])


_WAYS = (
    ("lin", spread_snake, snake, "well placed ranks of the snake"),
    ("xy_source", spread_mesh_by_sources, rows, "well placed rows"),
)
"""Ways of spreading: the name, the function that spreads, the function that returns ideal ranks,
and these ranks in words."""
for _way, _spread, _places, _words in _WAYS:
    register_spread(
        f"part_{_way}",
        f"move data to {_words} of each half, br_{_way} in each half, then swap everything",
        ("Hambrusch1998 §3",),
        f"one permutation, br_{_way} on p/2 ranks, one exchange of half of everything",
        partial(partitioned, _spread, _places),
        repositions=f"allgatherv/br_{_way}",
        searched=False,
    )
for _way, _spread, _places, _words in _WAYS:
    register_spread(
        f"repos_{_way}",
        f"move the sources' data to {_words}, then br_{_way}",
        ("Hambrusch1998 §3",),
        f"one permutation, then that of br_{_way} from ideal places",
        partial(repositioned, _spread, _places),
        repositions=f"allgatherv/br_{_way}",
        searched=False,
    )
