"""[vandeGeijn1991]: the hybrids' recursion, its optimum by exhaustion, cost curves, whole items.

That `time_for` is the time of the routines is in tests/algorithms/test_combining.py.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.model import hybrid

GAMMA = Fraction(35, 100)
costs = st.fractions(0, 1000, max_denominator=50)
lengths = st.fractions(0, 10**6, max_denominator=64)


def literal(
    strategy: hybrid.Strategy, n: Fraction, alpha: Fraction, beta: Fraction, gamma: Fraction
) -> Fraction:
    """The slow twin of `time`: the recursion of §3.4, word for word, but for its end at d = 0."""
    if not strategy:
        return Fraction(0)
    *rest, last = strategy
    left = tuple(rest)
    if last == 0:
        return literal(left, n, alpha, beta, gamma) + alpha + n * beta + n * gamma
    return literal(left, n / 2, alpha, beta, gamma) + 2 * alpha + n * beta + n / 2 * gamma


@pytest.mark.no_cover
@given(st.lists(st.sampled_from((0, 1)), max_size=10), lengths, costs, costs, costs)
def test_time_is_the_recursion(
    choices: list[int], n: Fraction, alpha: Fraction, beta: Fraction, gamma: Fraction
) -> None:
    expected = literal(tuple(choices), n, alpha, beta, gamma)
    assert hybrid.time(choices, n, alpha, beta, gamma) == expected
    assert hybrid.to_root_time(choices, n, alpha, beta, gamma) == expected


def machines(seed: int, count: int) -> Iterator[tuple[int, int, int, int]]:
    """n, α, β, γ of every order of magnitude, one in five 0, one in three at a tie if possible."""
    random = Random(seed)

    def cost(largest: float) -> int:
        return int(10 ** random.uniform(0, largest)) if random.random() < 0.8 else 0

    for _ in range(count):
        alpha, beta, gamma = cost(5), cost(3), cost(3)
        n = int(10 ** random.uniform(0, 5.5)) if random.random() < 0.95 else 0
        k = random.randrange(6)
        gain = k * (beta + gamma) + gamma
        if gain and random.random() < 0.33:
            n, alpha = (alpha, n * gain) if n else (n, alpha)
            n, alpha = max(1, alpha // gain), max(1, n) * gain
            n = n * 2 ** random.randrange(9)
        yield n, alpha, beta, gamma


@pytest.mark.no_cover
@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_theorem_1_is_optimal_among_all_strategies(count: int) -> None:
    """For every d <= 6: S̄ is a fastest one, Corollary 4 its time; and how ties fall."""
    ties = 0
    for n, alpha, beta, gamma in machines(2, count):
        for d in range(7):
            every = product((0, 1), repeat=d)
            times = {s: hybrid.time(s, n, alpha, beta, gamma) for s in every}
            strategy, least = hybrid.best(n, d, alpha, beta, gamma), min(times.values())
            assert times[strategy] == hybrid.corollary4(n, d, alpha, beta, gamma) == least
            halvings = [sum(s) for s, time in times.items() if time == least]
            ties += len(halvings) > 1
            if gamma or (alpha and n):
                assert sum(strategy) == max(halvings)
    assert ties > count / 5


def test_theorem_1_where_its_quotient_is_infinite() -> None:
    """γ = 0, k = 0: n·0 >= 2^d·α says so itself if α > 0, and is a tie if α = 0."""
    for d, n in product(range(1, 9), (1, 8, 10**6)):
        whole, halved = (0,) + (1,) * (d - 1), (1,) * d
        assert hybrid.time(whole, n, 3, 2, 0) + 3 == hybrid.time(halved, n, 3, 2, 0)
        assert hybrid.time(whole, n, 0, 2, 0) == hybrid.time(halved, n, 0, 2, 0)
        assert hybrid.best(n, d, 0, 2, 0) == whole
        assert hybrid.best(n, d, 3, 0, 0) == hybrid.best(n, d, 0, 0, 0) == (0,) * d
        assert hybrid.best(n, d, 0, 0, 1) == halved
    assert hybrid.best(0, 4, 1, 1, 1) == (0, 0, 0, 0)


def test_floats_mean_their_decimals() -> None:
    assert hybrid.time((0, 1), 8, 525.0, 2, 0.35) == hybrid.time((0, 1), 8, 525, 2, GAMMA)
    assert hybrid.best(100, 2, 0.1, 0.1, 0.1) == hybrid.best(100, 2, "1/10", "1/10", "0.1")


def curve(random: Random) -> dict[int, Fraction]:
    """A cost that never falls: pieces of straight lines, with jumps between them."""
    values, slope, value = {}, 0, random.randrange(100)
    for m in range(1, 200):
        if random.random() < 0.1:
            slope, value = random.randrange(10), value + random.randrange(100)
        value += slope
        values[m] = Fraction(value, 7)
    return values


@given(st.integers(0, 500), st.integers(0, 8), costs, costs, costs)
def test_theorem_1_is_a_special_case(
    parts: int, d: int, alpha: Fraction, beta: Fraction, gamma: Fraction
) -> None:
    n, machine = parts << d, (alpha, beta, gamma)
    chosen = hybrid.best_for(lambda m: alpha + m * beta, lambda m: m * gamma, n, d)
    assert hybrid.time(chosen, n, *machine) == hybrid.corollary4(n, d, *machine)
    if n and (alpha or gamma):
        assert chosen == hybrid.best(n, d, *machine)
    if n:
        expected = hybrid.time(chosen, n, *machine)
        for to_root in (False, True):
            cost, combine = (lambda m: alpha + m * beta), (lambda m: m * gamma)
            assert hybrid.best_for(cost, combine, n, d, to_root=to_root) == chosen
            assert hybrid.time_for(chosen, cost, combine, n, to_root=to_root) == expected


@pytest.mark.no_cover
@pytest.mark.parametrize("to_root", [False, True])
@pytest.mark.parametrize("d", range(7))
def test_dynamic_programming_is_optimal_among_all_strategies(d: int, to_root: bool) -> None:
    random = Random(d)
    for n in [0, 1, 2, 3] + [random.randrange(200) for _ in range(8)]:
        cost, combine = curve(random).__getitem__, curve(random).__getitem__
        every = {
            s: hybrid.time_for(s, cost, combine, n, to_root=to_root)
            for s in product((0, 1), repeat=d)
        }
        chosen = hybrid.best_for(cost, combine, n, d, to_root=to_root)
        assert every[chosen] == min(every.values())


def test_each_curve_is_asked_little() -> None:
    asked: list[int] = []

    def cost(m: int) -> int:
        asked.append(m)
        return m

    hybrid.best_for(cost, lambda m: 0, 1000, 10)
    assert asked == [1000, 500, 250, 125, 63, 32, 16, 8, 4, 2, 1]
    asked.clear()
    hybrid.best_for(cost, lambda m: 0, 5, 3, to_root=True)
    assert asked == [5, 3, 2, 1, 2, 1, 1]  # gathered: 2 of 5, 1 of 3, 1 of 2


def fig_8(m: int) -> int:
    """The iPSC/860's message, not padded, in µs: short ones start up 61 µs faster."""
    return (419 if m <= 25 else 480) + 2 * m


