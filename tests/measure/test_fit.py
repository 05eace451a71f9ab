"""The fit: exact without noise, honest about its doubt with noise."""

from fractions import Fraction
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.measure.fit import (
    Fit,
    Seconds,
    find_median,
    find_uncertainty,
    fit_cost,
    fit_samples,
    middle,
)
from collwise.measure.probes import EXPERIMENTS, ProbeSetting
from collwise.model.machine import Cost

KS = (1, 2, 4, 8)


def _cells(
    experiments: tuple[int, ...] = EXPERIMENTS, ks: tuple[int, ...] = KS
) -> list[ProbeSetting]:
    return [ProbeSetting(experiment, 8, k, False) for experiment in experiments for k in ks]


def _time(cell: ProbeSetting, t0: Fraction, lam: Fraction) -> Fraction:
    gaps, latencies = cell.terms
    return gaps * t0 + latencies * lam * t0


@given(
    st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9),
    st.fractions(Fraction(1, 4), 20, max_denominator=10**4),
    st.sampled_from([(1,), (2,), EXPERIMENTS]),
    st.lists(st.integers(1, 20), min_size=2, max_size=5, unique=True),
)
def test_the_law_comes_back_exactly(
    t0: Fraction, lam: Fraction, experiments: tuple[int, ...], ks: list[int]
) -> None:
    if t0 <= 0:
        return
    times = {cell: _time(cell, t0, lam) for cell in _cells(experiments, tuple(ks))}
    assert fit_cost(times) == Cost(t0, lam * t0)


def _fit(samples: dict[ProbeSetting, list[Seconds]]) -> Fit:
    fit = fit_samples(samples)
    assert fit is not None
    return fit


def test_floats_are_read_as_they_are_written() -> None:
    t0, lam = Fraction("1.7e-6"), Fraction(9, 5)
    law = fit_cost({cell: float(_time(cell, t0, lam)) for cell in _cells()})
    assert law == Cost(t0, lam * t0)


@pytest.mark.parametrize(
    "times",
    [
        {cell: Fraction(1) for cell in _cells()},  # no growth
        {cell: Fraction(100 - cell.k) for cell in _cells()},  # the wrong way
        {cell: Fraction(0) for cell in _cells()},  # the clock stands still
        {cell: Fraction(1) for cell in _cells(ks=(1,))},  # two pings: one equation
        {cell: Fraction(1) for cell in _cells((1,), (3,))},
        {cell: Fraction(2 * cell.k - 3) for cell in _cells((1,), (2, 4, 8))},  # λ < 0
        {},
    ],
)
def test_what_gives_no_law(times: dict[ProbeSetting, Fraction]) -> None:
    assert fit_cost(times) is None


def test_times_too_far_apart_for_floats_give_no_estimate() -> None:
    samples: dict[ProbeSetting, list[Seconds]] = {
        ProbeSetting(1, 8, 2, False): [1e-10, 1e-10],
        ProbeSetting(1, 8, 3, False): [1e10, 1e10],
    }
    assert find_uncertainty(samples) is None


def test_disagreement_is_relative_to_the_mean() -> None:
    t0 = Fraction(1)
    fit = _fit({cell: [_time(cell, t0, Fraction(1 + cell.experiment))] * 2 for cell in _cells()})
    assert fit.experiments == (Cost(t0, 2 * t0), Cost(t0, 3 * t0))
    assert fit.disagreement == Fraction(2, 5)
    assert 2 < fit.cost.lam < 3


def test_one_repetition_says_nothing_about_doubt() -> None:
    fit = _fit({cell: [_time(cell, Fraction(1), Fraction(2))] for cell in _cells()})
    assert fit.uncertainty is fit.t0_interval_s is fit.lam_interval is None
    assert fit.is_significant


def test_a_t0_that_might_be_zero_is_not_significant() -> None:
    random = Random(5)
    fit = _fit({cell: [random.uniform(50, 150) + cell.k for _ in range(8)] for cell in _cells()})
    assert not fit.is_significant
    low, high = fit.t0_interval_s or (0, 0)
    assert 0 < low < high


@pytest.mark.no_cover
@pytest.mark.parametrize("repetitions", [5, 16])
def test_intervals_hold_the_truth_about_as_often_as_they_say(repetitions: int) -> None:
    t0, lam = Fraction(1, 10**6), Fraction(9, 5)
    random = Random(repetitions)
    trials = 200
    hits = [0, 0]
    for _ in range(trials):
        samples: dict[ProbeSetting, list[Seconds]] = {
            cell: [
                float(_time(cell, t0, lam)) * random.lognormvariate(0, 0.05)
                for _ in range(repetitions)
            ]
            for cell in _cells()
        }
        fit = _fit(samples)
        assert fit.uncertainty is not None
        hits[0] += abs(fit.cost.gap / t0 - 1) <= fit.uncertainty[0]
        hits[1] += abs(fit.cost.lam / lam - 1) <= fit.uncertainty[1]
    for hit in hits:
        assert 0.9 * trials <= hit <= 0.99 * trials


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_the_median_is_the_median(values: list[int]) -> None:
    samples = [Fraction(v, 7) for v in values]
    assert middle(samples) == median(samples)
    record = find_median(ProbeSetting(1, 8, 1, False), samples)
    assert (record.median_s, record.repetitions) == (float(median(samples)), len(samples))
    assert (record.interval_s is None) == (len(samples) == 1)
    low, high = record.interval_s or (record.median_s, record.median_s)
    assert low <= record.median_s <= high
