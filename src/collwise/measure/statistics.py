"""Medians, and ratios of medians, with 95 % intervals that assume no distribution."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collwise.errors import InvalidArgument

CONFIDENCE = 0.95
FEWEST = 6
"""The fewest repetitions with which a median is known with 95 % confidence."""
RESAMPLED = 999
"""The number of resamples of a bootstrap."""


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    middle: float
    low: float
    high: float

    @property
    def uncertainty(self) -> float:
        """Half of the interval's width, relative to the estimate; 0 if the estimate is 0."""
        return (self.high - self.low) / 2 / self.middle if self.middle else 0.0


def median_interval(samples: ArrayLike | Sequence[Fraction | float]) -> Interval:
    """The median, and an interval that holds it with 95 % confidence.

    The ends are the narrowest symmetric pair of order statistics.  With fewer than FEWEST samples
    the interval spans them all.  Raises InvalidArgument without samples.
    """
    ordered = np.sort(np.asarray(samples, dtype=float))
    if not len(ordered):
        raise InvalidArgument("a median", "there are no samples", "time it at least once")
    rank, _ = _order_statistic(len(ordered))
    return Interval(float(np.median(ordered)), float(ordered[rank]), float(ordered[-1 - rank]))


def standard_error(median: Interval, count: int) -> float:
    """The standard error of a normal distribution with an interval as wide as the median's.

    count: the number of samples, >= 2, of the median.
    """
    _, tail = _order_statistic(count)
    return (median.high - median.low) / (2 * NormalDist().inv_cdf(1 - tail))


@lru_cache(maxsize=4096)
def _order_statistic(count: int) -> tuple[int, float]:
    """(i, probability): x[i] … x[−1−i] of `count` sorted samples are the median's 95 % interval.

    The probability is that of a median below x[i]: Σ C(count, j)/2^count over j ≤ i.
    """
    limit = (1 << count) // 40  # 2.5 % on either side
    rank, binomial, below = 0, count, 1
    while below + binomial <= limit:
        rank, below = rank + 1, below + binomial
        binomial = binomial * (count - rank) // (rank + 1)
    return rank, below / (1 << count)


def ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """median(first) / median(second) with its interval, by a paired percentile bootstrap.

    first, second: samples of the same repetitions.  With fewer than FEWEST repetitions the interval
    is from 0 to infinity.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    ratio = float(np.median(a) / np.median(b))
    if len(a) < FEWEST:
        return Interval(ratio, 0.0, float("inf"))
    resampled = np.random.default_rng(0).integers(len(a), size=(RESAMPLED, len(a)))
    return _between(ratio, np.median(a[resampled], axis=1) / np.median(b[resampled], axis=1))


def best_ratio_interval(firsts: Sequence[ArrayLike], seconds: Sequence[ArrayLike]) -> Interval:
    """Least median of `firsts` / least median of `seconds`, by an unpaired percentile bootstrap.

    firsts, seconds: samples of several competitors, which did not run in the same repetitions.  If
    a competitor has fewer than FEWEST samples, the interval is from 0 to infinity.
    """
    draws = np.random.default_rng(0)

    def least(groups: Sequence[ArrayLike], resample: bool) -> NDArray[np.float64]:
        arrays = [np.asarray(group, dtype=float) for group in groups]
        if resample:
            arrays = [draws.choice(array, (RESAMPLED, len(array))) for array in arrays]
        return np.asarray(np.min([np.median(array, axis=-1) for array in arrays], axis=0))

    ratio = float(least(firsts, False) / least(seconds, False))
    if min(len(np.asarray(group)) for group in (*firsts, *seconds)) < FEWEST:
        return Interval(ratio, 0.0, float("inf"))
    return _between(ratio, least(firsts, True) / least(seconds, True))


def _between(ratio: float, ratios: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(ratio, float(low), float(high))
