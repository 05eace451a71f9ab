"""What a race between collectives means: medians, intervals, who won.  Nothing is timed here.

A repetition's time is the maximum over ranks, from a common start.  The library's own collective
keeps its place unless another is significantly better, and by a margin.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collwise.errors import InvalidArgument

CONFIDENCE = 0.95
MARGIN = 0.03
"""How much better than the library's own a schedule must be, at the least, to replace it."""


LIBRARY = "library"
"""The name under which the MPI library's own collective runs in races and plans."""
LIBRARY_PERSISTENT = "library_init"
"""Its persistent form."""
BLOCKING = " (blocking)"
"""Ends the label of a schedule that runs as a blocking call, not as a persistent request."""


class Interval(NamedTuple):
    """An estimate with its confidence interval (95 %)."""

    middle: float
    low: float
    high: float


def median_interval(samples: ArrayLike) -> Interval:
    """The median and its order-statistic interval, which assumes nothing about the distribution."""
    ordered = np.sort(np.asarray(samples, dtype=float))
    n = len(ordered)
    if n == 0:
        raise InvalidArgument("a median", "there are no samples", "time it at least once")
    from scipy import stats  # here, since loading it takes a second

    below = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    low = max(below - 1, 0)
    return Interval(float(np.median(ordered)), float(ordered[low]), float(ordered[n - 1 - low]))


def ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """median(first) / median(second) over the same repetitions: paired percentile bootstrap."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    ratio = float(np.median(a) / np.median(b))
    if len(a) < 3:
        return Interval(ratio, 0.0, float("inf"))
    from scipy import stats

    found = stats.bootstrap(
        (a, b),
        lambda x, y, axis: np.median(x, axis=axis) / np.median(y, axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=999,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Interval(ratio, float(found.low), float(found.high))


@dataclass(frozen=True)
class Race:
    """The samples of one race, in seconds, repetition by repetition, by competitor.

    libraries: the labels of the MPI library's own forms (blocking, persistent).   predicted_s: what
    the model said, by label.   dropped: repetitions thrown away since a rank was late at the start.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int
    samples: Mapping[str, tuple[float, ...]]
    predicted_s: Mapping[str, float]
    dropped: int = 0
    libraries: tuple[str, ...] = (LIBRARY, LIBRARY_PERSISTENT)

    @cached_property
    def library(self) -> str:
        """The faster of the library's own forms that ran; what others are compared with."""
        ran = [label for label in self.libraries if label in self.samples]
        return min(ran, key=lambda label: self.medians[label].middle)

    @cached_property
    def medians(self) -> dict[str, Interval]:
        """Median and interval of every competitor, in seconds."""
        return {label: median_interval(times) for label, times in self.samples.items()}

    def against(self, other: str, label: str) -> Interval:
        """How many times as fast as the other competitor `label` is."""
        return ratio_interval(self.samples[other], self.samples[label])

    def speedup(self, label: str) -> Interval:
        """How many times as fast as the library's own, the faster form of it."""
        return self.against(self.library, label)

    @cached_property
    def best(self) -> str:
        """The fastest competitor that is not the library's own (the library's if it ran alone)."""
        others = [label for label in self.samples if label not in self.libraries]
        return min(others, key=lambda label: self.medians[label].middle, default=self.library)

    @cached_property
    def winner(self) -> str:
        """The best, if it is significantly and by a margin ahead; else the library's own."""
        if self.best == self.library:
            return self.library
        return self.best if self.speedup(self.best).low > 1 + MARGIN else self.library

    def among(self, labels: Iterable[str]) -> "Race":
        """The same race seen with these competitors only."""
        chosen = set(labels)
        return replace(self, samples={k: v for k, v in self.samples.items() if k in chosen})

    @property
    def verdict(self) -> str:
        """In words: won, tie, lost, or how noisy it was."""
        gain = self.speedup(self.best)
        if self.winner != self.library:
            return f"{gain.middle:.2f}× as fast as the library's own"
        if gain.high < 1:
            return "the library's own is faster"
        if gain.high - gain.low > 1:
            return "too noisy to tell: the library's own stays"
        return "no clear gain: the library's own stays"
