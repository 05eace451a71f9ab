"""What races have taught, applied to sizes that were not raced."""

from collections.abc import Iterable
from math import log2

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
        (abs(log2(max(win.nbytes, 1) / max(nbytes, 1))), win.nbytes, win)
        for win in wins
        if (win.collective, win.form, win.ranks) == (collective, form, ranks)
    ]
    if not near:
        return None
    distance, _, win = min(near, key=lambda row: row[:2])
    if distance > log2(REACH) or win.decision == LIBRARY:
        return None
    return win.algorithm
