"""Medians with intervals, and ratios of medians, at 95 % confidence; no distribution is assumed."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collwise.errors import InvalidArgument

CONFIDENCE = 0.95
FEWEST = 6
"""With fewer repetitions no median is known with this confidence, however alike they look."""
_RESAMPLED = 999


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    middle: float
    low: float
    high: float

    @property
    def uncertainty(self) -> float:
        """Half of the interval's width, relative to the estimate; 0 for one of 0."""
        return (self.high - self.low) / 2 / self.middle if self.middle else 0.0


def median_interval(samples: ArrayLike | Sequence[Fraction | float]) -> Interval:
    """The median and its interval between two order statistics.  Raises InvalidArgument for none.

    The interval is the narrowest symmetric one that is known with this confidence; all samples,
    where they are fewer than FEWEST.
    """
    ordered = np.sort(np.asarray(samples, dtype=float))
    if not len(ordered):
        raise InvalidArgument("a median", "there are no samples", "time it at least once")
    rank, _ = _order_statistic(len(ordered))
    return Interval(float(np.median(ordered)), float(ordered[rank]), float(ordered[-1 - rank]))


def standard_error(median: Interval, count: int) -> float:
    """The standard error of a normal distribution whose interval is as wide.

    count: of the samples, 2 or more, from which `median_interval` made the median.
    """
    _, tail = _order_statistic(count)
    return (median.high - median.low) / (2 * NormalDist().inv_cdf(1 - tail))


@lru_cache(maxsize=4096)
def _order_statistic(count: int) -> tuple[int, float]:
    """The i for which x[i] … x[−1−i] of `count` sorted samples bound the median.

    With it, the probability that the median lies below x[i]: the sum of C(count, j)/2^count, j ≤ i.
    """
    limit = (1 << count) // 40  # 2.5 % on either side
    rank, binomial, below = 0, count, 1
    while below + binomial <= limit:
        rank, below = rank + 1, below + binomial
        binomial = binomial * (count - rank) // (rank + 1)
    return rank, below / (1 << count)


def ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """median(first) / median(second) of the same repetitions: paired percentile bootstrap.

    Of fewer than FEWEST repetitions it may be anything: from 0 to infinity.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    ratio = float(np.median(a) / np.median(b))
    if len(a) < FEWEST:
        return Interval(ratio, 0.0, float("inf"))
    resampled = np.random.default_rng(0).integers(len(a), size=(_RESAMPLED, len(a)))
    return _bootstrapped(ratio, a[resampled], b[resampled])


def unpaired_ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """median(first) / median(second) of samples from different runs: percentile bootstrap."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    ratio = float(np.median(a) / np.median(b))
    if min(len(a), len(b)) < 3:
        return Interval(ratio, 0.0, float("inf"))
    random = np.random.default_rng(0)
    drawn = [x[random.integers(len(x), size=(_RESAMPLED, len(x)))] for x in (a, b)]
    return _bootstrapped(ratio, *drawn)


def _bootstrapped(ratio: float, first: NDArray[Any], second: NDArray[Any]) -> Interval:
    """A ratio of medians with its interval.   first, second: resampled, a row for each draw."""
    ratios = np.median(first, axis=1) / np.median(second, axis=1)
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(ratio, float(low), float(high))
