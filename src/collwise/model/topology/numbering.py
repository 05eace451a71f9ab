"""Ranks numbered as a mesh, row by row, and the snake through the mesh."""

from math import isqrt
from typing import Any, overload

from collwise.model.topology.base import MAX_NODES
from collwise.system.integers import Ints, Shape, checked_integer, checked_shape


def near_square(ranks: int) -> Shape:
    """The (rows, columns) nearest to a square with rows·columns = ranks and rows <= columns.

    Raises InvalidArgument unless 1 <= ranks <= MAX_NODES.

    >>> near_square(120), near_square(7)
    ((10, 12), (1, 7))
    """
    ranks = checked_integer(ranks, "a mesh of ranks", "ranks", 1, MAX_NODES)
    rows = next(r for r in range(isqrt(ranks), 0, -1) if ranks % r == 0)
    return rows, ranks // rows


@overload
def snake_rank(position: int, columns: int) -> int: ...
@overload
def snake_rank(position: Ints, columns: int) -> Ints: ...
def snake_rank(position: Any, columns: int) -> Any:
    """The rank at a position of the snake: row 0 from left to right, row 1 from right to left, ….

    position: from 0 on, an integer or an array.   columns: of the mesh, >= 1.  Neither is checked.
    Ranks are numbered row by row.   Source: [Hambrusch1998] §2 (snake-like row-major order).

    >>> [snake_rank(position, 3) for position in range(6)]
    [0, 1, 2, 5, 4, 3]
    """
    row, column = position // columns, position % columns
    return row * columns + column + row % 2 * (columns - 1 - 2 * column)


snake_position = snake_rank
"""The position of a rank on the snake; `snake_rank` is its own inverse."""


def snake(shape: Shape) -> tuple[int, ...]:
    """All ranks of a mesh of (rows, columns) in the order of the snake.

    Raises InvalidArgument for rows or columns below 1.
    """
    rows, columns = checked_shape(shape)
    return tuple(snake_rank(position, columns) for position in range(rows * columns))
