"""The choice: the least predicted time among all that applies, and exactly what it would take."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from collwise.algorithms.registry import ALGORITHMS, Algorithm, algorithms_for
from collwise.algorithms.search import settings_to_try
from collwise.errors import UnknownName
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.topology import Topology
from collwise.planner.choose import plan
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.timing import ideal
from collwise.verifier import verify
from tests.planner.machines import LOGGP, MACHINES, MEASURED, POSTAL, tried_on

each_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
SIZES = (0, 1, 700, 20_000)


@pytest.mark.no_cover
@each_machine
def test_against_brute_force(machine: Machine) -> None:
    """Play every choice of what is tried: the plan is the fastest, its prediction exact.

    Of all algorithms none is faster by more than a few percent.
    """
    place = list(MACHINES.values()).index(machine)
    for ranks, nbytes in [*product((1, 2, 3, 9, 16), SIZES)][place % 3 :: 3]:
        root = ranks // 2
        problem = Problem("broadcast", ranks, nbytes, root)
        played = {
            algorithm.name: min(
                ideal(algorithm.schedule(ranks, nbytes, root, **choice), machine).completion
                for choice in choices
            )
            for algorithm in algorithms_for("broadcast", levels=False)
            if (choices := list(settings_to_try(algorithm, problem, machine)))
        }
        made = plan("broadcast", ranks=ranks, nbytes=nbytes, machine=machine, root=root)
        assert made.choice.predicted <= min(played.values()) * Fraction(21, 20)
        among = tried_on(machine, "broadcast")
        played = {name: time for name, time in played.items() if name in among}
        assert {c.name: c.predicted for c in made.candidates} == played
        assert made.choice.predicted == min(played.values())
        assert ideal(made.schedule, machine).completion == made.choice.predicted
        assert made.excluded.keys() == among - set(played)


@pytest.mark.parametrize("machine", [POSTAL, MEASURED])
def test_what_a_plan_says_of_itself(machine: Machine) -> None:
    made = plan("broadcast", ranks=11, nbytes=9000, machine=machine, root=3)
    assert made.problem == made.schedule.problem == Problem("broadcast", 11, 9000, 3)
    assert made.machine is machine
    assert (made.algorithm, made.settings) == (made.choice.name, made.choice.settings)
    assert made.schedule.algorithm == made.choice.label
    assert made.predicted_s == float(made.choice.predicted)
    assert made.lower_bound_s == float(made.bound.time)
    assert made.bound.time <= made.choice.predicted
    assert made.schedule is made.schedule
    verify(made.schedule, machine)
    times = [c.predicted for c in made.candidates]
    assert times == sorted(times)
    assert made.candidates[0] is made.choice is made.candidate(made.choice.label)
    assert all(c.measured_s is None for c in made.candidates)
    assert {c.name for c in made.candidates} | set(made.excluded) == tried_on(machine, "broadcast")
    with pytest.raises(UnknownName, match="broadcast/quicksort"):
        made.candidate("broadcast/quicksort")


@pytest.mark.no_cover
def test_more_choices_are_never_slower() -> None:
    """The field is as fast as its fastest algorithm planned alone, the only candidate then."""
    made = plan("broadcast", ranks=11, nbytes=5000, machine=MEASURED)
    alone = [
        plan("broadcast", ranks=11, nbytes=5000, machine=MEASURED, algorithm=c.name)
        for c in made.candidates
    ]
    assert [a.candidates for a in alone] == [(a.choice,) for a in alone]
    assert [a.choice.label for a in alone] == [c.label for c in made.candidates]
    assert min(a.choice.predicted for a in alone) == made.choice.predicted
    assert all(not a.excluded for a in alone)


def test_an_algorithm_by_its_name() -> None:
    long, short = (
        plan("broadcast", ranks=9, nbytes=100, machine=POSTAL, algorithm=name)
        for name in ("broadcast/knomial", "knomial")
    )
    assert long == short
    assert long.algorithm == "broadcast/knomial"
    # The best radix of those it proposes.
    problem = Problem("broadcast", 9, 100)
    knomial = ALGORITHMS["broadcast/knomial"]
    times = [
        knomial.predict(POSTAL, 9, 100, **c) for c in settings_to_try(knomial, problem, POSTAL)
    ]
    assert long.choice.predicted == min(times) < max(times)


def simplicity(name: str) -> tuple[bool, int]:
    return ALGORITHMS[name].segmented, len(ALGORITHMS[name].parameters)


def test_of_equally_fast_ones_the_simplest() -> None:
    """λ = 1 makes several trees the best; the binomial tree is the one without parameters."""
    machine = Machine.postal(t0_s=1, lam=1)
    made = plan("broadcast", ranks=8, nbytes=1000, machine=machine)
    tied = [c for c in made.candidates if c.predicted == made.choice.predicted]
    assert len(tied) > 1
    assert made.algorithm == "broadcast/binomial"
    assert [simplicity(c.name) for c in tied] == sorted(simplicity(c.name) for c in tied)
    assert {c.verdict for c in tied[1:]} == {"equally fast; the choice is the simpler one"}


def test_whole_messages_before_segments() -> None:
    made = plan("broadcast", ranks=8, nbytes=1000, machine=POSTAL, score=lambda *_: Fraction(1))
    order = [simplicity(c.name) for c in made.candidates]
    assert order == sorted(order)
    assert order[0] == (False, 0)
    assert (True, 0) in order


@pytest.mark.parametrize(
    ("flat", "others", "verdict"),
    [
        (200, 200, "equally fast; the choice is the simpler one"),
        (200, Fraction(20_001, 100), "less than 1% slower"),
        (200, 201, "less than 1% slower"),
        (200, 202, "1% slower"),
        (200, 600, "200% slower"),
        (0, 1, "slower"),
    ],
)
def test_how_much_slower(flat: int, others: Fraction, verdict: str) -> None:
    def score(algorithm: Algorithm, *_: object) -> Fraction:
        return Fraction(flat if algorithm.short_name == "flat" else others)

    made = plan("broadcast", ranks=4, nbytes=8, machine=POSTAL, score=score)
    assert made.algorithm == "broadcast/flat" or verdict.startswith("equally")
    assert made.choice.verdict == "chosen: the least predicted time"
    assert {c.verdict for c in made.candidates[1:]} == {verdict}


def test_a_score_of_ones_own() -> None:
    """It is asked for every choice of every algorithm, with the problem and the machine."""
    asked: list[str] = []

    def most_segments(
        algorithm: Algorithm,
        problem: Problem,
        machine: Machine,
        settings: Mapping[str, Any],
        topology: Topology | None,
    ) -> Fraction:
        assert problem == Problem("broadcast", 6, 3000, 1)
        assert machine is POSTAL
        assert topology is None
        asked.append(algorithm.name)
        return Fraction(-settings.get("k", 0), 7)

    made = plan("broadcast", ranks=6, nbytes=3000, machine=POSTAL, root=1, score=most_segments)
    assert made.choice.label == "broadcast/knomial(k=4)"
    assert made.choice.predicted == Fraction(-4, 7)
    assert set(asked) == {c.name for c in made.candidates}
    assert asked.count("broadcast/knomial") == 3  # k = 2, 3, 4
    # The bounds are the machine's, whatever the score.
    usual = plan("broadcast", ranks=6, nbytes=3000, machine=POSTAL, root=1)
    assert made.bound == usual.bound
    assert usual.algorithm != made.algorithm


def test_planning_runs_nothing_and_plays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees are timed by their shapes: nothing of the size of the communicator is made."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("planning made or simulated a schedule")

    for name in ("rank", "rows"):
        monkeypatch.setattr(Schedule, name, never)
    made = plan("broadcast", ranks=57, nbytes=5757, machine=MEASURED, algorithm="postal_tree")
    assert "predicted" in str(made)
    with pytest.raises(AssertionError, match="made or simulated"):
        plan("broadcast", ranks=57, nbytes=5757, machine=LOGGP)


def test_a_million_ranks() -> None:
    made = plan("broadcast", ranks=1 << 20, nbytes=512, machine=MEASURED)
    assert made.choice.predicted >= made.bound.time > 0
    assert "broadcast/scatter_ring" in made.excluded
    assert made.schedule.rank(777_777)


@pytest.mark.no_cover
def test_two_trees_carry_long_messages_of_many_ranks_where_latency_is_high() -> None:
    machine = measured([[(1, "1e-6", 2), (1000, "2e-6", 2), (10**6, "1001e-6", 2)]])
    for collective in ("broadcast", "reduce"):
        name = f"{collective}/two_trees"
        made = plan(collective, ranks=320, nbytes=10**6, machine=machine, algorithm=name)
        others = plan(collective, ranks=320, nbytes=10**6, machine=machine).candidates
        best = min(one.predicted for one in others if one.name != name)
        assert best > made.choice.predicted * Fraction(105, 100)
    many = plan("broadcast", ranks=5000, nbytes=9, machine=machine)
    assert "broadcast/two_trees" in many.excluded
    near = plan("broadcast", ranks=320, nbytes=10**6, machine=Machine.postal(t0_s="1e-6", lam=1))
    assert "broadcast/two_trees" in near.excluded
