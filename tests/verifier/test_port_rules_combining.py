"""Timings of combines that break the laws of their machine."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK
from tests.timing.schedules import (
    ALL,
    IN,
    LAWS,
    OUT,
    S0,
    S1,
    S2,
    combine,
    random_run,
    recv,
    send,
    written,
)
from tests.verifier.forged import finished, forged, numbers

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.schedule.operations import Block, Copy
from collwise.schedule.program import Schedule
from collwise.timing import Timing, ideal
from collwise.timing.times import Combining
from collwise.verifier import check_ports

F = Fraction
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/4", gamma_s="1/2")  # 8 bytes: 3, combined in 4
SLOW = measured([[(8, 1, 2)]]).with_combining([(8, 5)])
POSTAL = Machine.postal(t0_s=1, lam=2)

# Rank 0 sends its own to 2, combines what 1 sends, and passes that on to 1.
SCHEDULE = written(
    [send(2), recv(1, S0), combine(IN, S0), Copy(OUT, S1, (ALL,)), send(1, S1), recv(2, S2)],
    [send(0), recv(0, S0)],
    [recv(0, S0), send(0)],
    collective="reduce",
)
Place = tuple[int, int]
"""A rank and a step."""


def with_times(
    timing: Timing, combine: dict[str, Any] | None, transfers: dict[tuple[int, int], Any]
) -> Any:
    """Rank 0's combine at other times (None: not at all), transfers too; finish times that fit."""
    moved = [
        t._replace(**transfers.get((t.source, t.place_at_source), {})) for t in timing.transfers
    ]
    combines = [] if combine is None else [c._replace(**combine) for c in timing.combines]
    return finished(timing, moved, combines)


def test_the_times_themselves() -> None:
    """On the Hockney machine rank 2's message waits until rank 0 has combined, at 7."""
    timing = ideal(SCHEDULE, HOCKNEY)
    assert timing.combines == (Combining(0, 2, 8, F(3), F(7)),)
    starts = {(t.source, t.place_at_source): t.start for t in timing.transfers}
    assert starts == {(0, 0): 0, (1, 0): 0, (0, 4): 7, (2, 1): 7}
    assert with_times(timing, {}, {}) == forged(timing)
    for machine in (HOCKNEY, SLOW, POSTAL):
        check_ports(SCHEDULE, ideal(SCHEDULE, machine), machine)


def at(start: int) -> dict[str, Fraction]:
    return {"start": F(start), "sent": F(start) + 3, "received": F(start) + 3}


BAD: list[tuple[str | None, dict[Place, int], Place, str]] = [
    # the combine (None: it is missing), when other transfers start; where it is reported, and what
    ("end=6", {}, (0, 2), "it is combined in another time than the machine takes"),
    ("end=8", {}, (0, 2), "it is combined in another time than the machine takes"),
    (None, {}, (0, 2), "it is not in the timing"),
    ("start=2 end=6", {}, (0, 2), "the send port is still busy with step 0"),
    ("start=3 end=7", {(1, 0): 1}, (0, 2), "it is less than t0 after the receipt of step 1"),
    ("", {(0, 4): 6}, (0, 4), "the send port is still busy with step 2"),
    ("", {(2, 1): 6}, (0, 5), "it is less than t0 after the receipt of step 2"),
    ("start=6 end=10", {(2, 1): 3, (0, 4): 10}, (0, 2), "it is received after step 5"),
    ("start=6 end=10", {(0, 4): 3, (2, 1): 10}, (0, 2), "it begins after step 4"),
    ("start=13 end=17", {(2, 1): 17}, (0, 2), "it begins after step 4"),
]


@pytest.mark.parametrize(("combine", "starts", "where", "text"), BAD)
def test_what_is_said(
    combine: str | None, starts: dict[Place, int], where: Place, text: str
) -> None:
    moved = {place: at(start) for place, start in starts.items()}
    times = None if combine is None else numbers(combine)
    with pytest.raises(InvalidSchedule) as caught:
        check_ports(SCHEDULE, with_times(ideal(SCHEDULE, HOCKNEY), times, moved), HOCKNEY)
    assert text in caught.value.seen
    assert (caught.value.rank, caught.value.step) == where


