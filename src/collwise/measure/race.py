"""What a race between collectives means: medians, intervals, who won.  Nothing is timed here.

A repetition's time is the maximum over ranks, from a common start.  The library's own collective
keeps its place unless another is significantly better, and by a margin.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from collwise.measure.statistics import Interval, median_interval, ratio_interval

MARGIN = 0.03
"""How much better than the library's own a schedule must be, at the least, to replace it."""

LIBRARY = "library"
"""The name under which the MPI library's own collective runs in races and plans."""
LIBRARY_PERSISTENT = "library_init"
"""Its persistent form."""
BLOCKING = " (blocking)"
"""Ends the label of a schedule that runs as a blocking call, not as a persistent request."""


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
        """The best, if it is significantly faster by the margin; else the library's own."""
        if self.best == self.library:
            return self.library
        return self.best if self.speedup(self.best).low > 1 + MARGIN else self.library

    def among(self, labels: Iterable[str]) -> "Race":
        """The same race seen with these competitors only."""
        chosen = set(labels)
        return replace(self, samples={k: v for k, v in self.samples.items() if k in chosen})

    @property
    def verdict(self) -> str:
        """Won, tied, lost or too noisy to tell, as a phrase."""
        gain = self.speedup(self.best)
        if self.winner != self.library:
            return f"{gain.middle:.2f}× as fast as the library's own"
        if gain.high < 1:
            return "the library's own is faster"
        if gain.high - gain.low > 1:
            return "too noisy to tell: the library's own stays"
        return "no clear gain: the library's own stays"
