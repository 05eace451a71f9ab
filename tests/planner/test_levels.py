"""Plans for machines with levels: bounds per level, where the time is spent, what is said."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms.registry import ALGORITHMS, algorithms_for
from collwise.algorithms.search import settings_to_try
from collwise.model.level_notation import parse
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.planner import candidates, choose, relaxed
from collwise.planner.plans import Plan
from collwise.report.plan_document import plan_document
from collwise.schedule.problem import Problem
from collwise.timing import ideal
from collwise.timing.critical_path import time_by_level
from tests.timing.schedules import random_levels, random_placement

F = Fraction
INSIDE, ACROSS = Machine.postal(t0_s=1, lam=2), Machine.postal(t0_s=10, lam=3)
MACHINE = Machine.levels([INSIDE, ACROSS], Placement.regular(3, 2), ports=[4])


def made(machine: Levels, collective: str = "broadcast", **more: Any) -> Plan:
    given = {"ranks": machine.placement.ranks, "nbytes": 48, **more}
    return cw.plan(collective, machine=machine, **given)


@pytest.mark.no_cover
def test_groups_are_reached_one_after_another() -> None:
    """By hand: the first node has two ranks to send, whose messages leave 4 apart."""
    plan = made(MACHINE)
    assert plan.bound.time == 34
    assert plan.bound.argument == "every node is reached, with the least t0 and λ·t0 of any size"
    assert (
        plan.unsegmented_bound.argument
        == "every node is reached, if everything goes in one message"
    )
    wide = Machine.levels([INSIDE, ACROSS], Placement.regular(5, 2))
    assert made(wide).bound.time == 40  # 30, 30, 40, 40: two ranks, each every 10


def test_where_the_time_is_spent() -> None:
    plan = made(MACHINE, algorithm="multilevel")
    spent = plan.level_times
    assert sum(spent.values()) == plan.choice.predicted
    assert list(spent) == ["inside a node", "between nodes"]
    assert spent["inside a node"] == 2
    assert "spent        5% inside a node, 95% between nodes" in str(plan)
    assert plan_document(plan, "here")["spent_s"] == {"inside a node": 2.0, "between nodes": 40.0}
    assert cw.plan("broadcast", ranks=6, nbytes=8, machine=INSIDE).level_times == {}


@pytest.mark.parametrize("seed", range(10))
def test_the_levels_add_up(seed: int) -> None:
    random = Random(seed)
    ranks = random.randrange(2, 12)
    machine = random_levels(
        random, random_placement(random, ranks, 2 + seed % 2), combining=seed % 3 == 0
    )
    for collective in ("broadcast", "allreduce"):
        for algorithm in algorithms_for(collective, levels=False)[seed % 2 :: 2]:
            if algorithm.parameters:
                continue
            timing = ideal(algorithm.schedule(ranks, 16 * ranks, itemsize=8), machine)
            assert sum(time_by_level(timing, machine).values()) == timing.completion


def test_a_faster_outer_level_is_told() -> None:
    odd = Machine.levels([ACROSS, INSIDE], Placement.regular(3, 2))
    assert "note         messages between nodes are faster than those inside a node" in str(
        made(odd)
    )


@pytest.mark.no_cover
def test_many_ranks_are_planned() -> None:
    """What takes too long to simulate is left out, and named."""
    machine = Machine.levels([INSIDE, ACROSS], Placement.regular(18, 18), ports=[4])
    plan = made(machine)
    assert plan.algorithm.startswith("broadcast/multilevel")
    assert "spent" not in str(plan)
    assert all(
        why.startswith("not simulated: it takes ")
        or why == "too many messages to simulate when planning"
        or why == "does not apply here, or segments cannot help"
        or why == "its simulation ended when it was slower than the choice"
        for why in plan.excluded.values()
    )


@pytest.mark.no_cover
def test_many_ranks_are_planned_by_rough_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on more ranks than are simulated: what is chosen is what would be, if all were."""
    machine = parse("8x8: 200ns,2,300ns; 1.7us+0.8ns/B,4")
    exact = {nbytes: made(machine, nbytes=nbytes) for nbytes in (512, 1 << 16)}
    for module in (candidates, relaxed):
        monkeypatch.setattr(module, "MAX_INSIDE", 16)
    monkeypatch.setattr(candidates, "RUNNERS_UP", 200)
    monkeypatch.setattr(candidates, "BUDGET_ELSEWHERE", 200)
    monkeypatch.setattr(choose, "_plan", choose._plan.__wrapped__)
    few = {nbytes: made(machine, nbytes=nbytes) for nbytes in exact}
    for nbytes, plan in few.items():
        assert plan.choice.label == exact[nbytes].choice.label
        assert abs(plan.choice.predicted - exact[nbytes].choice.predicted) <= plan.bound.time
    assert few[1 << 16].choice.estimate
    assert "not simulated: it takes about " in str(few[1 << 16])


def test_no_order_is_searched_for_on_very_many_ranks() -> None:
    machine = parse("16385x1: 200ns,2; 1.7us,4")
    problem = Problem("broadcast", 16385, 8, placement=machine.placement)
    assert not list(settings_to_try(ALGORITHMS["broadcast/multilevel_ordered"], problem, machine))


def test_lanes_crowd_the_port_of_a_node() -> None:
    """Eight lanes pass a port that a message keeps busy for 300 ns: one every 2.4 µs each."""
    machine = parse("8x8: 200ns,2,300ns; 1.7us,4")
    assert OneLevel(machine, 2, crowd=8).message(1) == (F("2.4e-6"), F("8.9e-6"))
    plan = made(machine, nbytes=1 << 20, algorithm="multilane")
    time = relaxed.by_parts(plan.schedule.program, plan.problem, machine)
    assert time is not None
    assert abs(time - plan.choice.predicted) <= plan.choice.predicted / 5


def test_a_message_passes_the_ports_of_all_groups_that_it_leaves() -> None:
    """Eight lanes between racks pass the ports of the nodes, too, which are slower."""
    machine = parse("2x4x8: 200ns,2,300ns; 1.7us,4,20ns; 1.7us,8")
    assert OneLevel(machine, 3, crowd=8).message(1) == (F("2.4e-6"), F("15.7e-6"))
