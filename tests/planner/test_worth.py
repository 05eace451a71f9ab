"""What a tuning would be worth, by races of other sizes and by the model."""

import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.machine import Machine
from collwise.planner.choose import plan_for
from collwise.planner.worth import worth
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem, Source
from tests.planner.machines import race

MACHINE = Machine.hockney(alpha_s=1e-6, beta_s=1e-9, gamma_s=0)
PROBLEM = Problem("broadcast", 4, 1 << 20)


def test_by_a_race_of_another_size() -> None:
    won = worth([race(library_s=4e-6), race(nbytes=8)], None, PROBLEM, "blocking", 1e-3)
    assert won.seconds == pytest.approx(0.75e-3)
    assert won.evidence == (
        "the nearest race, of 512 B (2,048 times as small), was won 4.00 times as fast"
    )
    tied = worth([race(decision="library")], None, PROBLEM, "blocking", 1e-3)
    tie = "nothing was clearly faster in the nearest race, of"
    assert tied == (0.0, f"{tie} 512 B (2,048 times as small)")
    large = worth([race(decision="library", nbytes=1 << 23)], None, PROBLEM, "blocking", 1e-3)
    assert large.evidence == f"{tie} 8 MiB (8 times as large)"
    same = worth([race(decision="library", nbytes=1 << 20)], None, PROBLEM, "blocking", 1e-3)
    assert same.evidence == f"{tie} 1 MiB"
    instant = worth([race(ours_s=0.0)], None, PROBLEM, "blocking", 1e-3)
    assert "∞" in instant.evidence
    assert worth([race(library_s=0.0)], None, PROBLEM, "blocking", 1e-3).seconds == 0


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_by_the_model(collective: str) -> None:
    sources = (Source(0, 1 << 18),) if COLLECTIVES[collective].has_sources else ()
    problem = Problem(collective, 4, 1 << (18 if sources else 20), sources=sources)
    plan = plan_for(problem, MACHINE)
    usual = [one for one in plan.candidates if ALGORITHMS[one.name].usual]
    assert usual, "every collective has algorithms that libraries run"
    best = min(one.predicted_s for one in usual)
    for races in ([], [race(form="persistent")], [race(ranks=8)]):
        told = worth(races, MACHINE, problem, "blocking", None)
        assert told.seconds == best - plan.predicted_s >= 0
        assert told.seconds == 0 or plan.choice.label in told.evidence
    assert worth([], MACHINE, problem, "blocking", 1e-9).seconds in (1e-9, told.seconds)


def test_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    told = worth([race()], None, PROBLEM, "blocking", None)
    assert told == (None, "nothing was measured on this machine")
    many = Problem("allreduce", 1 << 21, 8, 0, 8, "fixed")
    logp = Machine.loggp(L_s=1e-6, o_s=1e-6, g_s=1e-6, G_s=1e-9)
    told = worth([], logp, many, "blocking", None)
    assert told.seconds is None
    assert "none of its algorithms is tried" in told.evidence
    unusual = plan_for(PROBLEM, MACHINE, "broadcast/flat")
    monkeypatch.setattr("collwise.planner.worth.plan_for", lambda *_: unusual)
    told = worth([], MACHINE, PROBLEM, "blocking", None)
    assert told == (None, "the model knows no time of what libraries have")


def test_where_nothing_is_faster() -> None:
    told = worth([], MACHINE, Problem("reduce", 3, 24, 0, 8), "blocking", 1.0)
    assert told == (0.0, "by the model nothing is faster than reduce/binomial, as libraries have")
