"""Building blocks of allgathervs: spreading along lines and over meshes, and repositioning.

A rank holds a tuple of blocks, each the whole contribution of a source.  If the argument
`rank` of a function is None, the function yields all deliveries.  Otherwise it may leave out
deliveries in which `rank` takes no part; mostly it takes O(s log p) time and no lists of length p.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.limits import MAX_RECEIVED
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Blocks, Deliveries, Delivery
from collwise.schedule.grids import Grid, Snake
from collwise.schedule.problem import Problem

Holdings: TypeAlias = Mapping[int, Blocks]
"""A map from a rank to the blocks that it holds; ranks without blocks are left out."""
Spread: TypeAlias = Callable[[Grid, Holdings, int | None], Iterator[Delivery]]
"""A function that yields the deliveries after which all ranks of a grid hold all blocks.

If a rank is given, only deliveries in which this rank may take part are needed.
"""


def spread_line(line: Sequence[int], holdings: Holdings, rank: int | None) -> Iterator[Delivery]:
    """Deliveries along a line of ranks: its halves swap their blocks, then so do halves of halves.

    Of n ranks in a line the i-th swaps with the (i + ⌈n/2⌉)-th.  If n is odd, the middle rank has
    no partner: it sends its blocks to the next rank, the first one of the second half, and receives
    nothing.  Each half then holds every contribution exactly once [Hambrusch1998 §2].
    rank: yield only deliveries that may involve this rank; None for all.
    """
    here = None if rank is None else line.index(rank)
    halves = [(0, len(line), {line.index(r): blocks for r, blocks in holdings.items()})]
    while parts := [
        (low, n, holding)
        for low, n, holding in halves
        if n > 1 and (here is None or low <= here < low + n)
    ]:
        halves = []
        for low, n, holding in parts:
            middle = low + (n + 1) // 2
            first: dict[int, Blocks] = {}
            second: dict[int, Blocks] = {}
            for at, blocks in sorted(holding.items()):
                kept, sent = (first, second) if at < middle else (second, first)
                to = at - middle + low if at >= middle else min(at - low + middle, low + n)
                if to == low + n:
                    to = middle
                if here is None or here in (at, to):
                    yield Delivery(line[at], line[to], blocks)
                kept[at] = kept.get(at, ()) + blocks
                sent[to] = sent.get(to, ()) + blocks
            halves += [(low, middle - low, first), (middle, low + n - middle, second)]


def spread_snake(grid: Grid, holdings: Holdings, rank: int | None) -> Iterator[Delivery]:
    """Deliveries along the snake through the grid: its rows, every second one backwards."""
    return spread_line(Snake(grid), holdings, rank)


def spread_mesh(
    grid: Grid, holdings: Holdings, rank: int | None, *, rows_first: bool
) -> Iterator[Delivery]:
    """Deliveries along each row of the grid, then along each column, or first along the columns.

    rank: yield only this rank's deliveries; None for all.   rows_first: whether rows come first.
    """
    pick, other = (grid.row, grid.column) if rows_first else (grid.column, grid.row)
    lines, others = (grid.rows, grid.columns) if rows_first else (grid.columns, grid.rows)
    # Maps the first rank of each line with data to the holdings of the line's ranks.
    together: dict[int, dict[int, Blocks]] = {}
    for holder, blocks in holdings.items():
        together.setdefault(pick(holder)[0], {})[holder] = blocks
    for line in lines() if rank is None else [pick(rank)]:
        if (holding := together.get(line[0])) is not None:
            yield from spread_line(line, holding, rank)
    held = [  # (first rank of a line, blocks that all its ranks hold now)
        (begin, tuple(block for blocks in holding.values() for block in blocks))
        for begin, holding in together.items()
    ]
    for line in others() if rank is None else [other(rank)]:
        aside = line[0] - grid.rank(0)
        yield from spread_line(line, {begin + aside: blocks for begin, blocks in held}, rank)


def fullest(grid: Grid, holders: Iterable[int]) -> tuple[int, int]:
    """The largest number of `holders` in one row of the grid, and the largest in one column."""
    rows: dict[int, int] = {}
    columns: dict[int, int] = {}
    for holder in holders:
        row, column = grid.row(holder)[0], grid.column(holder)[0]
        rows[row] = rows.get(row, 0) + 1
        columns[column] = columns.get(column, 0) + 1
    return max(rows.values(), default=0), max(columns.values(), default=0)


def spread_mesh_by_sources(grid: Grid, holdings: Holdings, rank: int | None) -> Iterator[Delivery]:
    """Deliveries along each row of the grid, then along each column, or first along the columns.

    Rows come first if the fullest row has fewer holders than the fullest column.
    """
    in_row, in_column = fullest(grid, holdings)
    return spread_mesh(grid, holdings, rank, rows_first=in_row < in_column)


def spread_mesh_by_shape(grid: Grid, holdings: Holdings, rank: int | None) -> Iterator[Delivery]:
    """Deliveries in all rows, then in all columns; columns first if they are longer than rows."""
    rows, columns = grid.shape
    return spread_mesh(grid, holdings, rank, rows_first=columns >= rows)


def reposition(
    holdings: Holdings, places: Sequence[int]
) -> tuple[list[Delivery], dict[int, Blocks]]:
    """Move all blocks to given ranks; returns the deliveries, and the holdings after them.

    places: as many ranks as there are holders.   A holder that is in `places` keeps its blocks;
    every other holder sends all its blocks to one rank in `places`.
    """
    taken = set(places)
    free = iter(sorted(taken - set(holdings)))
    to = {holder: holder if holder in taken else next(free) for holder in sorted(holdings)}
    deliveries = [Delivery(holder, to[holder], blocks) for holder, blocks in holdings.items()]
    return deliveries, {to[holder]: blocks for holder, blocks in holdings.items()}


@dataclass(frozen=True)
class Spreading(Deliveries):
    """An allgatherv program on the problem's mesh of ranks.

    spread: yields the messages after which every rank holds all contributions.
    """

    spread: Spread

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        if holdings := {block.owner: (block,) for block in self.problem.gathered}:
            yield from self.spread(Grid.of(self.problem.shape), holdings, rank)


def simulable(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The choices of an algorithm without settings: [{}], or [] if simulating it takes too long.

    That is so if ranks × sources exceeds MAX_RECEIVED.
    """
    return [{}] if _contributions_received(problem) <= MAX_RECEIVED else []


