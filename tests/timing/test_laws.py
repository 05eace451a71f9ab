"""The laws by hand: postal, Hockney, one partner at a time, LogGP; at the end, what combines."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK, fitting, settings_of, sources_for
from tests.timing.schedules import messages, written

from collwise.algorithms import ALGORITHMS
from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.program import Schedule
from collwise.timing import Timing, completion, ideal
from collwise.timing.times import Combining
from collwise.verifier import check_flow, check_ports

F = Fraction
A, B, C = Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)
AB = Block(0, 0, 8)
POSTAL = Machine.postal(t0_s=1, lam=2)
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")


def times(timing: Timing) -> dict[tuple[int, int], tuple[Any, Any, Any]]:
    """By source and place: when the send begins, the sender is free, it is received."""
    return {(t.source, t.place_at_source): (t.start, t.sent, t.received) for t in timing.transfers}


# Rank 0 sends A to 1, B and C to 2; 1 passes A on to 2.
FORWARD = written(
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
    timing = ideal(written(*lists), POSTAL)
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
    schedule = written(
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
    schedule = written(
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
    schedule = written(
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
    assert machine.describe().endswith("one partner at a time")


def test_loggp_two_ranks() -> None:
    """A message of 4 bytes: processed from o + L = 12 for o + 3G = 3.5; the next send at g + 3G."""
    schedule = written([Send(1, (A,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))])
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
    schedule = written(
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
    schedule = written(
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
    """Both messages are at rank 0 at 11: that of rank 1 is processed first, whatever the list."""
    timing = ideal(messages(3, (2, 0), (1, 0)), Machine.loggp(L_s=10, o_s=1, g_s=0, G_s=0))
    assert times(timing) == {(1, 0): (0, 1, 12), (2, 0): (0, 1, 13)}


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0), LOGGP])
def test_nothing_to_do_takes_no_time(machine: Machine) -> None:
    timing = ideal(written([]), machine)
    assert list(timing.finish) == [0]
    assert (len(timing.transfers), len(timing.combines)) == (0, 0)
    assert ideal(written([], []), machine).completion_s == 0.0


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0), LOGGP])
def test_a_message_that_nobody_sends(machine: Machine) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        ideal(written([], [Recv(0, (A,))]), machine)
    assert (caught.value.rank, caught.value.step) == (1, 0)
    assert str(caught.value).startswith("rank 1, step 0: recv with rank 0: it never completes")


@pytest.mark.parametrize("machine", [POSTAL, Machine.hockney(alpha_s=1, beta_s=0)])
def test_a_circle_of_waiting_ranks(machine: Machine) -> None:
    schedule = written(
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
        ideal(written([Send(1, (A,))], []), Machine.hockney(alpha_s=1, beta_s=0))
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert "send with rank 1" in caught.value.asked


def test_loggp_takes_what_no_list_names() -> None:
    """A message that nobody receives costs its receiver time all the same."""
    timing = ideal(written([Send(1, (A,))], []), LOGGP)
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


# --- combining ---

IN, OUT = int(Slot.INPUT), int(Slot.OUTPUT)
S0, S1, S2, S3 = map(scratch, range(4))
ALL, HALF, OTHER = (Block(0, 0, 8),), (Block(0, 0, 4),), (Block(0, 4, 4),)
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/4", gamma_s="1/2")  # 8 bytes: 3, combined in 4
SLOW = measured([[(8, 1, 2)]]).with_combining([(4, 3), (8, 5)])


def reduced(*lists: Sequence[Operation]) -> Schedule:
    return written(*lists, collective="reduce")


def steps(timing: Timing) -> dict[tuple[int, int], tuple[Any, ...]]:
    """By rank and place: when a send begins and is received; when a combine begins and ends."""
    steps: dict[tuple[int, int], tuple[Any, ...]] = {}
    steps |= {(t.source, t.place_at_source): (t.start, t.received) for t in timing.transfers}
    return steps | {(c.rank, c.place): (c.start, c.end) for c in timing.combines}


# Rank 0 combines what 1 sends, then what 2 sends, then tells rank 1.
TWICE = reduced(
    [Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Recv(2, ALL, OUT), Combine(S1, OUT, OUT, ALL),
     Send(1, ALL)],
    [Send(0, ALL, IN), Recv(0, ALL, S0)],
    [Send(0, ALL, IN)],
)  # fmt: skip


def test_hockney_combining_keeps_both_ports_busy() -> None:
    """The second transfer cannot begin before the first combine is over, nor the answer."""
    timing = ideal(TWICE, HOCKNEY)
    assert steps(timing) == {
        (1, 0): (0, 3),
        (0, 1): (3, 7),
        (2, 0): (7, 10),
        (0, 3): (10, 14),
        (0, 4): (14, 17),
    }
    assert list(timing.finish) == [17, 17, 10]
    assert timing.combines == (Combining(0, 1, 8, F(3), F(7)), Combining(0, 3, 8, F(10), F(14)))
    check_ports(TWICE, timing, HOCKNEY)


def test_hockney_the_send_port_is_busy_too() -> None:
    """Rank 0's own message, listed after the combine, waits for it although its data is here."""
    own = reduced(
        [Recv(1, ALL, S0), Combine(IN, S0, OUT, ALL), Send(1, ALL, IN)],
        [Send(0, ALL, IN), Recv(0, ALL, S0)],
    )
    assert steps(ideal(own, HOCKNEY)) == {(1, 0): (0, 3), (0, 1): (3, 7), (0, 2): (7, 10)}
    # Listed before, it goes at once, and the combine waits until it is over.
    lists = [list(ops) for ops in own.lists]
    lists[0] = [lists[0][2], *lists[0][:2]]
    lists[0].insert(0, Send(2, ALL, IN))
    longer = reduced(*lists, [Recv(0, ALL, S0)])
    assert steps(ideal(longer, HOCKNEY)) == {
        (0, 0): (0, 3),
        (0, 1): (3, 6),
        (1, 0): (0, 3),
        (0, 3): (6, 10),
    }


