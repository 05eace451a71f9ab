"""Machines with levels: worked out by hand, against the slow twin, and with one level."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.algorithms.examples import COMBINES, MEASURED, settings_of, sources_for
from tests.timing.levels_twin import Twin, random_levels, random_placement
from tests.timing.schedules import messages, random_schedule

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.model.topology import Mesh
from collwise.timing import Timing, completion, ideal
from collwise.verifier import check_ports

F = Fraction
INSIDE, ACROSS = Machine.postal(t0_s=1, lam=2), Machine.postal(t0_s=4, lam=5)
TWO_NODES = Placement.regular(2, 3)


def times(timing: Timing) -> dict[tuple[int, int], tuple[Any, Any]]:
    """By source and target: when the send starts, and when the message is received."""
    return {(t.source, t.target): (t.start, t.received) for t in timing.transfers}


def test_each_level_has_its_costs() -> None:
    machine = Machine.levels([INSIDE, ACROSS], TWO_NODES)
    timing = ideal(messages(6, (0, 1), (0, 3), (0, 2)), machine)
    assert times(timing) == {(0, 1): (0, 2), (0, 3): (1, 21), (0, 2): (5, 7)}


def test_ranks_of_a_node_share_its_port() -> None:
    """Three leave at once, 3 apart; they come in 3 apart; ties go by source."""
    machine = Machine.levels([INSIDE, ACROSS], TWO_NODES, ports=[3])
    timing = ideal(messages(6, (2, 5), (0, 3), (1, 4), (1, 0)), machine)
    expected = {(0, 3): (0, 20), (1, 4): (3, 23), (2, 5): (6, 26), (1, 0): (7, 9)}
    assert times(timing) == expected
    assert times(ideal(messages(6, (2, 5), (3, 0)), machine))[3, 0] == (0, 20)  # two directions


def test_the_port_on_the_way_in() -> None:
    """From two nodes into one: both arrive at 20, the second passes 3 later."""
    machine = Machine.levels([INSIDE, ACROSS], Placement.regular(3, 2), ports=[3])
    timing = ideal(messages(6, (4, 0), (2, 1)), machine)
    assert times(timing) == {(2, 1): (0, 20), (4, 0): (0, 23)}


def test_ports_of_several_levels() -> None:
    """Two nodes of a rack send to another rack: the rack's port makes the second one wait."""
    laws = [INSIDE, ACROSS, Machine.postal(t0_s=10, lam=2)]
    machine = Machine.levels(laws, Placement.regular(2, 2, 2), ports=[1, 6])
    timing = ideal(messages(8, (0, 4), (2, 6), (1, 3)), machine)
    assert times(timing) == {(0, 4): (0, 20), (1, 3): (1, 21), (2, 6): (6, 26)}
    free = Machine.levels(laws, Placement.regular(2, 2, 2), ports=[None, 6])
    assert times(ideal(messages(8, (0, 4), (2, 6), (1, 3)), free))[1, 3] == (0, 20)


@pytest.mark.parametrize("seed", range(20))
def test_the_slow_twin(seed: int) -> None:
    random = Random(seed)
    ranks = random.randrange(2, 9)
    machine = random_levels(random, random_placement(random, ranks), combining=seed % 3 == 0)
    schedule = random_schedule(random, ranks, random.randrange(1, 25))
    twin = Twin(schedule, machine)
    timing = ideal(schedule, machine)
    assert {(t.source, t.place_at_source): t.start for t in timing.transfers} == twin.start
    for t in timing.transfers:
        assert t.received == twin.done[t.target, t.place_at_target]
    assert {(c.rank, c.place): c.start for c in timing.combines} == twin.begun
    check_ports(schedule, timing, machine)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
def test_one_level_is_the_postal_law(algorithm: Algorithm) -> None:
    """To the last digit, message by message."""
    settings, sources = settings_of(algorithm, 7), sources_for(algorithm, 7)
    schedule = algorithm.schedule(7, 7 * 160, itemsize=8, **sources, **settings)
    for law in (Machine.postal(t0_s=F(1, 1000), lam="9/5"), MEASURED, COMBINES):
        machine = Machine.levels([law], Placement.of(ranks=7))
        timing, expected = ideal(schedule, machine), ideal(schedule, law)
        assert timing.finish == expected.finish
        assert sorted(timing.transfers) == sorted(expected.transfers)
        assert sorted(timing.combines) == sorted(expected.combines)


@pytest.mark.parametrize("port", [None, 30])
def test_it_ends_at_a_limit(port: int | None) -> None:
    machine = Machine.levels([INSIDE, ACROSS], Placement.regular(4, 6), ports=[port])
    schedule = ALGORITHMS["broadcast/binomial"].schedule(24, 64)
    time = ideal(schedule, machine).completion
    assert completion(schedule, machine, None, time) == time
    assert completion(schedule, machine, None, time * F(99, 100)) is None


def test_thousands_of_ranks() -> None:
    """64 × 64; a leader in every node is the only one that sends outside."""
    machine = Machine.levels([INSIDE, ACROSS], Placement.regular(64, 64), ports=[4])
    schedule = ALGORITHMS["broadcast/binomial"].schedule(4096, 100)
    check_ports(schedule, ideal(schedule, machine), machine)


def test_a_machine_for_other_ranks_is_refused() -> None:
    machine = Machine.levels([INSIDE, ACROSS], TWO_NODES)
    with pytest.raises(InvalidArgument, match="it places 6 ranks, and the schedule has 7"):
        ideal(messages(7, (0, 1)), machine)
    with pytest.raises(InvalidArgument, match="knows no links"):
        ideal(messages(6, (0, 1)), machine, Mesh(2, 3))
