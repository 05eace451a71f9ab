"""Partitioning: both halves of the mesh spread half of the sources, then they swap.

Each half gets its share of the sources at places that are ideal in it [Hambrusch1998 §3].
"""

from collections.abc import Iterator

from collwise.algorithms.s_to_p.ideal_places import Places
from collwise.algorithms.s_to_p.repositioning import register_repositioned
from collwise.algorithms.s_to_p.spreading import Holdings, Spread, reposition
from collwise.schedule.deliveries import Blocks, Delivery
from collwise.schedule.grids import Grid


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


register_repositioned(
    "part",
    "both halves of the mesh do as {then} from {places} of theirs, then swap everything",
    "one permutation, {then} on p/2 ranks, one exchange of half of everything",
    partitioned,
)