def test_measured_combining_keeps_both_ports_busy() -> None:
    """t0 = 1, λ = 2, 5 for 8 bytes: the second receipt is t0 after the combine at the earliest."""
    timing = ideal(TWICE, SLOW)
    assert steps(timing) == {
        (1, 0): (0, 2),
        (0, 1): (2, 7),
        (2, 0): (0, 8),
        (0, 3): (8, 13),
        (0, 4): (13, 15),
    }
    check_ports(TWICE, timing, SLOW)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (POSTAL, {(1, 0): (0, 2), (2, 0): (0, 3), (0, 4): (3, 5)}),
        # 8 bytes: o' = 5.5, g' = 6.5: taken from 12 to 17.5; from 18.5 to 24; told at 24
        (LOGGP, {(1, 0): (0, F(35, 2)), (2, 0): (0, 24), (0, 4): (24, F(83, 2))}),
    ],
)
def test_elsewhere_combining_is_free(machine: Machine, expected: dict[Any, Any]) -> None:
    timing = ideal(TWICE, machine)
    assert steps(timing) == expected
    assert timing.combines == ()
    check_ports(TWICE, timing, machine)


def test_what_is_free_is_done_when_its_data_is_here() -> None:
    """Whatever comes before it in the list: rank 0 passes on at 2 what it copied and combined."""
    early = reduced(
        [Recv(1, ALL, S0), Recv(2, ALL, S3), Combine(IN, S3, OUT, ALL), Combine(IN, S0, S1, ALL),
         Copy(S1, S2, ALL), Send(2, ALL, S2)],
        [Send(0, ALL, IN)],
        [Recv(1, OTHER, S0), Send(0, ALL, IN), Recv(0, ALL, S1)],
    )  # fmt: skip
    lists = [list(ops) for ops in early.lists]
    lists[1].append(Send(2, OTHER, IN))
    timing = ideal(reduced(*lists), POSTAL)
    assert steps(timing) == {(1, 0): (0, 2), (1, 1): (1, 3), (2, 1): (0, 3), (0, 5): (2, 4)}
    assert list(timing.finish) == [3, 2, 4]


