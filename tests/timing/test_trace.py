"""A trace says what the ideal engine found, and nothing else."""

from fractions import Fraction

import pytest

from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Mesh
from collwise.schedule.operations import Block, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.simulator import simulate
from collwise.timing import ideal
from collwise.timing.events import LinkWait

BLOCK = (Block(0, 0, 8),)


def test_a_message_and_an_answer() -> None:
    lists = ((Send(1, BLOCK), Recv(1, BLOCK)), (Recv(0, BLOCK), Send(0, BLOCK)))
    schedule = Schedule(Problem("ping-pong", 2, 8), Written(lists))
    machine = Machine.postal(t0_s=0.5, lam=3)
    trace = simulate(schedule, machine)
    assert trace.schedule is schedule
    assert trace.machine is machine
    assert trace.finish == (Fraction(3), Fraction(2))
    assert trace.finish_s == (3.0, 2.0)
    assert (trace.completion, trace.completion_s) == (Fraction(3), 3.0)
    assert [(t.source, t.target, t.start, t.sent, t.received) for t in trace.transfers] == [
        (0, 1, 0, Fraction(1, 2), Fraction(3, 2)),
        (1, 0, Fraction(3, 2), 2, 3),
    ]


@pytest.mark.parametrize(
    "machine",
    [
        Machine.postal(t0_s=1e-6, lam=2.5),
        Machine.hockney(alpha_s=1e-6, beta_s=1e-9),
        Machine.loggp(L_s=3e-6, o_s=1e-6, g_s=2e-6, G_s=1e-9),
    ],
)
def test_there_is_one_engine(machine: Machine) -> None:
    probe = Schedule(
        Problem("broadcast", 3, 8),
        Written(((Send(1, BLOCK), Send(2, BLOCK)), (Recv(0, BLOCK),), (Recv(0, BLOCK),))),
    )
    timing = ideal(probe, machine)
    trace = simulate(probe, machine)
    assert (trace.finish, trace.transfers) == (timing.finish, timing.transfers)


def test_a_circle_is_explained() -> None:
    lists = ((Recv(1, BLOCK), Send(1, BLOCK)), (Recv(0, BLOCK), Send(0, BLOCK)))
    with pytest.raises(InvalidSchedule, match="wait for each other"):
        simulate(Schedule(Problem("deadlock", 2, 8), Written(lists)), Machine.postal(t0_s=1, lam=1))


def test_on_a_network_a_trace_says_who_waited_for_which_link() -> None:
    """0 → 2 and 1 → 3 on a line share link 4, from 1 to 2."""
    lists = (
        (Send(2, BLOCK),),
        (Send(3, BLOCK),),
        (Recv(0, BLOCK),),
        (Recv(1, BLOCK),),
    )
    schedule = Schedule(Problem("broadcast", 4, 8), Written(lists))
    machine, line = Machine.hockney(alpha_s=1, beta_s="1/4"), Mesh(1, 4)
    trace = simulate(schedule, machine, line)
    assert trace.topology is line
    assert [p.start for p in trace.passages] == [0, 3]
    assert [p.route for p in trace.passages] == [(0, 4), (4, 8)]
    assert [p.waited for p in trace.passages] == [None, LinkWait(4, 0)]
    assert trace.link_busy() == {0: 3, 4: 6, 8: 3}
    assert trace.completion == 6
    alone = simulate(schedule, machine)
    assert (alone.topology, alone.passages, alone.link_busy()) == (None, (), {})
    assert alone.completion == 3
    with pytest.raises(InvalidArgument, match="of 2 × 3 has 6 nodes"):
        simulate(schedule, machine, Mesh(2, 3))
