"""From times to t0 and λ, exactly; and how sure one can be.

For one size and one way of sending, both experiments give times that are linear in the two unknowns
t0 and λt0 (`Cell.terms`).  The medians over repetitions are fitted by least squares of the
*relative* residuals (noise grows with the time it disturbs), in Fractions: without noise the
system is consistent and its solution is the machine's, to the last digit.

Intervals need no bootstrap.  The order statistics of the repetitions bound each median whatever the
distribution is; t0 is a linear combination of the medians with known coefficients, λ to first order
too; so the standard errors of the medians, which are independent, add in quadrature.  The intervals
are symmetric on a logarithmic scale, as both are positive.  That is deterministic, and cheap enough
to be also the rule by which a campaign stops.  What it cannot see is a model that does not hold:
that is what the disagreement of the two experiments shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, hypot, isfinite
from statistics import NormalDist, median
from typing import NamedTuple, TypeVar

from collwise.errors import InvalidArgument
from collwise.measure.probes import EXPERIMENTS, Cell
from collwise.model.exact import Number, exact

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Seconds = Fraction | float
Samples = Mapping[Cell, Sequence[Seconds]]
Interval = tuple[float, float]

_T = TypeVar("_T", Fraction, float)


class Law(NamedTuple):
    """A fitted t0 and λt0, in exact seconds, both positive; λ may come out below 1."""

    t0: Fraction
    latency: Fraction

    @property
    def lam(self) -> Fraction:
        """λ as measured."""
        return self.latency / self.t0


@dataclass(frozen=True)
class Median:
    """The raw material of a fit: one experiment with one k."""

    cell: Cell
    seconds: Fraction
    interval_s: Interval | None
    """Order-statistic interval of the median; None for a single repetition."""
    repetitions: int


@dataclass(frozen=True)
class Fit:
    """What was found for one size and one way of sending."""

    nbytes: int
    blocking: bool
    law: Law
    """From both experiments together."""
    experiments: tuple[Law | None, ...]
    """From each experiment alone; None where its times do not grow with k."""
    uncertainty: tuple[float, float] | None
    """Relative half-widths of the 95 % intervals of t0 and λ; None after a single repetition."""
    repetitions: int
    """The fewest that any cell has."""

    @property
    def t0_interval_s(self) -> Interval | None:
        """The 95 % interval of t0."""
        return self.uncertainty and _interval(float(self.law.t0), self.uncertainty[0])

    @property
    def lam_interval(self) -> Interval | None:
        """The 95 % interval of λ."""
        return self.uncertainty and _interval(float(self.law.lam), self.uncertainty[1])

    @property
    def disagreement(self) -> Fraction | None:
        """|λ₁ − λ₂| relative to their mean: the quality of the measurement.

        None if an experiment alone gives no λ.
        """
        laws = [law for law in self.experiments if law is not None]
        if len(laws) < len(EXPERIMENTS):
            return None
        first, second = (law.lam for law in laws)
        return abs(first - second) / ((first + second) / 2)

    @property
    def is_significant(self) -> bool:
        """Whether t0 can be told from 0, as far as the repetitions tell."""
        return self.uncertainty is None or self.uncertainty[0] < 1


def fit_samples(samples: Samples) -> Fit | None:
    """Fit all samples (seconds) of one size and way of sending.

    None if they give no positive t0 and λ: the times do not grow with k, or the clock stands still.
    Raises InvalidArgument if the samples are of several sizes or ways of sending.
    """
    kinds = {(cell.nbytes, cell.blocking) for cell in samples}
    if len(kinds) != 1:
        raise InvalidArgument(
            "a fit", f"{len(kinds)} kinds of message", "give samples of one size and send mode"
        )
    ((nbytes, blocking),) = kinds
    times = {cell: middle(values) for cell, values in samples.items()}
    law = fit_law(times)
    if law is None:
        return None
    known = estimate(samples)
    return Fit(
        nbytes,
        blocking,
        law,
        tuple(
            fit_law({cell: t for cell, t in times.items() if cell.experiment == experiment})
            for experiment in EXPERIMENTS
        ),
        None if known is None else (known.t0_uncertainty, known.lam_uncertainty),
        min(map(len, samples.values())),
    )


def fit_law(times: Mapping[Cell, Number]) -> Law | None:
    """The t0 and λt0 that explain these times best, exactly; None if they are not positive."""
    solution = _solve([(cell.terms, exact(t, "a time")) for cell, t in times.items()])
    return None if solution is None else Law(*solution)


class Estimate(NamedTuple):
    """t0 (seconds) and λ in floats, with relative 95 % half-widths: a campaign's quick look."""

    t0: float
    lam: float
    t0_uncertainty: float
    lam_uncertainty: float