def adding(m: int) -> Fraction:
    return GAMMA * m


def test_the_rule_itself() -> None:
    rule = hybrid.short_message_rule
    assert rule(25, 6, 480, 2, GAMMA) == (0, 0, 0, 0, 0, 0)
    assert rule(26, 6, 480, 2, GAMMA) == (0, 0, 0, 0, 0, 1)
    assert rule(51, 6, 480, 2, GAMMA) == (0, 0, 0, 0, 1, 1)  # 51, 26, 13
    assert rule(1600, 6, 480, 2, GAMMA) == (1, 1, 1, 1, 1, 1)
    assert rule(1601, 6, 480, 2, GAMMA) == hybrid.best(1601, 6, 480, 2, GAMMA)
    assert rule(0, 6, 480, 2, GAMMA) == (0, 0, 0, 0, 0, 0)


def test_fig_8_short_vectors_drop_and_gain() -> None:
    """Versions 1 and 2 drop by 61 µs a message at n = 25; the hybrid gains for short vectors."""
    whole, halved = (0,) * 6, (1,) * 6

    def time(strategy: hybrid.Strategy, n: int) -> Fraction:
        return hybrid.time_for(strategy, fig_8, adding, n)

    assert time(whole, 26) - time(whole, 25) == 6 * (61 + 2 + GAMMA)

    def gain(n: int) -> Fraction:
        hybrids = time(hybrid.best_for(fig_8, adding, n, 6), n)
        return 1 - hybrids / min(time(whole, n), time(halved, n))

    assert max(gain(n) for n in range(100, 1601, 25)) > Fraction("0.18")
    assert max(gain(n) for n in range(6400, 12801, 100)) < Fraction("0.02")


def test_a_strategy_of_booleans_is_one_of_integers() -> None:
    assert str(hybrid.checked_strategy([False, True], 2)) == "(0, 1)"
