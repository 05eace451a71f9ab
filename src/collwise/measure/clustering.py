"""Finds levels beyond nodes from the times of a small message between any two nodes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

GAP = 2.0
"""A step of at least this factor between times of pairs makes a level."""
REPETITIONS = 5
"""How often each pair is timed; the fastest time counts."""
NBYTES = 8


def rounds(members: int) -> list[list[tuple[int, int]]]:
    """All pairs, in rounds of pairs that can be measured at the same time (a round robin).

    >>> rounds(4)
    [[(0, 3), (1, 2)], [(0, 2), (3, 1)], [(0, 1), (2, 3)]]
    """
    seats = [*range(members), *[-1] * (members % 2)]
    turns = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        pairs = zip(seats[:half], seats[: half - 1 : -1], strict=True)
        turns.append([pair for pair in pairs if -1 not in pair])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return turns


def cluster(times_s: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """By level, the innermost first: a row with the group's number of every member.

    times_s: of every pair, symmetric, above 0 but on the diagonal.   A level is a step by GAP or
    more in the ordered times, below which pairs fall into groups: all pairs of a group are below
    it, and all others above.  Where pairs do not fall into such groups, a step makes no level.
    """
    members = len(times_s)
    ordered = sorted(float(t) for t in times_s[np.triu_indices(members, 1)])
    rows: list[tuple[int, ...]] = []
    for low, high in pairwise(ordered):
        if high < GAP * low:
            continue
        near = times_s <= low
        np.fill_diagonal(near, val=True)
        first = near.argmax(axis=1)
        if (near == (first[:, None] == first[None, :])).all():
            rows.append(tuple(numbered(first.tolist())))
    return rows


def numbered(labels: Sequence[object]) -> list[int]:
    """Labels as numbers, in the order in which they first come."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]
