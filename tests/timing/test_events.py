"""Ideal time: worked out by hand for each model, and what can be said of any schedule."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK, fitting, settings_of, sources_for

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import Timing, ideal, simulate

F = Fraction
A, B, C = Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)
AB = Block(0, 0, 8)
POSTAL = Machine.postal(t0_s=1, lam=2)
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")


def broadcast(*lists: Sequence[Operation]) -> Schedule:
    return Schedule(Problem("broadcast", len(lists), 10), Written(tuple(map(tuple, lists))))


def times(timing: Timing) -> dict[tuple[int, int], tuple[Any, Any, Any]]:
    """By source and place: when the send begins, the sender is free, it is received."""
    return {(t.source, t.place_at_source): (t.start, t.sent, t.received) for t in timing.transfers}


# Rank 0 sends A to 1, B and C to 2; 1 passes A on to 2.
FORWARD = broadcast(
    [Send(1, (A,)), Send(2, (B,)), Send(2, (C,))],
    [Recv(0, (A,)), Send(2, (A,))],
    [Recv(0, (B,)), Recv(1, (A,)), Recv(0, (C,))],
)


def test_postal_receipts_are_t0_apart() -> None:
    """A and C both reach rank 2 at 4; A is first in its list, so C is received at 5."""
    timing = ideal(FORWARD, POSTAL)
    assert times(timing) == {
        (0, 0): (0, 1, 2),
        (0, 1): (1, 2, 3),
        (1, 1): (2, 3, 4),
        (0, 2): (2, 3, 5),
    }
    assert list(timing.finish) == [3, 3, 5]
    assert timing.completion == 5
    assert timing.completion_s == 5.0
    assert timing.finish_s == (3.0, 3.0, 5.0)


def test_postal_receipts_are_in_list_order() -> None:
    """A waits for C at the port if the list says so, even where it comes first."""
    lists = [list(ops) for ops in FORWARD.lists]
    lists[2] = [lists[2][0], lists[2][2], lists[2][1]]
    timing = ideal(broadcast(*lists), POSTAL)
    assert times(timing)[0, 2] == (2, 3, 4)
    assert times(timing)[1, 1] == (2, 3, 5)


def test_postal_the_first_receipt_waits_for_nothing() -> None:
    """With sizes that cost differently: the gap is that of the message that comes second."""
    machine = measured([[(2, 1, 5), (4, 3, 2)]])  # 2 bytes: 1, 5; 4 bytes: 3, 6
    timing = ideal(FORWARD, machine)
    assert times(timing) == {
        (0, 0): (0, 3, 6),
        (0, 1): (3, 6, 9),
        (1, 1): (6, 9, 12),
        (0, 2): (6, 7, 13),  # there at 11, but after A, and 1 after it
    }


def test_postal_a_send_waits_for_its_data_only() -> None:
    """Rank 1 sends A as soon as it has it, although B is before it in the list and not there."""
    schedule = broadcast(
        [Send(1, (A,)), Send(2, (C,)), Send(1, (B,))],
        [Recv(0, (A,)), Recv(0, (B,)), Send(2, (A,)), Send(2, (B,))],
        [Recv(0, (C,)), Recv(1, (A,)), Recv(1, (B,))],
    )
    timing = ideal(schedule, POSTAL)
    assert times(timing)[0, 2] == (2, 3, 4)
    assert times(timing)[1, 2] == (2, 3, 4)
    assert times(timing)[1, 3] == (4, 5, 6)


def test_hockney_keeps_both_ports_busy() -> None:
    """α = 1, β = 1/2: A and B take 3, C takes 2.  C waits at rank 0 while 2 is busy with A."""
    timing = ideal(FORWARD, Machine.hockney(alpha_s=1, beta_s="1/2"))
    assert times(timing) == {
        (0, 0): (0, 3, 3),
        (0, 1): (3, 6, 6),
        (1, 1): (6, 9, 9),
        (0, 2): (9, 11, 11),
    }
    assert list(timing.finish) == [11, 9, 11]


def test_hockney_a_rank_sends_while_it_receives() -> None:
    schedule = broadcast(
        [Send(1, (A,)), Send(1, (B,))],
        [Recv(0, (A,)), Send(2, (A,)), Recv(0, (B,)), Send(2, (B,))],
        [Recv(1, (A,)), Recv(1, (B,))],
    )
    timing = ideal(schedule, Machine.hockney(alpha_s=1, beta_s=0))
    assert times(timing) == {
        (0, 0): (0, 1, 1),
        (0, 1): (1, 2, 2),
        (1, 1): (1, 2, 2),
        (1, 3): (2, 3, 3),
    }


def test_one_partner_at_a_time() -> None:
    """Rank 1 cannot receive B from 0 while it sends A to 2; two partners exchange at once."""
    machine = Machine.hockney(alpha_s=1, beta_s=0, exchange_only=True)
    schedule = broadcast(
        [Send(1, (A,)), Send(1, (B,))],
        [Recv(0, (A,)), Send(2, (A,)), Recv(0, (B,)), Send(2, (B,))],
        [Recv(1, (A,)), Recv(1, (B,))],
    )
    assert times(ideal(schedule, machine)) == {
        (0, 0): (0, 1, 1),
        (0, 1): (1, 2, 2),
        (1, 1): (2, 3, 3),
        (1, 3): (3, 4, 4),
    }
    two_partners = Machine.hockney(alpha_s=1, beta_s=0)
    doubling = ALGORITHMS["allreduce/recursive_doubling"].schedule(8, 8)
    assert ideal(doubling, machine).completion == 3
    ring = ALGORITHMS["allreduce/ring"].schedule(4, 8)
    assert ideal(ring, machine).completion >= 2 * ideal(ring, two_partners).completion
    many = ALGORITHMS["broadcast/binomial"].schedule(1024, 8)
    assert isinstance(simulate(many, machine).simulated, Timing)  # the other engine knows it not
    with pytest.raises(InvalidArgument, match="messages delay each other"):
        ALGORITHMS["allreduce/ring"].predict(machine, 4, 8)
    assert machine.describe().endswith("one partner at a time")


def test_loggp_two_ranks() -> None:
    """A message of 4 bytes: processed from o + L = 12 for o + 3G = 3.5; the next send at g + 3G."""
    schedule = broadcast([Send(1, (A,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))])
    timing = ideal(schedule, LOGGP)
    assert times(timing) == {
        (0, 0): (0, 2, F(31, 2)),
        # 2 bytes: sent at 4.5, there at 16.5; the receive gap is over at 12 + 4.5; 2 + G more
        (0, 1): (F(9, 2), F(13, 2), F(19)),
    }
    assert list(timing.finish) == [F(13, 2), F(19)]


def test_loggp_three_ranks_share_one_processor() -> None:
    """L = 10, o = 2, g = 3, G = 1/2, A and B of 4 bytes: g' = 4.5, o' = 3.5.

    Rank 0 sends A to 1 at 0, B to 1 at 4.5, AB (8 bytes) to 2 at 9.
    Rank 1 takes A at 12 until 15.5; then it could send A at 15.5 or take B, there at 16.5, at 16.5:
    the send goes first, until 17.5; B is taken from 17.5 until 21.
    Rank 2 takes AB, there at 21, until 21 + 2 + 3.5 = 26.5; A of rank 1, there at 15.5 + 12 = 27.5,
    waits for the gap 21 + 3 + 3.5 = 27.5, and is taken until 31.
    """
    schedule = broadcast(
        [Send(1, (A,)), Send(1, (B,)), Send(2, (AB,))],
        [Recv(0, (A,)), Send(2, (A,)), Recv(0, (B,))],
        [Recv(1, (A,)), Recv(0, (AB,))],
    )
    assert times(ideal(schedule, LOGGP)) == {
        (0, 0): (0, 2, F(31, 2)),
        (0, 1): (F(9, 2), F(13, 2), 21),
        (0, 2): (9, 11, F(53, 2)),
        (1, 1): (F(31, 2), F(35, 2), 31),
    }


def test_loggp_a_tie_goes_to_the_send() -> None:
    """o = 2, L = 10, all else 0: rank 1 is done with A at 14, when B comes; it sends A first."""
    schedule = broadcast(
        [Send(1, (A,)), Send(1, (B,))],
        [Recv(0, (A,)), Send(2, (A,)), Recv(0, (B,)), Send(2, (B,))],
        [Recv(1, (A,)), Recv(1, (B,))],
    )
    timing = ideal(schedule, Machine.loggp(L_s=10, o_s=2, g_s=0, G_s=0))
    assert times(timing) == {
        (0, 0): (0, 2, 14),
        (0, 1): (2, 4, 18),
        (1, 1): (14, 16, 28),
        (1, 3): (18, 20, 32),
    }


def test_loggp_ties_at_the_receiver_go_by_source() -> None:
    """Ranks 2 and 1 have their messages at rank 3 at the same time: that of rank 1 is first."""
    half = (Block(0, 0, 5), Block(0, 5, 5))
    schedule = broadcast(
        [Send(1, (half[0],)), Send(2, (half[1],))],
        [Recv(0, (half[0],)), Send(3, (half[0],))],
        [Recv(0, (half[1],)), Send(3, (half[1],))],
        [Recv(2, (half[1],)), Recv(1, (half[0],))],
    )
    timing = ideal(schedule, Machine.loggp(L_s=10, o_s=0, g_s=0, G_s=1))
    # Both ranks take theirs at 10 until 14, as 0 sends the second when its gap of 4 is over …
    assert times(timing)[0, 0] == (0, 0, 14)
    assert times(timing)[0, 1] == (4, 4, 18)
    timing = ideal(schedule, Machine.loggp(L_s=10, o_s=1, g_s=0, G_s=0))
    assert times(timing)[1, 1] == (12, 13, 24)
    assert times(timing)[2, 1] == (13, 14, 25)
    timing = ideal(schedule, Machine.loggp(L_s=10, o_s=0, g_s=0, G_s=0))
    assert times(timing)[1, 1] == times(timing)[2, 1] == (10, 10, 20)
    order = [(t.source, t.target) for t in timing.transfers if t.target == 3]
    assert order == [(1, 3), (2, 3)]


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0), LOGGP])
def test_nothing_to_do_takes_no_time(machine: Machine) -> None:
    assert ideal(broadcast([]), machine) == Timing((F(0),), ())
    assert ideal(broadcast([], []), machine).completion_s == 0.0


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0), LOGGP])
def test_a_message_that_nobody_sends(machine: Machine) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        ideal(broadcast([], [Recv(0, (A,))]), machine)
    assert (caught.value.rank, caught.value.step) == (1, 0)
    assert str(caught.value).startswith("rank 1, step 0: recv with rank 0: it never completes")


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0)])
def test_a_circle_of_waiting_ranks(machine: Machine) -> None:
    schedule = broadcast(
        [Send(1, (A,)), Send(2, (B,))],
        [Recv(2, (B,)), Recv(0, (A,)), Send(2, (A,))],
        [Recv(1, (A,)), Recv(0, (B,)), Send(1, (B,))],
    )
    with pytest.raises(InvalidSchedule) as caught:
        ideal(schedule, machine)
    assert caught.value.step == 0
    assert "the ranks wait for each other" in caught.value.seen


def test_a_send_that_waits_for_ever_under_hockney() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        ideal(broadcast([Send(1, (A,))], []), Machine.hockney(alpha_s=1, beta_s=0))
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert "send with rank 1" in caught.value.asked


def test_loggp_takes_what_no_list_names() -> None:
    """A message that nobody receives costs its receiver time all the same."""
    timing = ideal(broadcast([Send(1, (A,))], []), LOGGP)
    assert timing.transfers == ()


@given(st.integers(0, 2**32), st.fractions(1, 20, max_denominator=12))
def test_time_has_no_unit(seed: int, factor: Fraction) -> None:
    """A machine that is slower by a factor takes longer by that factor."""
    random = Random(seed)
    algorithm = random.choice(WHERE_PORTS_BLOCK)
    p = random.randrange(1, 14)
    schedule = algorithm.schedule(
        p,
        fitting(algorithm, p, 30),
        **sources_for(algorithm, p),
        **settings_of(algorithm, p, segment=7),
    )
    pairs = [
        (Machine.postal(t0_s=1, lam=3), Machine.postal(t0_s=factor, lam=3)),
        (Machine.hockney(alpha_s=1, beta_s=2), Machine.hockney(alpha_s=factor, beta_s=2 * factor)),
        (LOGGP, Machine.loggp(L_s=10 * factor, o_s=2 * factor, g_s=3 * factor, G_s=factor / 2)),
    ]
    for one, slower in pairs:
        a, b = ideal(schedule, one), ideal(schedule, slower)
        assert tuple(factor * t for t in a.finish) == b.finish


@given(st.integers(0, 2**32))
def test_loggp_without_overhead_or_gap_is_postal(seed: int) -> None:
    """o = g' for every message and L = (λ − 2)·o: receipts cost as much as sends."""
    random = Random(seed)
    algorithm = random.choice([a for a in algorithms_for("broadcast") if not a.segmented])
    p = random.randrange(1, 30)
    schedule = algorithm.schedule(p, 30, **settings_of(algorithm, p))
    # Down a tree a rank receives once: then only the sends share the processor.
    loggp = Machine.loggp(L_s=3, o_s=1, g_s=1, G_s=0)
    assert (
        ideal(schedule, loggp).completion
        == ideal(schedule, Machine.postal(t0_s=1, lam=5)).completion
    )