def test_what_ends_with_a_combine_or_a_copy_ends_then() -> None:
    lists: list[list[Operation]] = [
        [Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Copy(S1, OUT, ALL)],
        [Send(0, ALL, IN)],
    ]
    assert list(ideal(reduced(*lists), HOCKNEY).finish) == [7, 3]
    assert list(ideal(reduced(*lists), POSTAL).finish) == [2, 1]
    assert ideal(reduced([Copy(IN, OUT, ALL)]), HOCKNEY).completion == 0


@pytest.mark.parametrize("machine", [POSTAL, HOCKNEY, LOGGP, SLOW])
def test_a_combine_of_what_never_comes(machine: Machine) -> None:
    """The list stands at the receive; nothing after it is done."""
    with pytest.raises(InvalidSchedule) as caught:
        ideal(
            reduced([Recv(1, ALL, S0), Combine(IN, S0, S1, ALL), Copy(S1, OUT, ALL)], []),
            machine,
        )
    assert (caught.value.rank, caught.value.step) == (0, 0)
    assert caught.value.asked == "rank 0, step 0: recv with rank 1"


def around() -> Schedule:
    """All send twice before they combine; of both messages, the second is received after that."""
    lists: list[list[Operation]] = [
        [
            Send((r + 1) % 3, HALF, IN),
            Send((r + 1) % 3, OTHER, IN),
            Recv((r - 1) % 3, HALF, S0),
            Combine(IN, S0, OUT, HALF),
            Recv((r - 1) % 3, OTHER, S0),
            Combine(IN, S0, OUT, OTHER),
        ]
        for r in range(3)
    ]
    return reduced(*lists)


def test_hockney_a_combine_overtakes_sends_whose_receivers_combine_first() -> None:
    """4 bytes: 2, combined in 2.  In strict list order all would wait for each other."""
    timing = ideal(around(), HOCKNEY)
    for r in range(3):
        assert {k: v for k, v in steps(timing).items() if k[0] == r} == {
            (r, 0): (0, 2),
            (r, 3): (2, 4),
            (r, 1): (4, 6),
            (r, 5): (6, 8),
        }
    check_ports(around(), timing, HOCKNEY)


def test_hockney_nothing_overtakes_where_all_can_go_on() -> None:
    """Rank 0's second message waits for its receiver, which is busy, not stuck."""
    lists: list[list[Operation]] = [
        [Send(1, ALL, IN), Send(1, ALL, IN), Recv(2, ALL, S0), Combine(IN, S0, OUT, ALL)],
        [Recv(0, ALL, S0), Combine(IN, S0, S1, ALL), Recv(0, ALL, S2)],
        [Send(0, ALL, IN)],
    ]
    assert steps(ideal(reduced(*lists), HOCKNEY)) == {
        (0, 0): (0, 3),
        (2, 0): (0, 3),
        (1, 1): (3, 7),
        (0, 1): (7, 10),
        (0, 3): (10, 14),
    }


@pytest.mark.parametrize("p", [2, 3, 5, 8, 13, 21, 30])
def test_the_census_for_a_latency_that_is_not_the_machines(p: int) -> None:
    """It sends on before it combines: it completes where sends wait for their receivers, too."""
    for lam in (1, 2, 3, 7):
        census = ALGORITHMS["allreduce/census_delay_receive"].schedule(p, 12, itemsize=4, lam=lam)
        check_flow(census)
        for machine in (HOCKNEY, SLOW, POSTAL):
            timing = ideal(census, machine)
            check_ports(census, timing, machine)
            assert len(set(timing.finish)) == 1
            assert timing.completion == completion(census, machine)
