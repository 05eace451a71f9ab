"""What is not simulated cannot be faster; and an estimate is refined, or says that it is one."""

import re
from dataclasses import replace
from fractions import Fraction
from statistics import median
from typing import Any

import pytest

import collwise as cw
from collwise.algorithms.registry import algorithms_for
from collwise.algorithms.search import settings_to_try
from collwise.errors import NothingApplies
from collwise.model.level_notation import parse
from collwise.model.levels import Levels, OneLevel
from collwise.planner import candidates, relaxed
from collwise.planner.candidates import tried
from collwise.planner.choose import _plan, problem_for
from collwise.planner.relaxed import about, least_time
from collwise.report.plan_document import plan_document
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.timing import completion, ideal
from collwise.timing.law import only_own_ports
from tests.guidelines.random_problems import Asked, problems

SIMULATED = ("loggp", "exchange_only", "wormhole", "levels")
WORMHOLE = cw.presets["t3d"].machine
TORUS = cw.topology.Torus(2, 2, 2)


def problem_of(asked: Asked) -> Problem:
    problem, _ = problem_for(asked.collective, ranks=asked.ranks, **asked.more)
    return problem


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", SIMULATED)
def test_no_schedule_is_faster_than_its_lower_bound(kind: str) -> None:
    for asked in problems(5, 8, (kind,)):
        problem, topology = problem_of(asked), asked.more.get("topology")
        for algorithm in algorithms_for(problem.collective, levels=False):
            if not algorithm.keeps_order(problem):
                continue
            look = (
                OneLevel(asked.machine, 1) if isinstance(asked.machine, Levels) else asked.machine
            )
            for settings in list(settings_to_try(algorithm, problem, look))[:2]:
                schedule = algorithm.solve(problem, settings)
                least = least_time(schedule, asked.machine)
                assert least <= ideal(schedule, asked.machine, topology).completion, asked