def _contributions_received(problem: Problem) -> int:
    """Upper bound of the number of contributions that all ranks together receive."""
    return problem.ranks * len(problem.sources)


def alike_or_simulable(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The choices of an algorithm in which all ranks do the same: [{}], or [] as in `simulable`.

    If all ranks contribute equally, simulating one of them is enough: always [{}].
    """
    return [{}] if problem.all_give_alike else simulable(problem, machine)


def register_allgatherv(
    name: str,
    summary: str,
    source: tuple[str, ...],
    time: str,
    build: Callable[[Problem, Settings], Deliveries],
    *,
    alike: bool = False,
    **more: Any,
) -> Algorithm:
    """Register an algorithm for allgatherv.

    alike: whether all ranks do the same, relative to their own numbers.  Then plans try the
    algorithm at any size if all ranks contribute equally, since one rank can be simulated for all;
    otherwise they try it for problems that are quick to simulate.   more: other fields of
    `Algorithm`.
    """
    facts: dict[str, Any] = {"summary": summary, "source": source, "time": time, "build": build}
    choices = alike_or_simulable if alike else simulable
    facts |= {"choices": choices, **more}
    return register(Algorithm(name=f"allgatherv/{name}", **facts))


def register_spread(
    name: str, summary: str, source: tuple[str, ...], time: str, spread: Spread, **more: Any
) -> Algorithm:
    """Register an algorithm for allgatherv that spreads the data over the mesh of ranks.

    spread: yields the algorithm's deliveries.   more: other arguments of `register_allgatherv`.
    """
    return register_allgatherv(
        name, summary, source, time, lambda problem, _: Spreading(problem, spread), **more
    )