def estimate(samples: Samples) -> Estimate | None:
    """Fit in floats, with uncertainties; None if they cannot be told (yet)."""
    times: list[tuple[tuple[int, int], float]] = []
    spreads: list[float] = []
    for cell, values in samples.items():
        if len(values) < 2:
            return None
        ordered = sorted(map(float, values))
        rank, z = _order_statistics(len(ordered))
        times.append((cell.terms, median(ordered)))
        spreads.append((ordered[-1 - rank] - ordered[rank]) / (2 * z))
    solution = _solve(times)
    if solution is None:
        return None
    t0, latency = solution
    uu, uv, vv = _normal(times)
    determinant = uu * vv - uv * uv
    t0_error = lam_error = 0.0
    for ((u, v), t), spread in zip(times, spreads, strict=True):
        by_t0 = (vv * u - uv * v) / (t * t * determinant)
        by_latency = (uu * v - uv * u) / (t * t * determinant)
        t0_error = hypot(t0_error, by_t0 * spread)
        lam_error = hypot(lam_error, (by_latency - latency / t0 * by_t0) / t0 * spread)
    return Estimate(t0, latency / t0, _Z * t0_error / t0, _Z * lam_error * t0 / latency)


def check_seconds(value: Seconds) -> Seconds:
    """A sample as it is, if it can be a duration.  Raises InvalidArgument otherwise."""
    if not isfinite(value) or value < 0:
        raise InvalidArgument("a timing sample", f"{value} s", "give seconds, finite and >= 0")
    return value


def find_median(cell: Cell, values: Sequence[Seconds]) -> Median:
    """The median of one cell's samples (one or more) with its interval."""
    ordered = sorted(values)
    interval = None
    if len(ordered) > 1:
        rank, _ = _order_statistics(len(ordered))
        interval = float(ordered[rank]), float(ordered[-1 - rank])
    return Median(cell, middle(ordered), interval, len(ordered))


def middle(values: Sequence[Seconds]) -> Fraction:
    """The median, exact."""
    ordered, half = sorted(values), len(values) // 2
    if len(ordered) % 2:
        return exact(ordered[half])
    return (exact(ordered[half - 1]) + exact(ordered[half])) / 2


@lru_cache(maxsize=4096)
def _order_statistics(count: int) -> tuple[int, float]:
    """The i for which x[i] … x[−1−i] of `count` sorted samples bound the median, and their z.

    The narrowest with at least 95 % confidence (all of them where there is none), and the number of
    standard errors of a normal distribution that spans as much on either side.
    """
    below = tail = Fraction(1, 2**count)  # the median lies below x[0] with this probability
    rank, binomial = 0, 1
    while rank + 1 < count // 2:
        binomial = binomial * (count - rank) // (rank + 1)
        below += Fraction(binomial, 2**count)
        if below > Fraction(1 - CONFIDENCE) / 2:
            break
        tail = below
        rank += 1
    return rank, NormalDist().inv_cdf(1 - float(tail))


def _normal(times: Sequence[tuple[tuple[int, int], _T]]) -> tuple[_T, _T, _T]:
    """The matrix of the normal equations, rows weighted by 1/T²."""
    uu = uv = vv = 0 * times[0][1]
    for (u, v), t in times:
        uu += u * u / (t * t)
        uv += u * v / (t * t)
        vv += v * v / (t * t)
    return uu, uv, vv


def _solve(times: Sequence[tuple[tuple[int, int], _T]]) -> tuple[_T, _T] | None:
    """Least squares of the relative residuals, on Fractions or floats alike."""
    if not times or any(t <= 0 for _, t in times):
        return None
    if len({u for (u, _), _ in times}) < 2:
        return None  # equations of one kind: nothing tells t0 from λt0
    uu, uv, vv = _normal(times)
    ut = vt = 0 * times[0][1]
    for (u, v), t in times:
        ut += u / t
        vt += v / t
    determinant = uu * vv - uv * uv
    if determinant <= 0:
        return None  # floats only: times too far apart to be weighed against each other
    t0 = (ut * vv - vt * uv) / determinant
    latency = (uu * vt - uv * ut) / determinant
    return (t0, latency) if t0 > 0 and latency > 0 else None


def _interval(value: float, uncertainty: float) -> Interval:
    factor = exp(min(uncertainty, 50.0))
    return value / factor, value * factor
