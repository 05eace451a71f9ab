"""N_λ, T_λ and γ, against the definitions; tests/papers has the tables of [Bruck1996]."""

from fractions import Fraction
from functools import cache
from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.latencies import LATENCIES, latencies

from collwise.model import postal
from collwise.model.postal import _scaled


def recursion(t: Fraction, lam: Fraction) -> int:
    """The slow twin of `reached`: equation (1), word for word."""

    @cache
    def number(t: Fraction) -> int:
        return number(t - 1) + number(t - lam) if t >= lam else 1

    return number(t)


@given(st.fractions(0, 15, max_denominator=90), latencies)
def test_closed_form_is_the_recursion(t: Fraction, lam: Fraction) -> None:
    assert postal.reached(t, lam) == recursion(t, lam)


@pytest.mark.parametrize("lam", LATENCIES)
def test_staircase_is_every_step_of_the_closed_form(lam: Fraction) -> None:
    num, den = lam.as_integer_ratio()
    grades = _scaled.staircase(5000, lam)
    by_time = [_scaled.reached_scaled(t, num, den) for t in range(int(grades[-1].time * den) + 1)]
    grows = [t for t, size in enumerate(by_time) if t == 0 or size > by_time[t - 1]]
    assert [grade.time * den for grade in grades] == grows
    assert [grade.size for grade in grades] == [by_time[t] for t in grows]
    assert grades[-2].size < 5000 <= grades[-1].size
    assert postal.broadcast_time(1, lam) == 0
    for grade, t in zip(grades[1:], grows[1:], strict=True):
        assert grades[grade.kept].size == by_time[t - den]
        assert grades[grade.given].size == by_time[t - num]


@given(st.integers(2, 1 << 24), latencies)
def test_broadcast_time_is_the_inverse_of_reached(n: int, lam: Fraction) -> None:
    t = postal.broadcast_time(n, lam)
    assert postal.reached(t, lam) >= n > postal.reached(t - Fraction(1, lam.denominator), lam)
    assert t == _scaled.staircase(n, lam)[-1].time


def test_large_numbers_of_ranks() -> None:
    assert postal.broadcast_time(1 << 24, 1) == 24
    assert postal.broadcast_time((1 << 24) + 1, 1) == 25
    assert postal.broadcast_time(10**30, 2) == 145  # N_2(t) is the Fibonacci number F(t + 1)
    fib = (1, 1)
    for _ in range(144):
        fib = (fib[1], sum(fib))
    assert fib[0] < 10**30 <= fib[1]
    assert postal.broadcast_time(1 << 24, 10**6) > 10**6


def test_floats_and_strings_mean_their_decimals() -> None:
    exact = postal.broadcast_time(64, Fraction(9, 5))
    assert postal.broadcast_time(64, 1.8) == postal.broadcast_time(64, "1.8") == exact
    assert postal.reached(0.1 + 0.2, 1) == 1
    assert postal.reached(2.8, 1.8) == postal.reached(Fraction(14, 5), "9/5") == 3


@given(latencies)
def test_scaling_is_gcd_and_lcm_of_one_and_the_latency(lam: Fraction) -> None:
    f, u = postal.scaling(lam)
    assert u / lam == f
    assert all((lam * multiple).denominator > 1 for multiple in range(1, f))


@given(st.fractions(1, 1000, max_denominator=1000))
def test_growth_solves_its_equation(lam: Fraction) -> None:
    x = postal.growth(lam)
    assert isclose((float(lam) - 1) * log(x), -log(x - 1), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("lam", LATENCIES)
def test_growth_is_the_growth_of_reached(lam: Fraction) -> None:
    early, late = postal.reached(200, lam), postal.reached(600, lam)
    assert isclose((log(late) - log(early)) / 400, log(postal.growth(lam)), rel_tol=1e-3)
