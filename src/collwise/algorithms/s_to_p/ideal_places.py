"""Ideal places of sources: those from which every round of spreading reaches new ranks.

Ranks are numbered row by row.
"""

from collections.abc import Callable
from typing import TypeAlias

from collwise.model.sources import rows_of
from collwise.model.topology import snake_rank

Places: TypeAlias = Callable[[tuple[int, int], int], tuple[int, ...]]
"""The places for so many sources in a mesh of (rows, columns)."""


def snake(shape: tuple[int, int], count: int) -> tuple[int, ...]:
    """Places on the snake through the mesh, for spreading along it.

    [Hambrusch1998 §5.2] takes left diagonals, the least sensitive of its distributions.  These
    places are computed from the rounds themselves, and are better on most meshes.
    """
    return tuple(snake_rank(at, shape[1]) for at in in_line(shape[0] * shape[1], count))


def rows(shape: tuple[int, int], count: int) -> tuple[int, ...]:
    """Full rows (the last one partly), placed so that spreading along columns doubles them.

    In tall meshes there may be more such rows than a row is long.  Spreading would then begin along
    the rows, where every rank has data already.  So full columns are taken instead.
    """
    height, width = shape
    needed = -(-count // width)
    if needed > width:
        flipped = rows((width, height), count)
        return tuple(sorted(at % height * width + at // height for at in flipped))
    return rows_of(shape, count, in_line(height, needed))


def in_line(n: int, count: int) -> tuple[int, ...]:
    """Positions of 1 <= count <= n sources in a line of n from which every round doubles them.

    Ascending.  The last round that reaches new positions reaches as many as are left.
    """
    return _in_lines(n, n, count)


def _in_lines(n: int, most: int, count: int) -> tuple[int, ...]:
    """The same for a line of n and for one of `most`, which is n or n + 1, at once.

    The i-th of the first half swaps with the one ⌈n/2⌉ further on.  Then both halves hold the same
    positions, so places that are ideal for a half are ideal here as long as all have partners.  The
    halves of a line, or of the two lines, differ in length by 1 at most.  If there are too many
    sources for all to reach somebody new, every pair gets one, and so does the middle, which nobody
    serves.  Every second place is moved to the other half, so that messages cross the middle in
    both directions, unless the two lines disagree on how far away that is.
    """
    half = (most + 1) // 2
    inner = _in_lines(n // 2, half, count) if count <= n // 2 else tuple(range(half))
    if half == (n + 1) // 2:
        inner = tuple(
            at + half if turn % 2 and at + half < n else at for turn, at in enumerate(inner)
        )
    others = sorted(set(range(n)).difference(inner)) if len(inner) < count else []
    return tuple(sorted((*inner, *others[: count - len(inner)])))
