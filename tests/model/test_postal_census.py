"""The census: every contribution once, in the time of the paper [Bruck1996 §3]."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor, isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.model import postal
from collwise.model.postal import CensusRound

WHOLE = [1, 2, 3, 4, 7]
NUMBERS = [*range(1, 35), *range(35, 131, 8)]
LATENCIES = [
    Fraction(lam) for lam in ("5/4", "7/5", "3/2", "9/5", "9/4", "5/2", "11/4", "10/3", "19/4")
]


BITS = 16  # of a running value, for each contributor: how often it is in there


def once(*contributors: int) -> int:
    """A running value that counts each of these contributors once more."""
    return sum(1 << BITS * i for i in contributors)


def total(value: int) -> int:
    """How many contributions are in a running value: the sum of its digits."""
    return value % ((1 << BITS) - 1)


def run(n: int, rounds: Sequence[CensusRound], last: int) -> list[int]:
    """The slow twin: every rank's T after round `last`; contributors are counted."""
    both = {"T": [[once(i) for i in range(n)]], "S": [[0] * n]}
    for r in range(1, last + 1):
        for history in both.values():
            history.append([*history[-1]])
        for message in (m for m in rounds if m.received == r):
            sent = both[message.state][message.sent - 1]
            assert {total(value) for value in sent} == {message.contributions}
            for history in both.values():
                for j, value in enumerate(sent):
                    history[r][(j - message.shift) % n] += value
    return both["T"][last]


def sizes(n: int, k: int, epsilon: Sequence[int]) -> list[int]:
    """N_ε(0), N_ε(1), … as the paper has it."""
    t = int(postal.broadcast_time(n, k))
    numbers = [1] * min(k, t + 1)
    for r in range(k, t + 1):
        numbers.append(numbers[r - 1] + numbers[r - k] - epsilon[r - k])
    return numbers


@pytest.mark.parametrize("k", WHOLE)
def test_every_contribution_once_finished_at_t_lambda(k: int) -> None:
    """One message at a time, and each for k rounds on its way."""
    for n in NUMBERS:
        rounds = postal.census_rounds(n, k)
        t = postal.broadcast_time(n, k)
        assert set(run(n, rounds, int(t))) == {once(*range(n))}
        assert max((message.received for message in rounds), default=0) == t
        assert [m.sent for m in rounds] == sorted({m.sent for m in rounds})
        assert all(m.received == m.sent + k - 1 for m in rounds)
        assert all(1 <= m.shift < n and m.contributions >= 1 for m in rounds)
        assert 1 + sum(m.contributions for m in rounds) == n


@given(st.integers(1, 1 << 24), st.integers(1, 40))
def test_deficiencies_reach_any_number_of_ranks(n: int, k: int) -> None:
    epsilon = postal.deficiencies(n, k)
    assert set(epsilon) <= {0, 1}
    assert len(epsilon) == (postal.broadcast_time(n, k) - k + 1 if n > 1 else 0)
    assert sizes(n, k, epsilon)[-1] == n


@pytest.mark.parametrize("k", WHOLE)
def test_a_full_number_of_ranks_has_no_deficiency(k: int) -> None:
    full = {postal.reached(t, k) for t in range(60)}
    assert all(any(postal.deficiencies(n, k)) == (n not in full) for n in range(1, 200))


@pytest.mark.parametrize("k", WHOLE)
def test_the_papers_own_scheme_for_a_full_number_of_ranks(k: int) -> None:
    """§3.1 as printed: S_i is sent up to i + N(r + λ − 2), intervals run downwards from i."""
    for t in range(k, 40):
        n = postal.reached(t, k)
        if n > 130:
            break
        history = [[once(i) for i in range(n)]]
        for r in range(1, t + 1):
            now = [*history[-1]]
            if r >= k:
                for i in range(n):
                    now[(i + postal.reached(r - 1, k)) % n] += history[r - k][i]
            history.append(now)
        assert set(history[t]) == {once(*range(n))}


@pytest.mark.parametrize("k", WHOLE)
def test_erratum_the_literal_scheme_combines_the_wrong_number(k: int) -> None:
    """Sending S where ε is 0 and T where it is 1 fails for every n >= 2, to whomever it is sent."""
    for n in range(2, 131):
        epsilon = postal.deficiencies(n, k)
        assert sizes(n, k, [1 - e for e in epsilon])[-1] != n


def test_an_empty_s_is_no_message() -> None:
    silent = [
        n for n in range(2, 12) if len(postal.census_rounds(n, 2)) < postal.broadcast_time(n, 2) - 1
    ]
    assert silent == [4, 6, 9, 10]


def test_a_state_newer_than_the_round_before_spoils_it() -> None:
    """λ = 2, n = 5: round 3 sends T as it was after round 2; what round 3 receives is too new."""
    rounds = postal.census_rounds(5, 2)
    assert rounds[2] == CensusRound(3, "T", 3, 4, 2)
    newer = [*rounds[:2], rounds[2]._replace(sent=4, contributions=3)]
    assert run(5, newer, 4)[0] == once(0, 1, 2, 3, 4) + once(0)


