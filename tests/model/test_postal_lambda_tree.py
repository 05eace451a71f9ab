"""The trees: greedy, by doubling, and the time of any splitting rule [Bruck1996 §2.3, §2.4]."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model import latencies

from collwise.model import postal
from collwise.model.postal import Edge, Grade

HALF = Fraction(1, 2)
LATENCIES = [Fraction(1, 9), Fraction(4, 5), *latencies.LATENCIES]
ANY_LATENCY = st.fractions(Fraction(1, 60), 12, max_denominator=60)


def assert_is_optimal_broadcast(edges: Sequence[Edge], n: int, lam: Fraction) -> None:
    """Every rank informed once, by one that has the message and a free port; the last at T_λ(n)."""
    has = {0: Fraction(0)} | {edge.child: edge.received for edge in edges}
    assert sorted(edge.child for edge in edges) == list(range(1, n))
    free = dict(has)
    for edge in sorted(edges, key=lambda edge: edge.sent):
        assert edge.sent >= free[edge.parent]
        assert edge.received == edge.sent + lam
        free[edge.parent] = edge.sent + 1
    assert max(has.values()) == postal.broadcast_time(n, lam)


def binomial(m: int) -> int:
    return postal.split(m, HALF)


def alpha_time(alpha: Fraction, n: int, lam: Fraction) -> Fraction:
    return postal.tree_time(lambda m: postal.split(m, alpha), n, lam)


def test_tree_of_figure_2() -> None:
    tree = [(e.parent, int(e.sent), int(e.received)) for e in postal.greedy_tree(8, 2)]
    assert tree == [(0, 0, 2), (0, 1, 3), (0, 2, 4), (1, 2, 4), (0, 3, 5), (1, 3, 5), (2, 3, 5)]


@pytest.mark.no_cover
@given(st.integers(1, 1500), ANY_LATENCY)
def test_both_trees_are_optimal_for_any_latency(n: int, lam: Fraction) -> None:
    greedy = postal.greedy_tree(n, lam)
    assert_is_optimal_broadcast(greedy, n, lam)
    assert [edge.child for edge in greedy] == list(range(1, n))
    assert list(greedy) == sorted(greedy, key=lambda edge: edge.sent)
    assert_is_optimal_broadcast(postal.doubling(n, lam).edges(n), n, lam)


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_doubling_serves_every_smaller_number_of_ranks(lam: Fraction) -> None:
    tree = postal.doubling(120, lam)
    for n in range(1, 121, 7):
        assert_is_optimal_broadcast(tree.edges(n), n, lam)


@pytest.mark.parametrize("lam", LATENCIES)
def test_doubling_shares_sub_trees(lam: Fraction) -> None:
    """Far fewer grades than ranks: at most one for each multiple of 1/f, and O(log² n)."""
    grades = postal.doubling(1 << 24, lam).grades
    time = grades[-1].time
    assert time == postal.broadcast_time(1 << 24, lam)
    assert len(grades) <= time * lam.denominator + 1
    assert len(grades) <= (time + 1) ** 2 / (2 * lam) + 2
    for grade in grades[1:]:
        assert grade.size == grades[grade.kept].size + grades[grade.given].size
        assert not grade.kept or grades[grade.kept].time + 1 <= grade.time
        assert grades[grade.given].time + lam <= grade.time


def test_sub_trees_have_consecutive_ranks() -> None:
    edges = postal.doubling(21, 2).edges(21)
    assert edges[0] == Edge(0, 13, Fraction(0), Fraction(2))
    assert all(edge.parent < edge.child for edge in edges)
    assert postal.doubling(1, 2).grades == (Grade(Fraction(0), 1, 0, 0),)
    for edge in edges:  # later children of one parent are nearer to it
        later = [e.child for e in edges if e.parent == edge.parent and e.sent > edge.sent]
        assert all(child < edge.child for child in later)


def test_many_ranks_without_recursion_trouble() -> None:
    lam, n = Fraction(9, 5), 1 << 24
    assert alpha_time(Fraction("0.58"), n, lam) >= postal.broadcast_time(n, lam)
    assert postal.tree_time(binomial, n, lam) == 24 * lam
    assert postal.doubling(n, lam).grades[-1].size >= n
    assert len(postal.doubling(1 << 16, lam).edges(1 << 16)) == (1 << 16) - 1
    assert postal.greedy_tree(1 << 16, lam)[-1].received == postal.broadcast_time(1 << 16, lam)
    assert postal.tree_time(lambda m: 1, 20_000, lam) == 19_999 * lam  # a chain
    assert postal.tree_time(lambda m: m - 1, 20_000, lam) == 19_998 + lam  # a star


@given(
    st.integers(1, 3000), ANY_LATENCY, st.fractions(HALF, Fraction(99, 100), max_denominator=100)
)
def test_tree_time_is_its_recursion_and_never_beats_the_optimum(
    n: int, lam: Fraction, alpha: Fraction
) -> None:
    def recursive(m: int) -> Fraction:
        if m not in times:
            kept = postal.split(m, alpha)
            times[m] = max(recursive(kept) + 1, recursive(m - kept) + lam)
        return times[m]

    times = {1: Fraction(0)}
    assert alpha_time(alpha, n, lam) == recursive(n) >= postal.broadcast_time(n, lam)
