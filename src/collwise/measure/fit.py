"""Computes t0 and λ from measured times, exactly, and their confidence intervals.

For one size and one mode of sending, both experiments give times that are linear in the two
unknowns t0 and λt0 (`ProbeSetting.terms`).  The medians over repetitions are fitted by least
squares of the *relative* residuals, since noise grows with the time.  The fit computes in
Fractions: without noise the result is exactly the machine's t0 and λt0.

Intervals need no bootstrap.  Order statistics bound each median. t0 is a linear combination of the
medians with known coefficients, and so is λ to first order.  So the standard errors of the medians,
which are independent, add in quadrature.  The intervals are symmetric on a logarithmic scale, since
t0 and λ are positive.  A campaign repeats a size until the intervals are narrow.  A wrong
model shows not in the intervals, but in a disagreement of the two experiments.

If a short message's t0 is smaller than the noise of the message's latency, t0 is estimated from all
sizes of the protocol (`fit_together`), for t0 is close to a straight line over the sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from statistics import NormalDist, median_high, median_low
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.measure.probes import EXPERIMENTS, ProbeSetting
from collwise.measure.statistics import CONFIDENCE, median_interval, standard_error
from collwise.model.exact import Number, exact, seconds
from collwise.model.machine import Cost
from collwise.profiles.records import MODES, Bounds, MedianTime

Seconds: TypeAlias = Fraction | float
Samples: TypeAlias = Mapping[ProbeSetting, Sequence[Seconds]]

_NORMAL = NormalDist()
_ERRORS = _NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
"""Half the width of a normal distribution's 95 % interval, in standard errors."""


@dataclass(frozen=True)
class Fit:
    """The t0 and λ of one message size and one mode of sending."""

    nbytes: int
    blocking: bool
    cost: Cost
    """t0 and λt0 from both experiments together, positive; λ may be below 1."""
    experiments: tuple[Cost | None, ...]
    """t0 and λt0 from each experiment alone; None if it gives no positive ones, or if `fitted`."""
    uncertainty: tuple[float, float] | None
    """Relative half-widths of the 95 % intervals of t0 and λ; None if unknown."""
    repetitions: int
    """The smallest number of repetitions among the size's probe settings."""
    fitted: bool = False
    """Whether t0 comes from a line over all sizes of the protocol (`fit_together`)."""

    @property
    def t0_interval_s(self) -> Bounds | None:
        """The 95 % interval of t0 in seconds; None if unknown."""
        return self.uncertainty and _bounds(float(self.cost.gap), self.uncertainty[0])

    @property
    def lam_interval(self) -> Bounds | None:
        """The 95 % interval of λ; None if unknown."""
        return self.uncertainty and _bounds(float(self.cost.lam), self.uncertainty[1])

    @property
    def disagreement(self) -> Fraction | None:
        """|λ₁ − λ₂| of the two experiments, divided by the mean of both: a measure of quality.

        None if an experiment alone gives no λ.
        """
        lams = [cost.lam for cost in self.experiments if cost is not None]
        if len(lams) < len(EXPERIMENTS):
            return None
        first, second = lams
        return abs(first - second) / ((first + second) / 2)

    @property
    def is_significant(self) -> bool:
        """Whether t0 differs significantly from 0; True if the uncertainty is unknown."""
        return self.uncertainty is None or self.uncertainty[0] < 1


def fit_samples(samples: Samples) -> Fit | None:
    """Fit all samples (seconds) of one size and mode of sending.

    Returns None if there are no positive t0 and λ: the times do not grow with k, or the clock
    stands still.
    """
    ((nbytes, blocking),) = {(cell.nbytes, cell.blocking) for cell in samples}
    times = {cell: middle(values) for cell, values in samples.items()}
    cost = fit_cost(times)
    if cost is None:
        return None
    experiments = tuple(
        fit_cost({cell: t for cell, t in times.items() if cell.experiment == experiment})
        for experiment in EXPERIMENTS
    )
    repetitions = min(map(len, samples.values()))
    return Fit(nbytes, blocking, cost, experiments, find_uncertainty(samples), repetitions)


def fit_cost(times: Mapping[ProbeSetting, Number]) -> Cost | None:
    """The t0 and λt0 that fit these times (seconds) best, exactly.

    None if a time, t0 or λt0 is not positive, or if the settings cannot tell t0 from λt0.
    """
    known = {cell: exact(time, "a time") for cell, time in times.items()}
    if any(time <= 0 for time in known.values()):
        return None
    rows = [[term / time for term in cell.terms] for cell, time in known.items()]
    uu = sum((u * u for u, _ in rows), Fraction(0))
    uv = sum((u * v for u, v in rows), Fraction(0))
    vv = sum((v * v for _, v in rows), Fraction(0))
    ut = sum((u for u, _ in rows), Fraction(0))
    vt = sum((v for _, v in rows), Fraction(0))
    determinant = uu * vv - uv * uv
    if not determinant:
        return None  # equations of one kind: nothing tells t0 from λt0
    cost = Cost((ut * vv - vt * uv) / determinant, (uu * vt - uv * ut) / determinant)
    return cost if cost.gap > 0 and cost.latency > 0 else None


class _Medians(NamedTuple):
    """Medians of probe settings: seconds, relative standard errors, and rows of terms / median."""

    times: NDArray[np.float64]
    errors: NDArray[np.float64]
    rows: NDArray[np.float64]


