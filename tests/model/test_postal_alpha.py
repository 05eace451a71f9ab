"""The legal α: ranges, intersections, the table, the triangles [Bruck1996 §2.4, §2.5]."""

from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise
from math import isclose, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.model import postal

HALF = Fraction(1, 2)
LATENCIES = [
    Fraction(lam)
    for lam in ("1", "5/4", "1.293", "3/2", "9/5", "39/20", "2", "5/2", "17/5", "4", "10")
]
latencies = st.fractions(1, 12, max_denominator=60)


def test_split_rounds_halves_up_unlike_python() -> None:
    assert [postal.split(n, HALF) for n in (2, 3, 5, 7, 9)] == [1, 2, 3, 4, 5]
    assert round(2.5) == 2


@given(st.integers(2, 1 << 30), st.fractions(HALF, Fraction(999, 1000), max_denominator=1000))
def test_split_leaves_someone_on_both_sides(n: int, alpha: Fraction) -> None:
    kept = postal.split(n, alpha)
    assert 1 <= kept <= n - 1
    assert kept == n - 1 or abs(kept - alpha * n) <= HALF


def test_thirteen_ranks_have_one_optimal_split() -> None:
    assert postal.partitions(13, 2) == (8, 8)
    assert postal.alpha_range(13, 2) == (Fraction(15, 26), Fraction(17, 26))


def test_fourteen_ranks_have_eight_optimal_splits() -> None:
    n_min, n_max = postal.partitions(14, 2)
    delta = postal.reached(postal.broadcast_time(14, 2), 2) - 14
    assert (n_min, n_max, delta) == (6, 13, 7)
    assert n_max - n_min == delta
    assert postal.alpha_range(14, 2) == (Fraction(11, 28), Fraction(1))


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


@pytest.mark.parametrize("lam", LATENCIES)
def test_intersection_is_that_of_all_ranges(lam: Fraction) -> None:
    """The slow twin: every n up to 200, not only one for each triangle."""
    ranges = [postal.alpha_range(n, lam) for n in range(2, 201)]
    lows = accumulate((low for low, _ in ranges), max)
    highs = accumulate((high for _, high in ranges), min)
    for n, (low, high) in enumerate(zip(lows, highs, strict=True), start=2):
        assert postal.alpha_intersection(n, lam) == ((low, high) if low < high else None)


@given(st.integers(2, 200), latencies)
def test_intersection_is_that_of_all_ranges_for_any_latency(n: int, lam: Fraction) -> None:
    ranges = [postal.alpha_range(m, lam) for m in range(2, n + 1)]
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    assert postal.alpha_intersection(n, lam) == ((low, high) if low < high else None)


def test_one_alpha_for_all_n_to_250_at_latency_2() -> None:
    low, high = Fraction(287, 466), Fraction(289, 466)
    assert postal.alpha_intersection(250, 2) == (low, high)
    for alpha in (low, high - Fraction(1, 10**9)):
        rule = partial(postal.split, alpha=alpha)
        for n in range(2, 251):
            assert postal.tree_time(rule, n, 2) == postal.broadcast_time(n, 2)


def test_only_the_golden_section_remains_over_all_n() -> None:
    """0.618 fails at n = 17,711; the range closes on the root of x² + x = 1, and keeps it."""
    alpha = Fraction("0.618")
    low, high = postal.alpha_intersection(17_710, 2) or (1, 0)
    assert low <= alpha < high
    low, high = postal.alpha_intersection(17_711, 2) or (1, 0)
    assert not low <= alpha < high
    for n in (10**3, 10**6, 10**12, 10**24):
        low, high = postal.alpha_intersection(n, 2) or (1, 0)
        assert low * low + low < 1 < high * high + high
        assert high - low < Fraction(3, n)


def test_no_alpha_for_all_n_at_latency_1_95() -> None:
    assert postal.alpha_intersection(20, 1.95) is not None
    assert postal.alpha_intersection(21, 1.95) is None
    assert postal.alpha_intersection(250, 1.95) is None
    assert postal.alpha_intersection(10**6, 1.95) is None


def test_latency_1_8_has_triangles_at_every_fifth() -> None:
    """From some n on, T_λ takes every multiple of 1/f: f·(T(N) − T(N_before)) is 1."""
    table = postal.alpha_table(1 << 20, 1.8)
    times = [postal.broadcast_time(top, 1.8) for top in table.tops]
    steps = [5 * (later - earlier) for earlier, later in pairwise(times)]
    assert steps[-20:] == [1] * 20


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_corners_tend_to_their_asymptotes(lam: Fraction) -> None:
    """The finer the grain 1/f, the later: λ = 1.95 (f = 20) is 0.03 off at n = 10^12."""

    def distance(n: int) -> float:
        exact = postal.corners(n, lam)
        return max(abs(c.alpha - a) for c, a in zip(exact, limit, strict=True))

    limit = postal.asymptotic_corners(lam)
    assert distance(10**300) <= distance(10**12) < 0.1
    assert distance(10**300) < {20: 1e-4, 1000: 2e-2}.get(lam.denominator, 1e-12)


def test_right_bottom_is_misprinted_in_the_paper() -> None:
    """For λ = 2 (f = 1, u = 2) the paper's β^(u−1) = 0.618; the corners tend to β^(f−1) = 1."""
    beta = 1 / postal.growth(2)
    assert isclose(postal.asymptotic_corners(2).right, 1)
    assert postal.corners(10**40, 2).right.alpha > 0.999 > beta
    top, left, right = postal.asymptotic_corners(1.8)
    beta = postal.growth(1.8) ** (-1 / 5)
    assert (top, left, right) == pytest.approx((beta**5, 1 - beta**8, beta**4))


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


def test_corners_of_fourteen_ranks() -> None:
    top, left, right = postal.corners(14, 2)
    assert (top, left, right) == (
        (Fraction(13, 21), 21),
        (Fraction(3, 7), 14),
        (Fraction(13, 14), 14),
    )


@pytest.mark.parametrize("lam", LATENCIES)
def test_table_splits_every_n_optimally(lam: Fraction) -> None:
    table = postal.alpha_table(2000, lam)
    assert table.tops[-2] < 2000 <= table.tops[-1]
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


def test_table_for_one_rank_is_empty() -> None:
    assert len(postal.alpha_table(1, 2)) == 0


@pytest.mark.parametrize(("bits", "tops"), [(8, 35), (16, 136), (24, 301)])
def test_the_table_stays_small(bits: int, tops: int) -> None:
    """What the paper counts: triangles with a top in 2 … n.  The table needs the cut one, too."""
    table = postal.alpha_table(1 << bits, 1.293)
    assert sum(top <= 1 << bits for top in table.tops) == tops
    assert len(table) == tops + 1


def test_the_table_grows_like_the_square_of_the_logarithm() -> None:
    sizes = [
        len(postal.alpha_table(1 << bits, 1.293)) / log2(1 << bits) ** 2 for bits in (8, 16, 24)
    ]
    assert max(sizes) / min(sizes) < 1.12
