"""Judges a race between collectives: medians, intervals, the winner.  Nothing is timed here.

A repetition's time is the maximum over ranks, from a common start. "Ours" are schedules that
collwise runs.  The library's own collective wins unless another competitor is significantly better,
and by a margin.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collwise.measure.stability import cores_moved
from collwise.measure.statistics import Interval, median_interval, ratio_interval
from collwise.profiles.records import Form

MARGIN = 0.03
"""The least gain, as a share, with which a schedule replaces the library's own collective."""

IMPOSSIBLE = 0.8
"""A time below this share of the lower bound proves that t0 or λ is not in its interval."""

WIDEST = 4
"""A speed-up is too noisy if its interval's high end is more than this many times its low end."""

APART = 0.05
"""Starts may always differ by this share of the fastest competitor's time (see `punctual`)."""

LIBRARY = "library"
"""The name under which the MPI library's own collective runs in races and plans."""
LIBRARY_PERSISTENT = "library_init"
"""The name of the persistent form of the library's own collective."""
OWN = "library:"
"""The prefix in short names of the library's own algorithms, such as "library:binomial"."""


class CallForm(NamedTuple):
    """How calls of one form, and their competitors in races, are named.

    method: mpi4py's name of a call; {0} stands for a name such as Bcast, {1} for bcast.   ending:
    the suffix of competitors' labels.   defaults: the labels of the library's own calls that could
    replace such a call; competitors are compared with the fastest of them.
    """

    method: str
    ending: str
    defaults: tuple[str, ...]


CALLS: Mapping[Form, CallForm] = {
    "blocking": CallForm("{0}", " (blocking)", (LIBRARY,)),
    "nonblocking": CallForm("I{1}", " (nonblocking)", (f"{LIBRARY} (nonblocking)",)),
    "persistent": CallForm("{0}_init", "", (LIBRARY, LIBRARY_PERSISTENT)),
}
ALWAYS_RACED: tuple[Form, ...] = ("blocking", "persistent")
"""The forms that every race has; other forms are raced if they are asked for, or if time allows."""
LIBRARIES = tuple(dict.fromkeys(label for form in CALLS.values() for label in form.defaults))
"""The labels of all forms of the library's own collective."""
BLOCKING = CALLS["blocking"].ending
"""The suffix of labels of competitors that run as blocking calls; LIBRARY has no suffix."""

NEXT, TWICE, FEWER, HALFWAY, END = NEIGHBOURS = (
    "one element more",
    "twice the bytes",
    "one rank fewer",
    "a size halfway",
    "the larger size",
)
"""The labels, in scans, of calls of the library's default on problems near the raced one."""

BY_HAND = " (by hand)"
"""The suffix in the label of a schedule whose messages mpi4py alone sends and receives."""

BEHIND = 1.5
"""A competitor may leave a race if it takes this many times as long as the best of its form."""


def method_name(method: str, form: Form) -> str:
    """mpi4py's name of a form of a method: Bcast, Ibcast or Bcast_init."""
    return CALLS[form].method.format(method, method[0].lower() + method[1:])


def form_of(label: str) -> Form:
    """The form of calls that a competitor's label names; LIBRARY counts as persistent."""
    return next(form for form, named in CALLS.items() if label.endswith(named.ending))


def own_algorithm(name: str) -> str | None:
    """The name after "library:" in an algorithm's full or short name; None without "library:"."""
    _, own, called = name.partition(OWN)
    return called if own else None


def by_library(name: str) -> bool:
    """Whether a name is LIBRARY, the library's default, or that of another of its algorithms."""
    return name == LIBRARY or own_algorithm(name) is not None


class Load(NamedTuple):
    """What the timing of a race took, in seconds.

    began_s, ended_s: on the monotonic clock of rank 0's host.   calls_s: of all calls, one after
    another.   worked_s: processor time of all ranks within these calls; 0 on real hosts.
    lines_s: as in `Provenance`, before and after the calls.
    """

    began_s: float = 0.0
    ended_s: float = 0.0
    calls_s: float = 0.0
    worked_s: float = 0.0
    lines_s: tuple[tuple[float, ...], ...] = ()


UNKNOWN_LOAD = Load()


class Punctual(NamedTuple):
    """The repetitions in which all ranks started together.

    kept: their times in seconds, repetitions × competitors.   dropped: the number of other
    repetitions.   tolerance_s: the greatest difference of starts allowed.
    """

    kept: NDArray[np.float64]
    dropped: int
    tolerance_s: float


