"""Finds levels beyond nodes from the times of a small message between every two nodes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

GAP = 2.0
"""Two successive times of pairs that differ by at least this factor may be of different levels."""
REPETITIONS = 5
"""The number of times that each pair is timed; the fastest time counts."""
NBYTES = 8


def rounds(members: int) -> list[list[tuple[int, int]]]:
    """All pairs of members, in rounds of disjoint pairs that can be timed at once (a round robin).

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
    """For each level found, the innermost first, the number of each member's group.

    times_s: seconds for every pair, a symmetric matrix, above 0 except on the diagonal.  A level
    lies at a step by the factor GAP or more in the ordered times, if the pairs below it fall into
    groups: all pairs inside a group are below the step, and all other pairs above.  Other steps
    make no level.
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
    """Replace labels by numbers, from 0, in the order of their first occurrence."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]
