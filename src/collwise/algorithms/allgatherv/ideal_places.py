"""Ideal ranks for sources: from these, each round of spreading reaches as many new ranks as it can.

The ranks of a mesh are numbered row by row.
"""

from collections.abc import Callable
from typing import TypeAlias

from collwise.model.sources import rows_of
from collwise.model.topology import snake_rank

Places: TypeAlias = Callable[[tuple[int, int], int], tuple[int, ...]]
"""A function that maps a mesh's (rows, columns) and a number of sources to ideal ranks for them."""


def snake(shape: tuple[int, int], count: int) -> tuple[int, ...]:
    """Ideal ranks for `count` sources, for spreading along the snake through a mesh (`Snake`).

    shape: (rows, columns).   [Hambrusch1998 §5.2] uses ranks on left diagonals instead.  The ranks
    of this function are computed from the rounds, and are better on most meshes.
    """
    return tuple(snake_rank(at, shape[1]) for at in in_line(shape[0] * shape[1], count))


def rows(shape: tuple[int, int], count: int) -> tuple[int, ...]:
    """Ideal ranks for `count` sources, for spreading over a mesh: full rows, and part of one row.

    Rounds along the columns then double the number of rows with data, as long as possible.
    shape: (rows, columns).   In tall meshes the sources may need more rows than a row has ranks.
    Spreading would then begin along the rows, whose ranks all have data already.  So the ideal
    ranks then are full columns.
    """
    height, width = shape
    needed = -(-count // width)
    if needed > width:
        flipped = rows((width, height), count)
        return tuple(sorted(at % height * width + at // height for at in flipped))
    return rows_of(shape, count, in_line(height, needed))


def in_line(n: int, count: int) -> tuple[int, ...]:
    """Positions for `count` sources in a line of n ranks, ascending, 1 <= count <= n.

    From these positions, every round of spreading doubles the number of ranks with data, until
    fewer ranks lack data than have it; the next round then reaches all of them.
    """
    return _in_lines(n, n, count)


def _in_lines(n: int, most: int, count: int) -> tuple[int, ...]:
    """Positions for `count` sources, ideal in a line of n ranks and in one of `most` (n or n + 1).

    In the first round position i of the first half swaps with position i + ⌈n/2⌉.  Then both halves
    hold the same data.  So positions that are ideal for a half are ideal for the line, as long as
    all have partners.  The halves of a line, or of the two lines, differ in length by at most 1.
    With more than ⌊n/2⌋ sources, every pair of partners gets one, and so does the middle position
    of the odd line, which has no partner; the other sources fill free positions.  Unless the first
    halves of the two lines differ in length, every second source moves to its partner's position,
    so that messages cross the middle in both directions.
    """
    half = (most + 1) // 2
    inner = _in_lines(n // 2, half, count) if count <= n // 2 else tuple(range(half))
    if half == (n + 1) // 2:
        inner = tuple(
            at + half if turn % 2 and at + half < n else at for turn, at in enumerate(inner)
        )
    others = sorted(set(range(n)).difference(inner)) if len(inner) < count else []
    return tuple(sorted((*inner, *others[: count - len(inner)])))
