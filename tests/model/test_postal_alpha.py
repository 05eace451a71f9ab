"""The legal α: ranges, intersections, the table, the triangles [Bruck1996 §2.4, §2.5]."""

from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.latencies import LATENCIES, latencies

from collwise.model import postal

HALF = Fraction(1, 2)


def test_split_rounds_halves_up_unlike_python() -> None:
    assert [postal.split(n, HALF) for n in (2, 3, 5, 7, 9)] == [1, 2, 3, 4, 5]
    assert round(2.5) == 2


@given(st.integers(2, 1 << 30), st.fractions(HALF, Fraction(999, 1000), max_denominator=1000))
def test_split_leaves_someone_on_both_sides(n: int, alpha: Fraction) -> None:
    kept = postal.split(n, alpha)
    assert 1 <= kept <= n - 1
    assert kept == n - 1 or abs(kept - alpha * n) <= HALF


@pytest.mark.parametrize("lam", LATENCIES)
def test_alpha_is_legal_exactly_in_its_range(lam: Fraction) -> None:
    """At every α in [1/2, 1) where the split changes, and just below it."""
    for n in range(2, 40):
        low, high = postal.alpha_range(n, lam)
        n_min, n_max = postal.partitions(n, lam)
        jumps = [Fraction(2 * k + 1, 2 * n) for k in range(n)]
        for alpha in [a for j in jumps for a in (j, j - Fraction(1, 10**6)) if HALF <= a < 1]:
            legal = n_min <= postal.split(n, alpha) <= n_max
            assert legal == (low <= alpha < high)
        assert high > HALF


@given(latencies)
def test_intersection_is_that_of_all_ranges(lam: Fraction) -> None:
    """The slow twin: every n up to 100, not only one for each triangle."""
    ranges = [postal.alpha_range(n, lam) for n in range(2, 101)]
    lows = accumulate((low for low, _ in ranges), max)
    highs = accumulate((high for _, high in ranges), min)
    for n, (low, high) in enumerate(zip(lows, highs, strict=True), start=2):
        assert postal.alpha_intersection(n, lam) == ((low, high) if low < high else None)


def test_latency_1_8_has_triangles_at_every_fifth() -> None:
    """From some n on, T_λ takes every multiple of 1/f: f·(T(N) − T(N_before)) is 1."""
    table = postal.alpha_table(1 << 20, 1.8)
    times = [postal.broadcast_time(top, 1.8) for top in table.tops]
    steps = [5 * (later - earlier) for earlier, later in pairwise(times)]
    assert steps[-20:] == [1] * 20


@pytest.mark.parametrize("lam", [Fraction(lam) for lam in ("1", "1.293", "9/5", "39/20", "2")])
def test_corners_tend_to_their_asymptotes(lam: Fraction) -> None:
    """The finer the grain 1/f, the later: λ = 1.95 (f = 20) is 0.03 off at n = 10^12."""

    def distance(n: int) -> float:
        exact = postal.corners(n, lam)
        return max(abs(c.alpha - a) for c, a in zip(exact, limit, strict=True))

    limit = postal.asymptotic_corners(lam)
    assert distance(10**300) <= distance(10**12) < 0.1
    assert distance(10**300) < {20: 1e-4, 1000: 2e-2}.get(lam.denominator, 1e-12)


@pytest.mark.parametrize("lam", LATENCIES)
def test_corners_are_those_of_all_n_with_the_same_time(lam: Fraction) -> None:
    for n in range(2, 100):
        top, left, right = postal.corners(n, lam)
        time = postal.broadcast_time(n, lam)
        assert left.n == right.n <= n <= top.n
        assert postal.broadcast_time(left.n, lam) == postal.broadcast_time(top.n, lam) == time
        assert postal.broadcast_time(top.n + 1, lam) > time
        assert left.n == 2 or postal.broadcast_time(left.n - 1, lam) < time
        n_min, n_max = postal.partitions(left.n, lam)
        assert (left.alpha, right.alpha) == (Fraction(n_min, left.n), Fraction(n_max, right.n))
        n_min, n_max = postal.partitions(top.n, lam)
        assert top.alpha == Fraction(n_min, top.n) == Fraction(n_max, top.n)


@pytest.mark.parametrize("lam", LATENCIES)
def test_table_splits_every_n_optimally(lam: Fraction) -> None:
    table = postal.alpha_table(2000, lam)
    assert table.tops[-2] < 2000 <= table.tops[-1]
    assert len(table) == len(table.tops)
    for n in range(2, table.tops[-1] + 1):
        alpha = table.lookup(n)
        assert HALF <= alpha < 1
        n_min, n_max = postal.partitions(n, lam)
        assert n_min <= postal.split(n, alpha) <= n_max


@given(st.integers(2, 1 << 24), latencies)
def test_table_reaches_the_optimal_time(n: int, lam: Fraction) -> None:
    table = postal.alpha_table(n, lam)
    assert all(HALF <= alpha < 1 for alpha in table.alphas)
    time = postal.tree_time(lambda m: postal.split(m, table.lookup(m)), n, lam)
    assert time == postal.broadcast_time(n, lam)