@pytest.mark.no_cover
@pytest.mark.parametrize("problems_of_each", [3, pytest.param(100, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("kind", SIMULATED)
def test_the_choice_is_that_of_simulating_everything(
    kind: str, problems_of_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in problems(6, problems_of_each, (kind,)):
        problem, topology = problem_of(asked), asked.more.get("topology")
        among = algorithms_for(problem.collective, levels=kind == "levels")
        times = []
        for most in (0, 1 << 40):
            monkeypatch.setattr(candidates, "RUNNERS_UP", most)
            result = tried(among, problem, asked.machine, topology, "", candidates.predicted)
            times.append(min(c.predicted for c in result.best.values()))
            few = only_own_ports(asked.machine, topology)
            names = {one.name for one in among if one.searched or one.usual or not few}
            assert {*result.best, *result.excluded} == names
        assert times[0] == times[1]
        assert result.simulated == result.of or kind == "levels"


@pytest.mark.parametrize(("most", "nbytes"), [(0, 4096), (1 << 40, 4160)])
def test_simulated_schedules_keep_no_lists(
    most: int, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether simulations go to their ends, or end at a limit; times are exact."""
    played: list[Program] = []

    def counted(schedule: cw.Schedule, *rest: Any) -> Fraction | None:
        played.append(schedule.program)
        assert "lists" not in vars(schedule)
        time: Fraction | None = completion(schedule, *rest)
        return time

    monkeypatch.setattr(candidates, "RUNNERS_UP", most)
    monkeypatch.setattr(candidates, "completion", counted)
    plan = cw.plan("allreduce", ranks=8, nbytes=nbytes, machine=WORMHOLE, topology=TORUS)
    assert len(played) == int(plan.simulated.split()[0])
    for one in plan.candidates:
        assert one.predicted == ideal(one.schedule(plan.problem), WORMHOLE, TORUS).completion


def test_too_many_messages_on_links(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BUDGET_ELSEWHERE", "RUNNERS_UP"):
        monkeypatch.setattr(candidates, name, 10)
    monkeypatch.setattr("collwise.planner.choose._plan", _plan.__wrapped__)
    with pytest.raises(NothingApplies, match="none of its algorithms is tried at this size; plan"):
        cw.plan("allreduce", ranks=8, nbytes=4224, machine=WORMHOLE, topology=TORUS)


def test_what_is_too_long_to_be_simulated_is_chosen_by_an_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On levels, of many ranks; and what was not simulated is not called slower."""
    law = cw.Machine.levels(
        [cw.Machine.postal(t0_s=t0, lam=2) for t0 in (1, 5)], cw.Placement.regular(4, 4), ports=[2]
    )
    asked: dict[str, Any] = {"ranks": 16, "machine": law, "op": "sum", "dtype": "float64"}
    plan = cw.plan("reduce", nbytes=1 << 16, **asked)
    assert "may be faster" not in plan.simulated
    monkeypatch.setattr(candidates, "MAX_INSIDE", 15)
    monkeypatch.setattr(candidates, "RUNNERS_UP", 20)
    monkeypatch.setattr(candidates, "BUDGET_ELSEWHERE", 20)
    few = cw.plan("reduce", nbytes=(1 << 16) - 8, **asked)
    assert re.search(r"schedules timed; \d+ that may be faster have too many mess", str(few))
    rough = [one for one in few.candidates if one.estimate]
    assert few.choice in rough
    assert f"predicted    ≈ {few.choice.time[2:]}  (an estimate, rough)" in str(few)
    assert plan_document(few, "here")["estimate"]
    exact = ideal(few.schedule, law).completion
    assert few.bound.time <= few.choice.predicted
    assert abs(few.choice.predicted - exact) <= exact / 4
    assert exact <= plan.choice.predicted * Fraction(5, 4)
    monkeypatch.setattr(candidates, "RUNNERS_UP", 0)
    flat = cw.plan("reduce", nbytes=64, algorithm="flat", **asked)
    assert flat.choice.predicted == ideal(flat.schedule, law).completion  # rather than nothing


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "shape",
    ["3+5+2", "2x3x4", "3+1+4, round robin", pytest.param("8x8", marks=pytest.mark.exhaustive)],
)
def test_rough_times_are_near(shape: str) -> None:
    """Those by which plans are chosen: made of parts, or all ranks do the same."""
    ratios: list[float] = []
    more = ", 3us+1ns/B; 20us+1ns/B,40us+1ns/B" * (shape.count("x") > 1)
    machine = parse(f"{shape}: 200ns+0.1ns/B,2,300ns+0.1ns/B; 1.7us+0.8ns/B,4{more}")
    ranks = machine.placement.ranks
    for collective in ("broadcast", "reduce", "allreduce", "allgatherv", "reduce_scatter_block"):
        given: dict[str, Any] = {"sources": [0, 2, ranks - 1]} if collective == "allgatherv" else {}
        problem, _ = problem_for(collective, ranks=ranks, nbytes=512 * ranks, **given)
        problem = replace(problem, placement=machine.placement)
        for algorithm in algorithms_for(collective):
            if not algorithm.levels or not algorithm.keeps_order(problem):
                continue
            for settings in settings_to_try(algorithm, problem, machine):
                schedule = algorithm.solve(problem, settings)
                rough, near = about(algorithm, schedule, schedule.sampled, machine)
                assert near
                exact = completion(schedule, machine)
                ratios.append(float(rough / exact))
                assert 0.5 < ratios[-1] < 2.5, (algorithm.name, settings)
    assert 0.95 < median(ratios) < 1.2


@pytest.mark.no_cover
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce", "reduce_scatter_block"])
def test_hardly_any_plan_of_many_ranks_for_one_level_is_faster(
    collective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is simulated, as of long messages between thousands of ranks."""
    machine = parse("4x8: 200ns+0.1ns/B,2,300ns+0.1ns/B; 1.7us+0.8ns/B,4")
    for name in ("MAX_INSIDE", "RUNNERS_UP"):
        monkeypatch.setattr(candidates, name, 0)
    for nbytes in (512,) if collective in ("broadcast", "reduce") else (1 << 16,):
        given: dict[str, Any] = {"ranks": 32, "nbytes": nbytes}
        ours = cw.plan(collective, machine=machine, **given)
        theirs = cw.plan(collective, machine=OneLevel(machine, 2), **given)
        exact, other = (
            completion(replace(made.schedule, problem=ours.problem), machine)
            for made in (ours, theirs)
        )
        assert exact <= other * Fraction(6, 5), (ours.choice.label, theirs.choice.label)


def test_what_was_not_simulated_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "RUNNERS_UP", 0)
    law = cw.Machine.hockney(alpha_s="1e-6", beta_s="1e-9", exchange_only=True)
    plan = cw.plan("broadcast", ranks=40, nbytes=999, machine=law)
    assert re.search(r"candidates +\d+ of \d+ schedules timed; no other can be fas", str(plan))
    assert plan.excluded["broadcast/chain"] == "not simulated: it takes 78.0 µs at least"
    assert "its simulation ended when it was slower than the choice" in {
        *cw.plan("allreduce", ranks=12, nbytes=999 * 8, machine=law).excluded.values()
    }


@pytest.mark.no_cover
@pytest.mark.parametrize("collective", ["broadcast", "allreduce", "allgatherv"])
def test_of_many_ranks_what_is_likely_the_fastest_comes_first(
    collective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for thousands of ranks, where one or two schedules of those that combine are simulated."""
    laws = [cw.Machine.postal(t0_s=t0, lam=lam) for t0, lam in ((1, 2), (8, 5))]
    machine = cw.Machine.levels(laws, cw.Placement.regular(4, 8), ports=[3])
    given: dict[str, Any] = {"ranks": 32, "nbytes": 64, "machine": machine}
    if collective == "allgatherv":
        given["sources"] = [0, 5, 30]
    every = cw.plan(collective, **given)
    for name, most in (("MAX_INSIDE", 0), ("RUNNERS_UP", 0), ("BUDGET_ELSEWHERE", 600)):
        monkeypatch.setattr(candidates, name, most)
    if collective != "allgatherv":  # whose contributions are joined, and not in parts
        monkeypatch.setattr(relaxed, "QUICK", 16)
    few = cw.plan(collective, **{**given, "nbytes": 72})
    assert few.choice.predicted <= every.choice.predicted * Fraction(3, 2)
    assert few.algorithm == every.algorithm
    assert int(few.simulated.split()[0]) < int(every.simulated.split()[0])


RIVALS = ("mixed_radix", "circulant")


@pytest.mark.no_cover
def test_pieces_under_way_are_not_expected_one_by_one() -> None:
    """What is fastest between two sites is found, and its rival remains, to be raced."""
    machine = parse("2x8: 40us+0.8us/B,1.2ms+0.8us/B; 40us+0.8us/B,20ms+0.8us/B")
    plan = cw.plan("allreduce", ranks=16, nbytes=1 << 16, machine=machine, op="sum")
    names = [candidate.name.partition("/")[2] for candidate in plan.candidates]
    assert names[0] == "multilane_pieces"
    best, rival = (plan.candidates[names.index(f"{name}_pieces")] for name in RIVALS)
    assert best.predicted <= rival.predicted < best.predicted * candidates.RIVAL
