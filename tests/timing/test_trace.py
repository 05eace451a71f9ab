"""A trace says what the ideal engine found, and nothing else."""

import pytest
from tests.timing.schedules import spelled

from collwise.algorithms import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.model.topology import Mesh
from collwise.schedule.program import Schedule, Written
from collwise.simulator import simulate
from collwise.timing import messages_played
from collwise.timing.times import LinkWait


def test_messages_that_are_played() -> None:
    """As many as shapes where these tell the time, of one rank where all do alike."""
    postal, links = Machine.postal(t0_s=1, lam=2), Machine.hockney(alpha_s=1, beta_s=1)
    tree = ALGORITHMS["broadcast/binomial"].schedule(64, 8)
    assert messages_played(tree, postal) <= 64
    assert 63 <= messages_played(tree, links, Mesh(8, 8)) <= 3 * 64
    ring = ALGORITHMS["allreduce/ring"].schedule(64, 64)
    assert 2 * 63 <= messages_played(ring, postal) <= 16 * 126
    by_hand = Schedule(tree.problem, Written(tree.lists))
    assert messages_played(by_hand, postal) > messages_played(tree, links, Mesh(8, 8))


def test_very_long_times_as_floats() -> None:
    """Each is the float that is nearest to the exact one."""
    machine = Machine.postal(t0_s="1.7234567891234e-3", lam="3.14159265358979323846")
    trace = simulate(ALGORITHMS["broadcast/scatter_allgather"].schedule(30, 300), machine)
    assert trace.finish_s == tuple(map(float, trace.finish))
    assert trace.completion_s == max(trace.finish_s)


def test_on_a_network_a_trace_says_who_waited_for_which_link() -> None:
    """0 → 2 and 1 → 3 on a line share link 4, from 1 to 2."""
    schedule = spelled(">2AB", ">3AB", "<0AB", "<1AB")
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
