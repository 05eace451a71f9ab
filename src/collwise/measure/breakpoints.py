"""Finds protocol switches: sizes, such as an MPI library's eager limit, at which t0 and λ jump.

As in netgauge, sizes are taken in ascending order, and a new segment begins where the residual of
the *next* points more than doubles [Hoefler2007].  Here the residual is the relative distance from
the straight line through the segment so far.  The next two sizes must both lie off the line: a
single outlier is no switch.  The comparison allows for the line's uncertainty: sizes are
spaced geometrically, and a line through two small sizes says little about large ones.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

GROWTH = 2
"""A new segment begins only where the residual grows by more than this factor."""
MISFIT = 0.02
"""The relative distance from a straight line that any point may have besides noise."""
SIGMAS = 3


class CurvePoint(NamedTuple):
    """A time (t0 or λt0, in seconds) at one size, with its relative standard error."""

    nbytes: int
    value: float
    error: float = 0.0

    @property
    def relative_variance(self) -> float:
        """The relative variance of the value, which includes the misfit of the model."""
        return self.error * self.error + MISFIT * MISFIT


def find_protocols(
    sizes: Iterable[tuple[int, float, float, tuple[float, float] | None]],
) -> dict[int, int]:
    """Map every size to the number, from 0, of its protocol.

    sizes: ascending; each is (bytes, t0 in seconds, λ, relative half-widths of the 95 % intervals
    of t0 and λ, or None if these are unknown).
    """
    gaps, latencies = [], []
    for nbytes, t0_s, lam, uncertainty in sizes:
        widths = uncertainty or (1.0, 1.0)
        gaps.append(CurvePoint(nbytes, t0_s, widths[0] / 2))
        latencies.append(CurvePoint(nbytes, t0_s * max(lam, 1.0), max(widths) / 2))
    numbers = find_segments(gaps, latencies)
    return {point.nbytes: number for point, number in zip(gaps, numbers, strict=True)}


def find_segments(*curves: Sequence[CurvePoint]) -> list[int]:
    """The number, from 0, of the segment of every size; a switch in any curve begins a segment.

    curves: t0 and λt0 (positive) at the same ascending sizes.  There are at least two sizes on
    both sides of a switch, so a switch at the second or at the last size is not found.
    """
    count = len(curves[0])
    numbers: list[int] = []
    first = number = 0
    for i in range(count):
        enough = i - first >= 2 and i + 1 < count
        if enough and any(_departs(c[first:i], c[i : i + 2]) for c in curves):
            first, number = i, number + 1
        numbers.append(number)
    return numbers


def _departs(segment: Sequence[CurvePoint], following: Sequence[CurvePoint]) -> bool:
    """Whether the next points leave the line (least relative squares) through a segment."""
    rows = np.array([(1 / p.value, p.nbytes / p.value) for p in segment])
    solver = np.linalg.pinv(rows)  # times the vector of ones: the line's start and slope
    residual = np.abs(rows @ solver.sum(axis=1) - 1).max()
    variances = np.array([p.relative_variance for p in segment])
    for p in following:
        weights = (1, p.nbytes) @ solver  # of the segment's points in the line's value at p
        doubt = SIGMAS * sqrt(weights**2 @ variances + p.value**2 * p.relative_variance)
        if abs(p.value - weights.sum()) <= max(GROWTH * residual * p.value, doubt):
            return False
    return True
