"""Where the protocol changes: an MPI library switches at its eager limit, and t0 and λ jump.

As netgauge does, sizes are taken from the smallest up, and a new segment begins where the residual
of the *next* points more than doubles [Hoefler2007].  Here the residual is relative, of the
straight line through the segment so far, and the next two sizes must both show it: one odd size is
no switch.  How far the line can be trusted out there is part of the judgement, since sizes are
spaced geometrically and a line through two small ones says little about large ones.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

GROWTH = 2
"""The residual has to grow by more than this."""
MISFIT = 0.02
"""Even without noise no point is trusted to be nearer to a straight line than this, relatively."""
SIGMAS = 3


class Value(NamedTuple):
    """A quantity (t0 or λt0, in seconds) at one size, with its relative standard error."""

    nbytes: int
    value: float
    error: float = 0.0

    @property
    def variance(self) -> float:
        """Of the value, the misfit of the model included."""
        return (self.value * self.value) * (self.error * self.error + MISFIT * MISFIT)


class _Line:
    """The straight line through some points, by least squares of the relative residuals."""

    def __init__(self, points: Sequence[Value]) -> None:
        weights = [1 / (p.value * p.value) for p in points]
        self._total = sum(weights)
        self._middle = sum(w * p.nbytes for w, p in zip(weights, points, strict=True)) / self._total
        self._spread = sum(
            w * (p.nbytes - self._middle) ** 2 for w, p in zip(weights, points, strict=True)
        )
        self._points, self._weights = points, weights
        self.residual = max(abs(p.value - self.at(p.nbytes)[0]) / p.value for p in points)

    def at(self, nbytes: int) -> tuple[float, float]:
        """The line's value at a size, and the variance of that."""
        value = variance = 0.0
        for weight, p in zip(self._weights, self._points, strict=True):
            share = weight / self._total
            share += weight * (p.nbytes - self._middle) * (nbytes - self._middle) / self._spread
            value += share * p.value
            variance += share * share * p.variance
        return value, variance


def find_segments(*curves: Sequence[Value]) -> list[int]:
    """The segment number, from 0, of every size; a switch shows in any one of the curves.

    curves: t0 and λt0 (positive) at the same ascending sizes.  A segment has two sizes or more, so
    a switch before the second or at the last size needs further sizes to be seen.
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


def _departs(segment: Sequence[Value], following: Sequence[Value]) -> bool:
    line = _Line(segment)
    for p in following:
        expected, variance = line.at(p.nbytes)
        doubt = SIGMAS * sqrt(variance + p.variance)
        if abs(p.value - expected) <= max(GROWTH * line.residual * p.value, doubt):
            return False
    return True
