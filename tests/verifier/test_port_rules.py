"""Timings that break the laws of their machine."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import WHERE_PORTS_BLOCK
from tests.timing.schedules import LAWS, messages, random_run, spelled
from tests.verifier.forged import finished, forged, numbers
from tests.verifier.judge import HOCKNEY, MACHINES, POSTAL

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.timing import Timing, ideal
from collwise.verifier import check_ports

# 0 sends A, B to 1 and both to 2; 1 passes C, which it got last, on to 2.
RELAY = spelled(">1A >1BC >2AB", "<0A <0BC >2C", "<0AB <1C", nbytes=10)


def changed(timing: Timing, source: int, step: int, **new: Any) -> Any:
    """The timing with another transfer, and with finish times that fit."""
    return finished(
        timing,
        [
            t._replace(**new) if (t.source, t.place_at_source) == (source, step) else t
            for t in timing.transfers
        ],
    )


F = Fraction
Place = tuple[int, int]
"""A rank and a step."""

BAD_TIMINGS: list[tuple[Machine, Place, str, Place, str]] = [
    # machine, which transfer is changed, how; where it is reported, and what
    (POSTAL, (0, 0), "start=-1", (0, 0), "faster than the machine"),
    (POSTAL, (0, 0), "sent=1/2", (0, 0), "faster than the machine"),
    (POSTAL, (0, 0), "received=3/2", (1, 0), "received 1.5 s after its send began"),
    (POSTAL, (0, 1), "start=1/2 sent=3/2", (0, 1), "the send port is still busy with step 0"),
    (POSTAL, (0, 0), "sent=5/4", (0, 1), "still busy with step 0"),
    (POSTAL, (1, 2), "start=5/2 sent=7/2 received=5", (1, 2), "before its data is received"),
    (POSTAL, (0, 2), "received=9/2", (2, 1), "less than t0 after the receipt"),
    (
        HOCKNEY,
        (1, 2),
        "start=21/5 sent=27/5 received=27/5",
        (2, 1),
        "less than t0 after the receipt",
    ),
    (POSTAL, (0, 0), "start=9 sent=10 received=11", (0, 0), "it begins after step 2"),
    (POSTAL, (0, 2), "received=19", (2, 0), "it is received after step 1"),
    (POSTAL, (0, 0), "nbytes=5", (0, 0), "the schedule has no such message there"),
    (POSTAL, (0, 0), "target=2", (0, 0), "has no such message there"),
    (POSTAL, (0, 0), "place_at_target=2", (1, 2), "has no such message there"),
    (POSTAL, (0, 2), "place_at_target=7", (2, 7), "no such message there"),
]


@pytest.mark.parametrize(("machine", "changes", "new", "where", "text"), BAD_TIMINGS)
def test_bad_timings(machine: Machine, changes: Place, new: str, where: Place, text: str) -> None:
    timing = ideal(RELAY, machine)
    check_ports(RELAY, timing, machine)
    with pytest.raises(InvalidSchedule) as caught:
        check_ports(RELAY, changed(timing, *changes, **numbers(new)), machine)
    assert text in str(caught.value)
    assert "timing" in str(caught.value) or "time the schedule" in str(caught.value)
    assert (caught.value.rank, caught.value.step) == where


@pytest.mark.parametrize("machine", MACHINES)
def test_a_timing_must_be_complete(machine: Machine) -> None:
    timing = ideal(RELAY, machine)
    missing = finished(timing, timing.transfers[1:])
    with pytest.raises(InvalidSchedule, match="it is not in the timing"):
        check_ports(RELAY, missing, machine)
    twice = finished(timing, (*timing.transfers, timing.transfers[-1]))
    with pytest.raises(InvalidSchedule, match="twice"):
        check_ports(RELAY, twice, machine)
    late = forged(timing, finish=(F(100), *timing.finish[1:]))
    with pytest.raises(InvalidSchedule, match=r"rank 0: when it finishes: .* at another time"):
        check_ports(RELAY, late, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_timing_for_a_faster_machine_is_bad(machine: Machine) -> None:
    faster = {
        "postal": Machine.postal(t0_s="0.9", lam=2),
        "hockney": Machine.hockney(alpha_s=1, beta_s="1/11"),
        "loggp": Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="0.49"),
    }[machine.kind]
    with pytest.raises(InvalidSchedule):
        check_ports(RELAY, ideal(RELAY, faster), machine)


def test_one_processor_does_one_thing_at_a_time() -> None:
    """LogGP by hand: rank 1 cannot send while it works on a message that came in."""
    schedule = spelled(">1A >1BC >2BC", "<0A >2A <0BC", "<1A <0BC", nbytes=10)
    machine = Machine.loggp(L_s=10, o_s=2, g_s=0, G_s=0)
    timing = ideal(schedule, machine)  # 1 takes A in [12, 14), sends it, takes B, C in [16, 18)
    check_ports(schedule, timing, machine)
    busy = changed(timing, 1, 1, start=F(17), sent=F(19), received=F(31))
    with pytest.raises(InvalidSchedule, match="the processor is still busy with step 2") as caught:
        check_ports(schedule, busy, machine)
    assert (caught.value.rank, caught.value.step) == (1, 1)


def test_a_rank_reads_shared_memory_when_it_does_not_publish() -> None:
    """By hand: rank 0 publishes until 4, then reads; the bytes are there at 4."""
    schedule = spelled(">1A >1B <1C", "<0A <0B >0C", nbytes=10)
    machine = Machine.memory(Machine.postal(t0_s=2, lam=2), read=1)
    timing = ideal(schedule, machine)
    check_ports(schedule, timing, machine)
    with pytest.raises(InvalidSchedule, match="the processor is still busy with step 1") as caught:
        check_ports(schedule, changed(timing, 1, 2, received=F(4)), machine)
    assert (caught.value.rank, caught.value.step) == (0, 2)


def test_loggp_gap_between_receipts() -> None:
    """Two senders at once: the receiver takes their messages g apart."""
    schedule = spelled(">1A >2A >1BC >2B", "<0A <0BC >2C", "<0A <0B <1C", nbytes=10)
    machine = Machine.loggp(L_s=10, o_s=0, g_s=5, G_s=0)
    timing = ideal(schedule, machine)  # rank 2 takes A at 15, B at 25, C (sent at 20) at 30
    check_ports(schedule, timing, machine)
    sooner = changed(timing, 0, 3, received=F(27), sent=F(17), start=F(17))
    with pytest.raises(InvalidSchedule, match="it is less than a gap after step 1") as caught:
        check_ports(schedule, sooner, machine)
    assert (caught.value.rank, caught.value.step) == (2, 2)


OWN_PORTS = ("postal", "measured, combining", "Hockney", "LogGP", "memory", "memory, combining")


@pytest.mark.no_cover
@given(st.integers(0, 2**32), st.sampled_from(OWN_PORTS))
def test_moving_any_transfer_forward_is_seen(seed: int, law: str) -> None:
    """Ideal time is as early as possible: nothing can be done earlier, alone.

    In shared memory the messages of one publication are one thing.
    """
    random = Random(seed)
    ranks = random.randrange(2, 9)
    machine, _ = LAWS[law](random, ranks)
    schedule = random_run(random, random.choice(WHERE_PORTS_BLOCK), ranks, machine)
    timing = ideal(schedule, machine)
    t = random.choice(timing.transfers)
    with_it = [
        o
        for o in timing.transfers
        if o is t or (machine.shares_memory and (o.source, o.start) == (t.source, t.start))
    ]
    by = Fraction(1, 1000)
    for fields, moved in (("start sent received", with_it), ("received", [t])):
        sooner = [
            o._replace(**{f: getattr(o, f) - by for f in fields.split()}) if o in moved else o
            for o in timing.transfers
        ]
        with pytest.raises(InvalidSchedule):
            check_ports(schedule, finished(timing, sooner), machine)


@pytest.mark.parametrize(
    ("pairs", "moved", "seen"),
    [
        (((0, 3), (1, 4)), (1, "start sent received", 1), None),
        (((0, 3), (1, 4)), (1, "start sent", -1), "it leaves while rank 0's message keeps {} busy"),
        (((4, 0), (3, 1)), (4, "received", -1), "it is received before it passes {}"),
        (((0, 3),), (0, "received", -1), "it is received 19 s after its send began"),
    ],
)
def test_the_verifier_knows_shared_ports(pairs: Any, moved: Any, seen: str | None) -> None:
    laws = POSTAL, Machine.postal(t0_s=4, lam=5)
    machine = Machine.levels(laws, Placement.regular(2, 3), ports=[3])
    schedule = messages(6, *pairs)
    timing = ideal(schedule, machine)
    source, fields, by = moved
    (t,) = (t for t in timing.transfers if t.source == source)
    timing = changed(timing, source, 0, **{f: getattr(t, f) + by for f in fields.split()})
    if seen is None:
        check_ports(schedule, timing, machine)
        return
    with pytest.raises(InvalidSchedule) as caught:
        check_ports(schedule, timing, machine)
    assert caught.value.seen == seen.format("the port of its node")


MEMORY = Machine.memory(POSTAL, read="1/2")
# 0 publishes A for 1 and 2 from 0 to 1, then B for 2; it is read at 2, and B at 3.
PUBLISHED = spelled(">1A >2A >2B", "<0A", "<0A <0B")


@pytest.mark.parametrize(
    ("at", "how", "reported", "seen"),
    [
        ((0, 1), "start=1 sent=2 received=3", (0, 1), "not published together with step 0"),
        ((0, 1), "sent=2", (0, 1), "not published together with step 0"),
        ((0, 2), "start=1/2 sent=3/2", (0, 2), "the send port is still busy with step 0"),
        ((0, 1), "received=3/2", (2, 0), "received 1.5 s after its send began"),
        ((0, 1), "received=11/4", (2, 1), "less than t0 after the receipt of step 0"),
    ],
)
def test_publications_that_break_the_law(at: Place, how: str, reported: Place, seen: str) -> None:
    timing = ideal(PUBLISHED, MEMORY)
    check_ports(PUBLISHED, timing, MEMORY)
    with pytest.raises(InvalidSchedule) as caught:
        check_ports(PUBLISHED, changed(timing, *at, **numbers(how)), MEMORY)
    assert (caught.value.rank, caught.value.step) == reported
    assert seen in caught.value.seen


def test_without_memory_every_send_keeps_the_port_busy() -> None:
    timing = ideal(PUBLISHED, MEMORY)
    with pytest.raises(InvalidSchedule, match="the send port is still busy with step 0"):
        check_ports(PUBLISHED, timing, POSTAL)