def punctual(times_s: NDArray[np.float64], apart_s: NDArray[np.float64]) -> Punctual:
    """Keep the repetitions in which the ranks started together, for every competitor.

    times_s: seconds, repetitions × competitors; NaN after a competitor has left the race.
    apart_s: seconds from the first rank's start to the last rank's start, of the same shape.
    Starts may differ by APART × the fastest competitor's time, or by the median difference over
    repetitions if the median is more.  So at least about half of the repetitions are kept.
    """
    furthest = apart_s.max(axis=1)
    usual = float(np.sort(furthest)[(len(furthest) - 1) // 2])
    tolerance_s = max(APART * float(np.nanmedian(times_s, axis=0).min()), usual)
    good = furthest <= tolerance_s
    return Punctual(times_s[good], int((~good).sum()), tolerance_s)


def contenders(medians_s: Mapping[str, float], behind: float) -> list[str]:
    """The labels that stay in a race: the library's default, and those near the best of their form.

    The default's calls for other sizes or ranks (NEIGHBOURS) stay, too.  The best of the library's
    other algorithms in blocking calls stays while faster than the default: a file for the library
    may name it even if we win.
    medians_s: maps a label to the median so far, in seconds.   behind: a competitor leaves if its
    median exceeds `behind` × the best median of its form, defaults excluded.
    """
    ours, defaults = dict.fromkeys(CALLS, inf), (*LIBRARIES, *NEIGHBOURS)
    own = [one for one in medians_s if one.endswith(BLOCKING) and own_algorithm(one) is not None]
    best_own = min(own, key=medians_s.__getitem__, default="")
    for label, median_s in medians_s.items():
        if label not in defaults:
            ours[form_of(label)] = min(ours[form_of(label)], median_s)
    return [
        label
        for label, median_s in medians_s.items()
        if label in defaults
        or median_s <= behind * ours[form_of(label)]
        or (label == best_own and median_s < medians_s.get(LIBRARY, 0.0))
    ]


def is_clear(low: float, high: float) -> bool:
    """Whether a speed-up in this interval is significant, by MARGIN, and no wider than WIDEST."""
    return low > 1 + MARGIN and high <= WIDEST * low


@dataclass(frozen=True)
class Race:
    """The samples of one race.

    samples: maps a competitor's label to its seconds, by repetition.  A competitor that left early
    (`contenders`) has samples of the first repetitions only.   predicted_s: maps a label to the
    model's time.   dropped: the number of repetitions thrown away because ranks did not start
    together.   libraries: the labels of the forms of the MPI library's own collective.
    apart_s: the greatest difference of starts that was allowed, in seconds.   bound_s: the
    lower bound in seconds, with t0 and λ at the lower ends of their intervals.   load: what
    the timing took.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int
    samples: Mapping[str, tuple[float, ...]]
    predicted_s: Mapping[str, float]
    dropped: int = 0
    libraries: tuple[str, ...] = LIBRARIES
    apart_s: float = 0.0
    bound_s: float = 0.0
    load: Load = UNKNOWN_LOAD

    @cached_property
    def library(self) -> str:
        """The label of the library's fastest form, with which other competitors are compared."""
        ran = [label for label in self.libraries if label in self.samples]
        return min(ran, key=lambda label: self.medians[label].middle)

    @cached_property
    def medians(self) -> dict[str, Interval]:
        """Maps each competitor's label to its median and interval, in seconds."""
        return {label: median_interval(times) for label, times in self.samples.items()}

    def against(self, other: str, label: str) -> Interval:
        """How many times as fast as `other` the competitor `label` is, with an interval."""
        pairs = zip(self.samples[other], self.samples[label], strict=False)
        return ratio_interval(*zip(*pairs, strict=True))

    def speedup(self, label: str) -> Interval:
        """How many times as fast as the library's fastest form the competitor `label` is."""
        return self.against(self.library, label)

    @cached_property
    def best(self) -> str:
        """The label of the fastest that ran to the end, without the library's defaults.

        `library` if no other competitor ran to the end.
        """
        return self._fastest(label for label in self.samples if label not in self.libraries)

    @cached_property
    def best_own(self) -> str:
        """The library's fastest other algorithm that ran to the end; `library` if there is none."""
        return self._fastest(label for label in self.samples if own_algorithm(label) is not None)

    def _fastest(self, labels: Iterable[str]) -> str:
        last = max(map(len, self.samples.values()))
        finished = [label for label in labels if len(self.samples[label]) == last]
        return min(finished, key=lambda label: self.medians[label].middle, default=self.library)

    @cached_property
    def winner(self) -> str:
        """The winner: `library`, or `best` if clearly faster (`is_clear`) and not `impossible`."""
        if self.best == self.library or self.impossible:
            return self.library
        gain = self.speedup(self.best)
        return self.best if is_clear(gain.low, gain.high) else self.library

    @cached_property
    def impossible(self) -> bool:
        """Whether a competitor clearly beat the lower bound; then the race decides nothing."""
        limit_s = IMPOSSIBLE * self.bound_s
        return any(median.high < limit_s for median in self.medians.values())

    def among(self, labels: Iterable[str]) -> "Race":
        """The race reduced to the competitors with these labels."""
        chosen = set(labels)
        return replace(self, samples={k: v for k, v in self.samples.items() if k in chosen})

    @property
    def verdict(self) -> str:
        """A phrase: whether `best` won against the library, or why it did not; cores that moved."""
        return "; ".join(filter(None, (self._decision, cores_moved(*self.load.lines_s))))

    @property
    def _decision(self) -> str:
        gain = self.speedup(self.best)
        if self.impossible:
            return "below its bound: t0 or λ is wrong, the library's own stays"
        if self.winner != self.library:
            between = f"{gain.low:.2f} … {gain.high:.2f} with 95 % confidence"
            return f"{gain.middle:.2f}× as fast as the library's own ({between})"
        if gain.high < 1:
            return "the library's own is faster"
        if gain.high - gain.low > 1:
            return "too noisy to tell: the library's own stays"
        return "no clear gain: the library's own stays"
