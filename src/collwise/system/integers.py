"""Checks of integers, such as ranks, counts, sizes and shapes; the ratio of two integers."""

from fractions import Fraction
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidArgument, shown

Ints: TypeAlias = NDArray[np.int64]
MOST_RANKS = 2**31 - 1
"""The most ranks that MPI can number: its ranks are C integers."""
Shape: TypeAlias = tuple[int, int]
"""(rows, columns) of a mesh of ranks, which are numbered row by row."""


def checked_integer(
    value: object, asked: str, name: str, least: int = 1, most: int | None = None
) -> int:
    """Return an integer of Python or NumPy as Python's int; True and False are refused.

    asked: what the value is for.   name: what errors call it.   least, most: its range, inclusive.
    Raises InvalidArgument if `value` is no integer or lies outside the range.

    >>> checked_integer(4, "a mesh", "rows")
    4
    """
    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidArgument(asked, f"{name} = {shown(value)}", f"give an integer {bounds}")
    return number


def ratio(one: int, other: int) -> Fraction:
    """The larger of two numbers divided by the smaller; 0 counts as 1."""
    low, high = sorted((max(one, 1), max(other, 1)))
    return Fraction(high, low)


def checked_shape(shape: Shape, asked: str = "a mesh of ranks") -> Shape:
    """(rows, columns) as Python's int, each at least 1; raises InvalidArgument for other values."""
    try:
        rows, columns = shape
    except (TypeError, ValueError):
        remedy = "give (rows, columns), such as (10, 10)"
        raise InvalidArgument(asked, f"shape = {shape!r}", remedy) from None
    return checked_integer(rows, asked, "rows"), checked_integer(columns, asked, "columns")