def test_twice_or_of_another_size() -> None:
    timing = ideal(SCHEDULE, HOCKNEY)
    twice = forged(timing, combines=timing.combines * 2)
    with pytest.raises(InvalidSchedule, match="twice"):
        check_ports(SCHEDULE, twice, HOCKNEY)
    for odd, step in ((Combining(0, 2, 4, F(3), F(5)), 2), (Combining(0, 1, 8, F(3), F(7)), 1)):
        with pytest.raises(InvalidSchedule) as caught:
            check_ports(SCHEDULE, forged(timing, combines=(odd,)), HOCKNEY)
        assert str(caught.value) == (
            f"rank 0, step {step}: {odd.nbytes} bytes combined: the schedule has no such operation "
            "there; time the schedule that is checked"
        )
        assert (caught.value.rank, caught.value.step) == (0, step)


@pytest.mark.parametrize("machine", [POSTAL, Machine.loggp(L_s=1, o_s=1, g_s=1, G_s=1)])
def test_combining_takes_no_time_where_it_is_free(machine: Machine) -> None:
    timing = ideal(SCHEDULE, machine)
    check_ports(SCHEDULE, timing, machine)
    one = forged(timing, combines=(Combining(0, 2, 8, F(3), F(7)),))
    with pytest.raises(InvalidSchedule, match="combined in another time") as caught:
        check_ports(SCHEDULE, one, machine)
    assert (caught.value.rank, caught.value.step) == (0, 2)


def test_data_goes_through_free_combines_and_copies() -> None:
    """In the postal model rank 0 passes on at 2 what it got then; not before."""
    timing = ideal(SCHEDULE, POSTAL)
    starts = {(t.source, t.place_at_source): t.start for t in timing.transfers}
    assert starts[0, 4] == 2
    sooner = {"start": F(3, 2), "sent": F(5, 2), "received": F(7, 2)}
    with pytest.raises(InvalidSchedule, match="before its data is received") as caught:
        check_ports(SCHEDULE, with_times(timing, None, {(0, 4): sooner}), POSTAL)
    assert (caught.value.rank, caught.value.step) == (0, 4)


def overtaking() -> tuple[Schedule, Timing]:
    """Both send twice before they combine the first: there the combine goes first."""
    halves = Block(0, 0, 4), Block(0, 4, 4)
    schedule = written(
        *(
            [send(1 - rank, IN, half) for half in halves]
            + [op for b in halves for op in (recv(1 - rank, S0, b), combine(IN, S0, OUT, b))]
            for rank in range(2)
        ),
        collective="allreduce",
    )
    return schedule, ideal(schedule, HOCKNEY)


def test_a_combine_may_go_before_a_send_but_sends_keep_their_order() -> None:
    schedule, timing = overtaking()
    check_ports(schedule, timing, HOCKNEY)
    assert [(c.start, c.end) for c in timing.combines if c.rank == 0] == [
        (F(2), F(4)),
        (F(6), F(8)),
    ]
    second = [t for t in timing.transfers if t.place_at_source == 1]
    assert {t.start for t in second} == {4}
    turned = [
        t._replace(place_at_source=1 - t.place_at_source, place_at_target=t.place_at_target)
        if t.source == 0
        else t
        for t in timing.transfers
    ]
    with pytest.raises(InvalidSchedule, match="it begins after step 1") as caught:
        check_ports(schedule, forged(timing, transfers=tuple(turned)), HOCKNEY)
    assert (caught.value.rank, caught.value.step) == (0, 0)


@given(st.integers(0, 2**32), st.sampled_from(["measured, combining", "memory, combining"]))
def test_moving_any_combine_forward_is_seen(seed: int, law: str) -> None:
    """Ideal time is as early as possible: no combine can be done earlier, alone."""
    random = Random(seed)
    ranks = random.randrange(2, 9)
    machine, _ = LAWS[law](random, ranks)
    algorithm = random.choice([a for a in WHERE_PORTS_BLOCK if a.kind.combines])
    schedule = random_run(random, algorithm, ranks, machine)
    timing = ideal(schedule, machine)
    check_ports(schedule, timing, machine)
    chosen, by = random.choice(timing.combines), Fraction(1, 1000)
    combines = [
        c._replace(start=c.start - by, end=c.end - by) if c is chosen else c
        for c in timing.combines
    ]
    with pytest.raises(InvalidSchedule):
        check_ports(schedule, finished(timing, timing.transfers, combines), machine)
