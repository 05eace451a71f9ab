"""The laws of ranks' own ports by hand: postal, Hockney, one partner at a time, LogGP; combines."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK, fitting, settings_of, sources_for
from tests.timing.comparing import check
from tests.timing.schedules import (
    ALL,
    BLOCKS,
    IN,
    OUT,
    S0,
    S1,
    S2,
    S3,
    combine,
    messages,
    recv,
    send,
    spelled,
    steps,
    written,
)

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.registry import algorithms_for
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.topology import Complete
from collwise.schedule.operations import Copy, Operation
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.timing.times import Combining
from collwise.verifier import check_ports

F = Fraction
POSTAL = Machine.postal(t0_s=1, lam=2)
MEASURED = measured([[(2, 1, 5), (4, 3, 2)]])  # 2 bytes: 1, 5; 4 bytes: 3, 6
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/2")  # A and B take 3, C takes 2
CONSTANT = Machine.hockney(alpha_s=1, beta_s=0)
ONE_PARTNER = Machine.hockney(alpha_s=1, beta_s=0, exchange_only=True)
BY_LENGTH = Machine.hockney(alpha_s=1, beta_s="1/4", exchange_only=True)
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
FREE_GAPS = Machine.loggp(L_s=10, o_s=2, g_s=0, G_s=0)
COMBINING = Machine.hockney(alpha_s=1, beta_s="1/4", gamma_s="1/2")  # 8 bytes: 3, combined in 4
SLOW = measured([[(8, 1, 2)]]).with_combining([(4, 3), (8, 5)])

FORWARD = spelled(">1A >2B >2C", "<0A >2A", "<0B <1A <0C")
RELAY = spelled(">1A >1B", "<0A >2A <0B >2B", "<1A <1B")

Times = dict[tuple[int, int], tuple[Any, ...]]
MOVED: dict[str, tuple[Machine, Schedule, Times]] = {
    # A and C both reach rank 2 at 4; A is first in its list, so C is received at 5.
    "postal: receipts are t0 apart": (
        POSTAL,
        FORWARD,
        {(0, 0): (0, 1, 2), (0, 1): (1, 2, 3), (1, 1): (2, 3, 4), (0, 2): (2, 3, 5)},
    ),
    # A waits for C at the port, though it comes first.
    "postal: receipts are in list order": (
        POSTAL,
        spelled(">1A >2B >2C", "<0A >2A", "<0B <0C <1A"),
        {(0, 0): (0, 1, 2), (0, 1): (1, 2, 3), (0, 2): (2, 3, 4), (1, 1): (2, 3, 5)},
    ),
    # C is there at 11, but after A; 1 is what C takes, and the first receipt waits for nothing.
    "postal: the gap is that of the message that comes second": (
        MEASURED,
        FORWARD,
        {(0, 0): (0, 3, 6), (0, 1): (3, 6, 9), (1, 1): (6, 9, 12), (0, 2): (6, 7, 13)},
    ),
    # Rank 1 sends A as soon as it has it, although B is before it in the list and not there.
    "postal: a send waits for its data only": (
        POSTAL,
        spelled(">1A >2C >1B", "<0A <0B >2A >2B", "<0C <1A <1B"),
        {
            (0, 0): (0, 1, 2),
            (0, 1): (1, 2, 3),
            (0, 2): (2, 3, 4),
            (1, 2): (2, 3, 4),
            (1, 3): (4, 5, 6),
        },
    ),
    # C waits at rank 0 while 2 is busy with A.
    "Hockney: both ports are busy": (
        HOCKNEY,
        FORWARD,
        {(0, 0): (0, 3, 3), (0, 1): (3, 6, 6), (1, 1): (6, 9, 9), (0, 2): (9, 11, 11)},
    ),
    "Hockney: a rank sends while it receives": (
        CONSTANT,
        RELAY,
        {(0, 0): (0, 1, 1), (0, 1): (1, 2, 2), (1, 1): (1, 2, 2), (1, 3): (2, 3, 3)},
    ),
    "one partner: rank 1 does not receive B from 0 while it sends A to 2": (
        ONE_PARTNER,
        RELAY,
        {(0, 0): (0, 1, 1), (0, 1): (1, 2, 2), (1, 1): (2, 3, 3), (1, 3): (3, 4, 4)},
    ),
    # 1 → 2 is requested at 3/2 and served then, to start at 5; 2 → 3 is requested at 3, and waits.
    "one partner: the wait enters when a request is served": (
        BY_LENGTH,
        spelled(">1d", "<0D >2a", "<5C <1A >3a", "<4AB <2A", ">3ab", ">2c"),
        {(0, 0): (0, 5, 5), (1, 1): (5, 7, 7), (2, 2): (7, 9, 9), (4, 0): (0, 3, 3)}
        | {(5, 0): (0, F(3, 2), F(3, 2))},
    ),
    # A: processed from o + L = 12 for o + 3G = 3.5; the next send at g + 3G.  C: sent at 4.5, there
    # at 16.5; the receive gap is over at 12 + 4.5; 2 + G more.
    "LogGP: two ranks": (
        LOGGP,
        spelled(">1A >1C", "<0A <0C"),
        {(0, 0): (0, 2, F(31, 2)), (0, 1): (F(9, 2), F(13, 2), 19)},
    ),
    # g' = 4.5, o' = 3.5 for A and B.  Rank 0 sends A to 1 at 0, B to 1 at 4.5, AB to 2 at 9.  Rank
    # 1 takes A at 12 until 15.5; then it could send A, or take B, there at 16.5: the send goes
    # first, until 17.5; B is taken from 17.5 until 21.  Rank 2 takes AB, there at 21, until 26.5; A
    # of rank 1, there at 15.5 + 12 = 27.5, waits for the gap until then, and is taken until 31.
    "LogGP: three ranks share one processor each, and receive in the order of arrival": (
        LOGGP,
        spelled(">1A >1B >2AB", "<0A >2A <0B", "<1A <0AB"),
        {
            (0, 0): (0, 2, F(31, 2)),
            (0, 1): (F(9, 2), F(13, 2), 21),
            (0, 2): (9, 11, F(53, 2)),
            (1, 1): (F(31, 2), F(35, 2), 31),
        },
    ),
    # Rank 1 is done with A at 14, when B comes; it sends A first.
    "LogGP: a tie goes to the send": (
        FREE_GAPS,
        RELAY,
        {(0, 0): (0, 2, 14), (0, 1): (2, 4, 18), (1, 1): (14, 16, 28), (1, 3): (18, 20, 32)},
    ),
    # Both messages are at rank 0 at 11: that of rank 1 is processed first, whatever the list says.
    "LogGP: ties at the receiver go by source": (
        Machine.loggp(L_s=10, o_s=1, g_s=0, G_s=0),
        messages(3, (2, 0), (1, 0)),
        {(1, 0): (0, 1, 12), (2, 0): (0, 1, 13)},
    ),
    "LogGP: the gap between receipts counts from their begins": (
        Machine.loggp(L_s=10, o_s=1, g_s=5, G_s=0),
        messages(3, (1, 0), (2, 0)),
        {(1, 0): (0, 1, 12), (2, 0): (0, 1, 17)},
    ),
}

# Rank 0 combines what 1 sends, then what 2 sends, then tells rank 1.
TWICE = written(
    [recv(1, S0), combine(IN, S0, S1), recv(2), combine(S1, OUT), send(1, OUT)],
    [send(0), recv(0, S0)],
    [send(0)],
    collective="reduce",
)
HALF, OTHER = BLOCKS["A"], BLOCKS["B"]
EARLY = [recv(1, S0), recv(2, S3), combine(IN, S3), combine(IN, S0, S1)]
EARLY += [Copy(S1, S2, (ALL,)), send(2, S2)]


def around(*others: list[Operation]) -> Schedule:
    """All three send twice before they combine; of both messages, the second is received after."""
    lists = [
        [
            *(send((rank + 1) % 3, IN, block) for block in (HALF, OTHER)),
            *(recv((rank - 1) % 3, S0, HALF), combine(IN, S0, OUT, HALF)),
            *(recv((rank - 1) % 3, S0, OTHER), combine(IN, S0, OUT, OTHER)),
        ]
        for rank in range(3)
    ]
    return written(*lists, *others, collective="reduce")


# 4 bytes: 2, combined in 2.  In strict list order all would wait for each other.
AROUND: Times = {
    (rank, place): times
    for rank in range(3)
    for place, times in {0: (0, 2, 2), 3: (2, 4), 1: (4, 6, 6), 5: (6, 8)}.items()
}
LONG = BLOCKS["D"]
COMBINED: dict[str, tuple[Machine, Schedule, Times]] = {
    # The second transfer cannot begin before the first combine is over, nor the answer.
    "Hockney: a combine keeps both ports busy": (
        COMBINING,
        TWICE,
        {(1, 0): (0, 3, 3), (0, 1): (3, 7), (2, 0): (7, 10, 10), (0, 3): (10, 14)}
        | {(0, 4): (14, 17, 17)},
    ),
    # t0 = 1, λ = 2, 5 for 8 bytes: the second receipt is t0 after the combine at the earliest.
    "measured: a combine keeps both ports busy": (
        SLOW,
        TWICE,
        {(1, 0): (0, 1, 2), (0, 1): (2, 7), (2, 0): (0, 1, 8), (0, 3): (8, 13)}
        | {(0, 4): (13, 14, 15)},
    ),
    "postal: combining is free": (
        POSTAL,
        TWICE,
        {(1, 0): (0, 1, 2), (2, 0): (0, 1, 3), (0, 4): (3, 4, 5)},
    ),
    # 8 bytes: o' = 5.5, g' = 6.5: taken from 12 to 17.5; from 18.5 to 24; told at 24.
    "LogGP: combining is free": (
        LOGGP,
        TWICE,
        {(1, 0): (0, 2, F(35, 2)), (2, 0): (0, 2, 24), (0, 4): (24, 26, F(83, 2))},
    ),
    "Hockney: a send after a combine waits for it, though its data is here": (
        COMBINING,
        written([recv(1, S0), combine(IN, S0), send(1)], [send(0), recv(0, S0)]),
        {(1, 0): (0, 3, 3), (0, 1): (3, 7), (0, 2): (7, 10, 10)},
    ),
    "Hockney: a combine after sends waits for them": (
        COMBINING,
        written(
            [send(2), send(1), recv(1, S0), combine(IN, S0)], [send(0), recv(0, S0)], [recv(0, S0)]
        ),
        {(0, 0): (0, 3, 3), (0, 1): (3, 6, 6), (1, 0): (0, 3, 3), (0, 3): (6, 10)},
    ),
    # Whatever comes before it in the list: rank 0 passes on at 2 what it copied and combined.
    "postal: what is free is done when its data is here": (
        POSTAL,
        written(EARLY, [send(0), send(2, IN, OTHER)], [recv(1, S0, OTHER), send(0), recv(0, S1)]),
        {(1, 0): (0, 1, 2), (1, 1): (1, 2, 3), (2, 1): (0, 1, 3), (0, 5): (2, 3, 4)},
    ),
    "Hockney: combines that are stuck go before earlier sends, on all such ranks at once": (
        COMBINING,
        around(),
        AROUND,
    ),
    # Rank 0's second message waits for its receiver, which is busy, not stuck.
    "Hockney: nothing overtakes where all can go on": (
        COMBINING,
        written(
            [send(1), send(1), recv(2, S0), combine(IN, S0)],
            [recv(0, S0), combine(IN, S0, S1), recv(0, S2)],
            [send(0)],
        ),
        {(0, 0): (0, 3, 3), (2, 0): (0, 3, 3), (1, 1): (3, 7), (0, 1): (7, 10, 10)}
        | {(0, 3): (10, 14)},
    ),
}


@pytest.mark.parametrize("rule", [*MOVED, *COMBINED])
def test_the_rules_by_hand(rule: str) -> None:
    machine, schedule, expected = (MOVED | COMBINED)[rule]
    assert steps(ideal(schedule, machine)) == expected
    check_ports(schedule, ideal(schedule, machine), machine)
    check(schedule, machine)


def test_a_combine_may_start_before_times_that_were_served_already() -> None:
    """Two messages of 5 s each are served before nothing else can proceed, and the others combine.

    The complete graph has the requests served in the order of time.
    """
    schedule = around([send(4, IN, LONG)] * 2, [recv(3, S0, LONG), recv(3, S1, LONG)])
    for topology in (None, Complete(5)):
        timing = ideal(schedule, COMBINING, topology)
        assert steps(timing) == AROUND | {(3, 0): (0, 5, 5), (3, 1): (5, 10, 10)}
        check_ports(schedule, timing, COMBINING, topology)
        check(schedule, COMBINING, topology)


def test_what_a_timing_tells() -> None:
    timing = ideal(FORWARD, POSTAL)
    assert list(timing.finish) == [3, 3, 5]
    assert timing.completion == timing.completion_s == 5
    assert timing.finish_s == (3.0, 3.0, 5.0)
    assert list(ideal(spelled(">1A >1C", "<0A <0C"), LOGGP).finish) == [F(13, 2), 19]
    combined = ideal(TWICE, COMBINING)
    assert list(combined.finish) == [17, 17, 10]
    assert combined.combines == (Combining(0, 1, 8, F(3), F(7)), Combining(0, 3, 8, F(10), F(14)))
    assert ideal(TWICE, POSTAL).combines == ideal(TWICE, LOGGP).combines == ()


def test_what_ends_with_a_combine_or_a_copy_ends_then() -> None:
    last = written([recv(1, S0), combine(IN, S0, S1), Copy(S1, OUT, (ALL,))], [send(0)])
    assert list(ideal(last, COMBINING).finish) == [7, 3]
    assert list(ideal(last, POSTAL).finish) == [2, 1]
    assert ideal(written([Copy(IN, OUT, (ALL,))]), COMBINING).completion == 0


def test_two_partners_exchange_at_once() -> None:
    doubling = ALGORITHMS["allreduce/recursive_doubling"].schedule(8, 8)
    assert ideal(doubling, ONE_PARTNER).completion == 3
    ring = ALGORITHMS["allreduce/ring"].schedule(4, 8)
    assert ideal(ring, ONE_PARTNER).completion >= 2 * ideal(ring, CONSTANT).completion
    assert ONE_PARTNER.describe().endswith("one partner at a time")


@pytest.mark.parametrize("machine", [POSTAL, CONSTANT, LOGGP])
def test_nothing_to_do_takes_no_time(machine: Machine) -> None:
    timing = ideal(written([]), machine)
    assert list(timing.finish) == [0]
    assert (len(timing.transfers), len(timing.combines)) == (0, 0)
    assert ideal(written([], []), machine).completion_s == 0.0


# --- of any schedule ---


@given(st.integers(0, 2**32), st.fractions(1, 20, max_denominator=12))
def test_time_has_no_unit(seed: int, factor: Fraction) -> None:
    """A machine that is slower by a factor takes longer by that factor."""
    random = Random(seed)
    algorithm, p = random.choice(WHERE_PORTS_BLOCK), random.randrange(1, 14)
    settings = settings_of(algorithm, p, segment=7)
    nbytes, sources = fitting(algorithm, p, 30), sources_for(algorithm, p)
    schedule = algorithm.schedule(p, nbytes, **sources, **settings)
    pairs = [
        (Machine.postal(t0_s=1, lam=3), Machine.postal(t0_s=factor, lam=3)),
        (Machine.hockney(alpha_s=1, beta_s=2), Machine.hockney(alpha_s=factor, beta_s=2 * factor)),
        (LOGGP, Machine.loggp(L_s=10 * factor, o_s=2 * factor, g_s=3 * factor, G_s=factor / 2)),
    ]
    for machine, slower in pairs:
        fast, slow = ideal(schedule, machine), ideal(schedule, slower)
        assert tuple(factor * t for t in fast.finish) == slow.finish


@given(st.integers(0, 2**32))
def test_loggp_without_overhead_or_gap_is_postal(seed: int) -> None:
    """o = g' for every message and L = (λ − 2)·o: receipts cost as much as sends.

    Down a tree a rank receives once: then only the sends share the processor.
    """
    random = Random(seed)
    algorithm = random.choice([a for a in algorithms_for("broadcast") if not a.segmented])
    p = random.randrange(1, 30)
    schedule = algorithm.schedule(p, 30, **settings_of(algorithm, p))
    loggp = Machine.loggp(L_s=3, o_s=1, g_s=1, G_s=0)
    postal = Machine.postal(t0_s=1, lam=5)
    assert ideal(schedule, loggp).completion == ideal(schedule, postal).completion