def clocks(n: int, rounds: Sequence[CensusRound], lam: Fraction) -> list[Fraction]:
    """The slow twin of `census_time`: every rank's finishing time, message by message."""
    send_port, receipts = [Fraction(0)] * n, [[(0, Fraction(0))] for _ in range(n)]
    for message in rounds:
        arrivals = []
        for j in range(n):
            held = max(time for r, time in receipts[j] if r < message.sent)
            start = max(send_port[j], held)
            send_port[j] = start + 1
            arrivals.append(((j - message.shift) % n, start + lam))
        for i, arrival in arrivals:
            time = max(arrival, receipts[i][-1][1] + (1 if receipts[i][-1][0] else 0))
            receipts[i].append((message.received, time))
    return [done[-1][1] for done in receipts]


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_census_time_is_that_of_every_rank(lam: Fraction) -> None:
    for n, k in product((*range(1, 12), 20, 33, 39), (floor(lam), ceil(lam), ceil(lam) + 1)):
        expected = postal.census_time(n, k, lam)
        assert set(clocks(n, postal.census_rounds(n, k), lam)) == {expected}


@pytest.mark.parametrize("k", WHOLE)
def test_for_a_whole_latency_everything_is_t_lambda(k: int) -> None:
    for n in range(1, 300):
        t = postal.broadcast_time(n, k)
        assert t == postal.census_time(n, k, k)
        assert t == postal.delay_receive_time(n, k) == postal.delay_send_time(n, k)


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_erratum_run_early_both_are_within_the_papers_times(lam: Fraction) -> None:
    k, up = floor(lam), ceil(lam)
    for n in (*range(2, 66), *range(66, 300, 9)):
        stretched = postal.census_time(n, k, lam)
        q, r = divmod(postal.broadcast_time(n, k), k)
        assert stretched == q * lam + r
        assert stretched <= postal.delay_send_time(n, lam) == (q + Fraction(r, k)) * lam
        assert (stretched < postal.delay_send_time(n, lam)) == (r > 0)
        delayed = postal.census_time(n, up, lam)
        assert postal.delay_receive_time(n, lam) == postal.broadcast_time(n, up)
        assert delayed <= postal.delay_receive_time(n, lam) - (up - lam)
        assert min(stretched, delayed) >= postal.broadcast_time(n, lam)


@pytest.mark.no_cover
@pytest.mark.parametrize("lam", LATENCIES)
def test_no_other_census_is_faster(lam: Fraction) -> None:
    for n in range(2, 150, 5):
        two = min(postal.census_time(n, k, lam) for k in (floor(lam), ceil(lam)))
        assert two <= min(postal.census_time(n, k, lam) for k in range(1, ceil(lam) + 4))


def test_latency_2_5_and_64_ranks() -> None:
    """12, not the paper's 12.5; the lower bound is T_λ(64) = 11.5."""
    lam = Fraction(5, 2)
    assert postal.delay_send_time(64, lam) == Fraction(25, 2) < postal.delay_receive_time(64, lam)
    assert [postal.census_time(64, k, lam) for k in (2, 3)] == [Fraction(25, 2), 12]
    assert postal.broadcast_time(64, lam) == Fraction(23, 2)


def test_neither_is_always_optimal() -> None:
    lam = Fraction(5, 4)
    assert [postal.census_time(17, k, lam) for k in (1, 2)] == [Fraction(25, 4)] * 2
    assert postal.broadcast_time(17, lam) == Fraction(21, 4)


@pytest.mark.parametrize("lam", LATENCIES)
def test_the_recursions_of_3_2_and_3_3(lam: Fraction) -> None:
    """Read literally (t >= λ), N' is ⌈λ⌉ − λ ahead of T_⌈λ⌉; N'' is delay-send's time exactly."""
    k, up = floor(lam), ceil(lam)

    @cache
    def receive(t: Fraction) -> int:
        return receive(t - 1) + receive(t - up) if t >= lam else 1

    @cache
    def send(t: Fraction) -> int:
        return send(t - lam / k) + send(t - lam) if t >= lam else 1

    tick = Fraction(1, 1000)
    for n in range(2, 60):
        t = postal.delay_receive_time(n, lam) - (up - lam)
        assert receive(t) >= n > receive(t - tick)
        t = postal.delay_send_time(n, lam)
        assert send(t) >= n > send(t - tick)


@pytest.mark.parametrize("k", range(1, 10))
def test_the_approaches_grow_alike_at_the_break_even_point(k: int) -> None:
    even = postal.break_even(k)
    assert isclose(postal.delay_send_growth(even), postal.delay_receive_growth(even), rel_tol=1e-12)
    below, above = even - 0.01, even + 0.01
    assert postal.delay_send_growth(below) > postal.delay_receive_growth(below)
    assert postal.delay_send_growth(above) < postal.delay_receive_growth(above)


@pytest.mark.parametrize("lam", LATENCIES)
def test_growth_is_that_of_the_times(lam: Fraction) -> None:
    many, more = 10**60, 10**180
    for time, growth in (
        (postal.delay_receive_time, postal.delay_receive_growth),
        (postal.delay_send_time, postal.delay_send_growth),
    ):
        per_t0 = log(more // many) / float(time(more, lam) - time(many, lam))
        assert isclose(per_t0, log(growth(lam)), rel_tol=1e-2)


def test_growth_of_a_whole_latency_is_that_of_table_1() -> None:
    for k in range(1, 11):
        assert postal.delay_receive_growth(k) == postal.growth(k)
        assert isclose(postal.delay_send_growth(k), postal.growth(k), rel_tol=1e-15)


def test_one_rank_takes_no_rounds_at_any_latency() -> None:
    assert postal.census_rounds(1, 10**9) == ()
