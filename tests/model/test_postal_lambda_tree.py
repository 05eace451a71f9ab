"""The trees: greedy, by doubling, and the time of any splitting rule [Bruck1996 §2.3, §2.4]."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.model import postal
from collwise.model.postal import Edge, Grade

HALF = Fraction(1, 2)
LATENCIES = [
    Fraction(lam)
    for lam in (
        "1/9",
        "4/5",
        "1",
        "5/4",
        "1.293",
        "3/2",
        "9/5",
        "39/20",
        "2",
        "5/2",
        "17/5",
        "4",
        "10",
    )
]
latencies = st.fractions(Fraction(1, 60), 12, max_denominator=60)


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


def time_pieces(n: int, lam: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The time of the α-tree as a step function of α in [1/2, 1): (from this α on, time).

    Exact: the split of m changes only at α = (k + 1/2)/m, and every such α is tried.
    """
    starts = {Fraction(2 * k + 1, 2 * m) for m in range(2, n + 1) for k in range(m)}
    pieces: list[tuple[Fraction, Fraction]] = []
    for alpha in [HALF, *sorted(a for a in starts if HALF < a < 1)]:
        time = alpha_time(alpha, n, lam)
        if not pieces or pieces[-1][1] != time:
            pieces.append((alpha, time))
    return pieces


def test_eight_ranks_at_latency_2() -> None:
    assert postal.greedy_tree(8, 2)[-1].received == postal.broadcast_time(8, 2) == 5
    assert max(edge.received for edge in postal.doubling(8, 2).edges(8)) == 5
    assert postal.tree_time(binomial, 8, 2) == 6
    assert postal.tree_time(binomial, 8, 1) == 3


def test_tree_of_figure_2() -> None:
    tree = [(e.parent, int(e.sent), int(e.received)) for e in postal.greedy_tree(8, 2)]
    assert tree == [(0, 0, 2), (0, 1, 3), (0, 2, 4), (1, 2, 4), (0, 3, 5), (1, 3, 5), (2, 3, 5)]


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_greedy_tree_is_optimal(lam: Fraction) -> None:
    for n in range(1, 130, 2):
        edges = postal.greedy_tree(n, lam)
        assert_is_optimal_broadcast(edges, n, lam)
        assert [edge.child for edge in edges] == list(range(1, n))
        assert list(edges) == sorted(edges, key=lambda edge: edge.sent)


@pytest.mark.no_cover
@given(st.integers(1, 1500), latencies)
def test_both_trees_are_optimal_for_any_latency(n: int, lam: Fraction) -> None:
    assert_is_optimal_broadcast(postal.greedy_tree(n, lam), n, lam)
    assert_is_optimal_broadcast(postal.doubling(n, lam).edges(n), n, lam)


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_doubling_serves_every_smaller_number_of_ranks(lam: Fraction) -> None:
    tree = postal.doubling(120, lam)
    for n in range(1, 121, 2):
        assert_is_optimal_broadcast(tree.edges(n), n, lam)


@pytest.mark.parametrize("lam", LATENCIES)
def test_doubling_and_greedy_inform_at_the_same_times(lam: Fraction) -> None:
    """With as many ranks as can be reached there is only one tree, up to names and ties."""
    tree = postal.doubling(500, lam)
    for grade in tree.grades:
        doubled = sorted(e.received for e in tree.edges(grade.size))
        assert doubled == [e.received for e in postal.greedy_tree(grade.size, lam)]


def test_doubling_of_sixteen_ranks_stops_at_21() -> None:
    grades = postal.doubling(16, 2).grades
    assert [grade.size for grade in grades] == [1, 2, 3, 5, 8, 13, 21]
    assert [grade.time for grade in grades] == [0, 2, 3, 4, 5, 6, 7]
    assert [(grade.kept, grade.given) for grade in grades[1:]] == [
        (0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4),
    ]  # fmt: skip
    assert postal.doubling(1, 2).grades == (Grade(Fraction(0), 1, 0, 0),)


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


def test_a_chain_and_a_star_without_recursion_trouble() -> None:
    n, lam = 20_000, Fraction(5, 2)
    assert postal.tree_time(lambda m: 1, n, lam) == (n - 1) * lam
    assert postal.tree_time(lambda m: m - 1, n, lam) == n - 2 + lam


@given(st.integers(1, 3000), latencies, st.fractions(HALF, Fraction(99, 100), max_denominator=100))
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


@pytest.mark.parametrize("lam", [lam for lam in LATENCIES if lam >= 1])
def test_any_optimal_partition_reaches_the_optimal_time(lam: Fraction) -> None:
    for n in range(2, 80):
        for rule in (
            lambda m: postal.partitions(m, lam)[0],
            lambda m: postal.partitions(m, lam)[1],
        ):
            assert postal.tree_time(rule, n, lam) == postal.broadcast_time(n, lam)


def test_best_alpha_for_64_ranks_at_latency_1_8() -> None:
    """The best α are [71/128, 45/76) = [0.5547, 0.5921); in thousandths 0.555 … 0.592."""
    lam = Fraction(9, 5)
    pieces = time_pieces(64, lam)
    best = [i for i, (_, time) in enumerate(pieces) if time == min(t for _, t in pieces)]
    assert len(best) == 1
    assert pieces[best[0]] == (Fraction(71, 128), Fraction("9.2"))
    assert pieces[best[0] + 1] == (Fraction(45, 76), Fraction("9.4"))
    assert pieces[0] == (HALF, Fraction("10.8"))
    assert postal.tree_time(binomial, 64, lam) == Fraction("10.8")
    assert postal.broadcast_time(64, lam) == Fraction("9.2")
    in_thousandths = [
        a for a in range(500, 1000) if alpha_time(Fraction(a, 1000), 64, lam) == Fraction("9.2")
    ]
    assert in_thousandths == list(range(555, 593))


def test_best_alpha_for_64_ranks_at_latency_1_05() -> None:
    """6.3 for α < 65/128 = 0.5078, then 7.05, until 67/128."""
    pieces = time_pieces(64, Fraction("1.05"))
    assert pieces[:3] == [
        (HALF, Fraction("6.3")),
        (Fraction(65, 128), Fraction("7.05")),
        (Fraction(67, 128), Fraction("7.1")),
    ]
    assert min(time for _, time in pieces) == Fraction("6.3")
