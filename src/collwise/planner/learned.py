"""What races have taught, applied to sizes that were not raced."""

from collections.abc import Iterable
from fractions import Fraction

from collwise.measure.race import LIBRARY
from collwise.model.records import Form, Win

REACH = 4
"""A race says something about sizes up to so many times larger or smaller."""


def learned_choice(
    wins: Iterable[Win], collective: str, form: Form, ranks: int, nbytes: int
) -> str | None:
    """The algorithm that won the nearest race with as many ranks; None for the library's own.

    Nearest by the ratio of sizes, at most REACH; of two equally near ones, the smaller.  The same
    on every rank: it depends on nothing else.
    """
    near = [
        (_ratio(win.nbytes, nbytes), win.nbytes, win)
        for win in wins
        if (win.collective, win.form, win.ranks) == (collective, form, ranks)
    ]
    if not near:
        return None
    ratio, _, win = min(near, key=lambda row: row[:2])
    if ratio > REACH or win.decision == LIBRARY:
        return None
    return win.algorithm


def _ratio(one: int, other: int) -> Fraction:
    """How many times as large the larger one is, exactly; 0 bytes count as 1."""
    low, high = sorted((max(one, 1), max(other, 1)))
    return Fraction(high, low)
