"""Probes: the two experiments as schedules, and their closed forms [Bruck1996 §2.2]."""

from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.measure.level_probes import BesideProbe, PortProbe
from collwise.measure.probes import (
    EXPERIMENTS,
    Probe,
    ProbeSetting,
    greetings,
    pick_targets,
    usual_ks,
)
from collwise.model.machine import Cost, Machine
from collwise.schedule.operations import Recv, Send, Slot, size_of
from collwise.simulator import simulate
from collwise.timing import ideal

LATENCIES = [Fraction(x) for x in ("1", "1.05", "4/3", "3/2", "9/5", "2", "5/2", "4", "10")]
T0 = Fraction(17, 10**7)


POSTAL = [Machine.postal(t0_s=T0, lam=lam) for lam in LATENCIES]
OTHERS = [
    Machine.hockney(alpha_s=1e-6, beta_s=1e-9),
    Machine.loggp(L_s=3e-6, o_s=1e-6, g_s=2e-6, G_s=1e-9),
]


@pytest.mark.parametrize("machine", [*POSTAL, *OTHERS])
def test_closed_forms_equal_the_ideal_engine(machine: Machine) -> None:
    t0, latency = machine.message(64)
    for k in (1, 2, 3, 4, 5, 8, 13, 16):
        first, second = (Probe(number, 64, tuple(range(1, k + 1))) for number in EXPERIMENTS)
        assert first.expected(machine.message(64)) == (k - 1) * t0 + 2 * latency
        assert second.expected(machine.message(64)) == 2 * (k - 1) * t0 + 2 * latency
        for probe in (first, second):
            seen = ideal(probe.schedule(), machine).finish[0]
            assert seen == probe.expected(machine.message(64))


@pytest.mark.parametrize("machine", POSTAL)
def test_repeated_targets_take_the_same_time(machine: Machine) -> None:
    for ranks, k, experiment in product((2, 3, 4, 6), (1, 2, 4, 7, 8), EXPERIMENTS):
        probe = Probe(experiment, 8, pick_targets(Random(ranks), ranks, k))
        assert (len(set(probe.targets)) < k) == (k >= ranks)
        seen = simulate(probe.schedule(ranks), machine).finish[0]
        assert seen == probe.expected(machine.message(8))


@given(st.integers(1, 2), st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_every_send_has_its_receive_and_nobody_talks_to_itself(
    experiment: int, targets: list[int]
) -> None:
    probe = Probe(experiment, 24, tuple(targets))
    lists = [probe.operations(rank) for rank in range(8)]
    sends = [(r, op.peer) for r, ops in enumerate(lists) for op in ops if isinstance(op, Send)]
    receives = [(op.peer, r) for r, ops in enumerate(lists) for op in ops if isinstance(op, Recv)]
    assert sorted(sends) == sorted(receives)
    assert all(source != target for source, target in sends)
    assert len(sends) == probe.cell.k * experiment + (experiment == 1)
    assert all(size_of(op) == 24 for ops in lists for op in ops)
    assert lists[7] == []
    cost = Cost(Fraction(2), Fraction(5))
    machine = Machine.postal(t0_s=2, lam=Fraction(5, 2))
    assert ideal(probe.schedule(), machine).finish[0] == probe.expected(cost)


def test_probes_of_ports_on_as_many_ranks_as_they_need() -> None:
    machine = Machine.postal(t0_s=1, lam=2)
    # Rank 2 hears at 3 and sends until 7; its receiver reports at 8, and rank 3 answers at 10.
    assert ideal(PortProbe(8, 3, 4).schedule(), machine).finish[0] == 12
    for k in (1, 2):
        assert ideal(BesideProbe(8, 1, 3, k).schedule(), machine).finish[0] == 4 + (k - 1)


def who(probe: Probe, rank: int) -> list[tuple[type, int]]:
    return [(type(op), op.peer) for op in probe.operations(rank) if isinstance(op, Send | Recv)]


def test_who_does_what() -> None:
    probe = Probe(2, 8, (3, 1, 2))
    assert who(probe, 0) == [(Send, 3), (Send, 1), (Send, 2), (Recv, 2)]
    assert who(probe, 2) == [(Recv, 0), (Send, 1), (Send, 3), (Send, 0)]
    assert who(probe, 1) == [(Recv, 0), (Recv, 2)]
    assert [peer for _, peer in who(Probe(1, 8, (3, 1, 2)), 2)] == [0, 0]
    # P_0 may not receive into what it still sends from
    slots = {(type(op), op.slot) for op in probe.operations(0) if isinstance(op, Send | Recv)}
    assert slots == {(Send, Slot.INPUT), (Recv, Slot.OUTPUT)}


def test_probes_of_one_cell_differ_in_targets_only() -> None:
    one, other = Probe(1, 8, (1, 2), True), Probe(1, 8, (2, 3), True)
    assert one != other
    assert one.cell == other.cell == ProbeSetting(1, 8, 2, True)
    assert len({one, other, Probe(1, 8, (1, 2), True)}) == 2


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 9, 100])
def test_targets_are_distinct_where_they_can_be(ranks: int) -> None:
    random = Random(1)
    seen = set()
    for _ in range(200):
        for k in (1, 2, 4, 8):
            targets = pick_targets(random, ranks, k)
            assert len(targets) == k
            assert set(targets) <= set(range(1, ranks))
            assert len(set(targets)) == min(k, ranks - 1)
            if ranks > 2:
                assert targets[-1] not in targets[:-1]
            seen |= set(targets)
    assert seen == set(range(1, ranks))


def test_targets_come_from_the_seed() -> None:
    draws = [[pick_targets(Random(7), 50, 8) for _ in range(2)], [pick_targets(Random(7), 50, 8)]]
    assert draws[0][0] == draws[0][1] == draws[1][0]
    assert pick_targets(Random(8), 50, 8) != draws[0][0]


def test_usual_ks_are_distinct_ranks_from_four_ranks_on() -> None:
    assert usual_ks(2) == usual_ks(3) == (1, 2, 4, 8)
    assert usual_ks(4) == (1, 2, 3)
    assert usual_ks(7) == (1, 2, 4, 6)
    assert usual_ks(9) == usual_ks(1000) == (1, 2, 4, 8)
    assert all(usual_ks(p)[-1] < p for p in range(4, 50))


@pytest.mark.parametrize("ranks", [2, 3, 10, 17, 40, 1000])
def test_greetings_bring_everyone_together(ranks: int) -> None:
    probes = greetings(ranks, 8, at_most=64)
    assert len(probes) == min(ranks - 1, 64)
    assert not any(len(set(probe.targets)) < probe.cell.k for probe in probes)
    assert len({probe.targets[-1] for probe in probes}) == len(probes)
    if ranks <= 17:  # every pair meets
        pairs = {(p.targets[-1], t) for p in probes for t in p.targets[:-1]}
        assert len(pairs) == (ranks - 1) * (ranks - 2)
