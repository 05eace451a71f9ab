"""Repositioning and partitioning: sources' data moves to ideal places before it is spread.

Places are ideal if every round doubles the number of holders as long as that is possible: places on
the snake, or full rows of the mesh [Hambrusch1998 §3, §5.2].  Repositioning spreads from there at
once.  Partitioning gives each half of the mesh its share of the sources; both halves spread theirs,
then they swap.
"""

from collections.abc import Iterator
from functools import partial

from collwise.algorithms.s_to_p.ideal_places import Places, rows, snake
from collwise.algorithms.s_to_p.spreading import (
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
    """Move, then spread."""
    targets = [grid.rank(inner) for inner in places(grid.shape, len(holdings))]
    deliveries, after = reposition(holdings, targets)
    yield from deliveries
    yield from spread(grid, after, rank)


def partitioned(
    spread: Spread, places: Places, grid: Grid, holdings: Holdings, rank: int | None
) -> Iterator[Delivery]:
    """Move, spread in each half, swap.  In a grid of one rank there is nothing to do."""
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
    """The i-th of one half with the i-th of the other; who is left over only receives."""
    one, other = halves
    if rank is None:
        numbers = range(one.size)
    else:
        mine = one.inner(rank) if one.has(rank) else other.inner(rank)
        numbers = range(mine, one.size, other.size)  # whom a rank of the smaller half serves
    for inner in numbers:
        a, b = one.rank(inner), other.rank(inner % other.size)
        if inner < other.size:
            yield Delivery(a, b, everything[0])
        yield Delivery(b, a, everything[1])


_WAYS = (
    ("lin", spread_snake, snake, "well placed ranks of the snake"),
    ("xy_source", spread_mesh_by_sources, rows, "well placed rows"),
)
"""Ways of spreading, each with its ideal places, and those in words."""
for _way, _spread, _places, _words in _WAYS:
    register_spread(
        f"part_{_way}",
        f"both halves of the mesh do as br_{_way} from {_words} of theirs, then swap everything",
        ("Hambrusch1998 §3",),
        f"one permutation, br_{_way} on p/2 ranks, one exchange of half of everything",
        partial(partitioned, _spread, _places),
        repositions=f"s_to_p/br_{_way}",
        searched=False,
    )
for _way, _spread, _places, _words in _WAYS:
    register_spread(
        f"repos_{_way}",
        f"moves the sources' data to {_words}, then as br_{_way}",
        ("Hambrusch1998 §3",),
        f"one permutation, then that of br_{_way} from ideal places",
        partial(repositioned, _spread, _places),
        repositions=f"s_to_p/br_{_way}",
        searched=False,
    )