def _medians(samples: Samples) -> _Medians | None:
    """The medians of samples; None if there are no samples, or a median is 0.

    After a single repetition, the standard error is taken to be the whole time.
    """
    medians = [median_interval(values) for values in samples.values()]
    times = np.array([median.middle for median in medians])
    if not len(times) or not times.all():
        return None
    counts = list(map(len, samples.values()))
    errors = [
        standard_error(m, n) if n > 1 else m.middle for m, n in zip(medians, counts, strict=True)
    ]
    return _Medians(
        times, np.array(errors) / times, np.array([cell.terms for cell in samples]) / times[:, None]
    )


def find_uncertainty(samples: Samples) -> tuple[float, float] | None:
    """The relative half-widths of the 95 % intervals of t0 and λ, by the same fit in floats.

    None for fewer than two repetitions, a median of 0, or a fit without positive t0 and λt0.
    """
    if not samples or min(map(len, samples.values())) < 2:
        return None
    medians = _medians(samples)
    if medians is None or np.linalg.matrix_rank(medians.rows) < 2:
        return None  # equations of one kind, or times too far apart to be weighed
    by_t0, by_latency = np.linalg.pinv(medians.rows)  # t0 and λt0 per relative change of medians
    t0, latency = float(by_t0.sum()), float(by_latency.sum())
    if t0 <= 0 or latency <= 0:
        return None
    t0_error = np.linalg.norm(by_t0 / t0 * medians.errors)
    lam_error = np.linalg.norm((by_latency / latency - by_t0 / t0) * medians.errors)
    return float(_ERRORS * t0_error), float(_ERRORS * lam_error)


def fit_together(nbytes: int, protocol: Mapping[int, Samples]) -> Fit | None:
    """The fit of a size whose own samples cannot tell t0 from 0; None if no samples give t0.

    protocol: the samples of all sizes of the same protocol and mode of sending, this one included.
    t0 is taken from a straight line over the sizes, which is neither negative nor falling.  The
    line is fitted to the estimates of all sizes, weighted by their standard errors.  Its value at
    this size has a normal distribution, and the reported t0 is the mean of the part above 0. λt0
    follows from t0 and the size's own samples, at least t0.  None, too, if a median of these is 0.
    """
    own = _medians(protocol[nbytes])
    sizes, values, errors = [], [], []
    for size, samples in protocol.items():
        medians = _medians(samples)
        if medians is not None and np.linalg.matrix_rank(medians.rows) == 2:
            by_t0, by_latency = np.linalg.pinv(medians.rows)
            sizes.append(size)
            values.append(by_t0.sum())
            errors.append(max(np.linalg.norm(by_t0 * medians.errors), 1e-6 * by_latency.sum()))
    if own is None or not sizes:
        return None
    line, error = _rising_line(np.array(sizes), np.array(values), np.array(errors), nbytes)
    z = line / error
    t0 = line + error * _NORMAL.pdf(z) / _NORMAL.cdf(z)
    u, v = own.rows.T
    weights = v / (v @ v)
    latency = float(weights @ (1 - u * t0))
    lam_error = 0.0
    if latency > 0:
        change = -float(weights @ u) / latency - 1 / t0  # relative change of λ with t0
        lam_error = float(np.hypot(np.linalg.norm(weights * own.errors) / latency, change * error))
    (blocking,) = {cell.blocking for cell in protocol[nbytes]}
    return Fit(
        nbytes,
        blocking,
        Cost(exact(t0), exact(max(latency, t0))),
        (None,) * len(EXPERIMENTS),
        (_ERRORS * error / t0, _ERRORS * lam_error),
        min(map(len, protocol[nbytes].values())),
        fitted=True,
    )


def _rising_line(
    x: NDArray[np.float64], y: NDArray[np.float64], errors: NDArray[np.float64], at: int
) -> tuple[float, float]:
    """(value at `at`, standard error) of the least-squares line with start and slope >= 0.

    If the points are farther from the line than `errors` explain, the standard error grows in
    proportion.
    """
    columns = np.stack([np.ones(len(x)), x]) / errors
    place = np.array([1.0, at])
    best = (float(np.sum((y / errors) ** 2)), 0.0)  # misfit and value of a line along 0
    for chosen in ([0, 1], [0], [1]):
        coefficients, *_ = np.linalg.lstsq(columns[chosen].T, y / errors, rcond=None)
        if (coefficients >= 0).all():
            misfit = float(np.sum((coefficients @ columns[chosen] - y / errors) ** 2))
            best = min(best, (misfit, float(coefficients @ place[chosen])))
    inverse = np.linalg.pinv(columns.T)
    spare = max(len(x) - 2, 1)
    error = float(np.linalg.norm(place @ inverse)) * max(best[0] / spare, 1.0) ** 0.5
    return best[1], error


def find_median(cell: ProbeSetting, values: Sequence[Seconds]) -> MedianTime:
    """The median of one probe setting's samples, with its interval if there are >= 2 samples."""
    return MedianTime(
        nbytes=cell.nbytes,
        mode=MODES[cell.blocking],
        experiment=1 if cell.experiment == 1 else 2,
        k=cell.k,
        median_s=seconds(middle(values)),
        interval_s=median_interval(values)[1:] if len(values) > 1 else None,
        repetitions=len(values),
    )


def middle(values: Sequence[Seconds]) -> Fraction:
    """The exact median of values."""
    return (exact(median_low(values)) + exact(median_high(values))) / 2


def _bounds(value: float, uncertainty: float) -> Bounds:
    factor = exp(min(uncertainty, 50.0))
    return value / factor, value * factor
