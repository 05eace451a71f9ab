"""Tasks, and what outcomes say of themselves and teach."""

from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any

import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.measure.race import BLOCKING, CALLS, LIBRARY, LIBRARY_PERSISTENT, MARGIN
from collwise.model.postal import broadcast_time
from collwise.planner.choose import problem_for
from collwise.planner.plans import Candidate
from collwise.planner.race_lookup import verdict
from collwise.profiles.profile import Profile
from collwise.profiles.records import CombineTime, Form
from collwise.report.tuning_tables import tuning_summary, tuning_table
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem
from collwise.tuning.outcomes import Outcome, Task
from tests.profiles.example import SIZES, point, profile
from tests.tuning.examples import FAR, NODE, ON_NODES, PROFILE, RANKS, alone, outcome, session


def test_what_was_decided() -> None:
    """For each form: our fastest schedule by its planned label, and what it is compared with."""
    made = outcome(4096, gain=1.5, blocking_gain=0.8)
    assert made.ours == made.race.winner == made.plan.choice.label
    cost = PROFILE.machine.message(4096)
    assert (made.t0_s, made.lam) == (float(cost.gap), float(cost.lam))
    blocking, persistent = made.decisions
    assert (blocking.form, blocking.used) == ("blocking", "library")
    assert (persistent.form, persistent.used) == ("persistent", "collwise")
    for decision, mark in ((blocking, BLOCKING), (persistent, "")):
        assert decision.raced
        candidate = made.plan.candidate(decision.ours)
        assert decision.predicted_s == candidate.predicted_s
        assert decision.measured == decision.race.medians[decision.ours + mark]
        assert decision.library == decision.race.medians[LIBRARY]
        assert decision.speedup.middle == decision.library.middle / decision.measured.middle
        plain = decision.plain_race
        assert set(plain.samples) - {*plain.libraries} <= {c.label for c in made.plan.candidates}
        assert plain.medians[decision.ours] == decision.measured
    assert made.plan.candidate(persistent.ours).measured_s == persistent.measured.middle
    for decision in alone().decisions:
        assert (decision.raced, decision.used, decision.predicted_s) == (False, "library", None)
        assert decision.ours == LIBRARY


def test_the_librarys_fastest_is_recorded_beside_ours() -> None:
    made = outcome(4096, gain=1.5, blocking_gain=1.5)
    own = Candidate("broadcast/library:tree", {"k": "4"}, Fraction(0))
    samples = {**made.everything.samples, own.label + BLOCKING: (8e-6,) * 30}
    raced = replace(made.everything, samples=samples)
    blocking, persistent = replace(made, everything=raced, own={own.label + BLOCKING: own}).results
    assert (persistent.own, made.results[0].own) == (None, None)
    assert blocking.algorithm == made.results[0].algorithm
    found = blocking.own
    assert found is not None
    assert (found.name, found.settings, found.median_s) == ("tree", {"k": 4}, 8e-6)
    assert found.speedup_low <= 1.25 <= found.speedup_high
    raced = replace(raced, bound_s=1.0)
    wrong = replace(made, everything=raced, own={own.label + BLOCKING: own})
    assert wrong.results[0].own is None


def test_what_is_learned() -> None:
    """The forms are decided apart; the algorithm goes without the mark of its form."""
    made = outcome(4096, gain=1.5, blocking_gain=0.8, nonblocking_gain=1.7)
    blocking, later, persistent = made.results
    for win, (form, race) in zip(made.results, made.races.items(), strict=True):
        assert win.form == form
        assert (win.collective, win.ranks, win.nbytes, win.root) == ("broadcast", RANKS, 4096, 1)
        assert made.plan.candidate(made.ours).name == win.algorithm
        assert win.ours_s == race.medians[race.best].middle
        assert win.library_s == race.medians[race.library].middle
        assert (win.speedup_low, win.speedup_high) == race.speedup(race.best)[1:]
    assert (blocking.form, blocking.decision) == ("blocking", "library")
    assert (persistent.form, persistent.decision) == ("persistent", "collwise")
    assert (later.form, later.decision) == ("nonblocking", "collwise")
    assert later.library_s == pytest.approx(2e-5, rel=0.1), "the library's, in the same form"
    assert made.races["blocking"].best == made.ours + BLOCKING
    settings = made.plan.candidate(made.ours).settings
    assert persistent.settings == {name: str(value) for name, value in settings.items()}


def test_an_algorithm_of_the_library_that_wins() -> None:
    """Each form is decided by itself."""
    one, label = outcome(512, 1.5), "broadcast/library:tree(k=4)"
    samples = {**one.everything.samples}
    samples[label + BLOCKING] = tuple(time / 3 for time in one.race.samples[LIBRARY])
    everything = replace(one.race, samples=samples)
    tree = Candidate("broadcast/library:tree", {"k": 4}, Fraction(0))
    made = Outcome.of(one.task, one.plan, everything, own={label + BLOCKING: tree})
    blocking, persistent = made.decisions
    assert (blocking.used, blocking.serves) == ("collwise", "library:tree(k=4)")
    assert (blocking.ours, blocking.predicted_s) == (label, None)
    assert (persistent.used, persistent.serves) == ("collwise", "collwise")
    assert not made.doubtful
    result, other = made.results
    assert (result.algorithm, result.settings) == ("broadcast/library:tree", {"k": "4"})
    assert (result.decision, other.algorithm) == ("collwise", one.race.best)
    assert "by library:tree(k=4)" in "".join(tuning_summary(session(made)))


def test_a_persistent_algorithm_of_the_library_that_wins() -> None:
    one, label = outcome(512, 1.5), "broadcast/library:sched_tree"
    samples = {**one.everything.samples}
    samples[label] = tuple(time / 9 for time in one.race.samples[LIBRARY])
    tree = Candidate(label, {}, Fraction(0))
    made = Outcome.of(one.task, one.plan, replace(one.race, samples=samples), own={label: tree})
    blocking, persistent = made.decisions
    assert (persistent.serves, persistent.predicted_s) == ("library:sched_tree", None)
    assert blocking.serves == one.decisions[0].serves
    assert made.spent == {}
    assert made.plan.choice.name == label
    assert made.plan.choice.verdict.startswith("chosen: the fastest measured")
    other, result = made.results
    assert (result.algorithm, result.form, result.decision) == (label, "persistent", "collwise")
    assert other == one.results[0]
    assert "by library:sched_tree" in "".join(tuning_summary(session(made)))


def test_a_nonblocking_algorithm_of_the_library_that_wins() -> None:
    """It is the winner of its form only, and recorded beside ours."""
    one = outcome(512, 1.5, nonblocking_gain=1.2)
    label, later = "broadcast/library:sched_tree", CALLS["nonblocking"]
    samples = {**one.everything.samples}
    samples[label + later.ending] = tuple(time / 3 for time in samples[later.defaults[0]])
    everything = replace(one.everything, samples=samples)
    tree = Candidate(label, {}, Fraction(0))
    made = Outcome.of(one.task, one.plan, everything, own={label + later.ending: tree})
    assert [decision.serves for decision in made.decisions] == [
        one.decisions[0].serves, "library:sched_tree", one.decisions[2].serves
    ]  # fmt: skip
    result = made.results[1]
    assert (result.algorithm, result.form, result.decision) == (label, "nonblocking", "collwise")
    assert result.own is not None
    assert result.own.name == "sched_tree"
    assert [race.own for race in made.results[::2]] == [None, None]
    said = "\n".join(tuning_summary(session(made, outcome(8))))
    assert "nonblocking calls: the library's default is clearly beaten in 1 of 1" in said
    assert "persistent calls: the library's default is clearly beaten in 2 of 2" in said


def test_what_is_learned_of_sources() -> None:
    """How many they were, and all that they gave."""
    made = outcome(512, sources=(0, 2, 3))
    for win in made.results:
        assert (win.collective, win.nbytes, win.sources, win.root) == ("allgatherv", 3 * 512, 3, 0)
        assert win.algorithm.startswith("allgatherv/")
    assert {win.sources for win in outcome(512).results} == {0}


def task(collective: str, nbytes: int, **asked: Any) -> Task:
    problem, reason = problem_for(collective, ranks=6, nbytes=nbytes, **asked)
    return Task(problem, reason=reason)


def test_tasks_in_words() -> None:
    assert str(task("broadcast", 512, root=1)) == "broadcast of 512 bytes"
    assert (
        str(task("allgatherv", 64, sources=[1, 4])) == "allgatherv of 64 bytes from each of 2 ranks"
    )
    assert str(task("allgatherv", 0, sources=[1, 4])) == "allgatherv of 0 bytes"


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_task_of_another_size(collective: str) -> None:
    """It is as if it had been asked for; vectors are rounded up to whole elements and blocks."""
    sources = {"sources": [1, 4]} if COLLECTIVES[collective].has_sources else {}
    small, large = (task(collective, nbytes, **sources) for nbytes in (48, 4800))
    assert small.resized(4800) == large
    assert large.resized(4800) == large
    rounded = small.resized(41).problem.nbytes
    assert rounded == (48 if COLLECTIVES[collective].combines else 82 if sources else 41)
    assert large.plan(PROFILE).problem == large.problem


def test_a_small_gain_is_the_librarys() -> None:
    made = outcome(512, gain=1 + MARGIN / 2, blocking_gain=1.01, noise=1e-4)
    assert made.race.speedup(made.ours).low > 1
    assert [win.decision for win in made.results] == ["library", "library"]
    assert made.plan.algorithm == LIBRARY
    verdicts = {c.verdict for c in made.plan.candidates[1:] if c.measured_s is not None}
    assert "raced; not clearly ahead of the library" in verdicts


def test_where_nothing_is_learned() -> None:
    assert alone().results == []
    few = outcome(repetitions=2)
    assert not any(isfinite(decision.speedup.high) for decision in few.decisions)
    assert few.results == []


def test_a_profile_knows_what_was_learned() -> None:
    """From races to the choice of a later run, through the profile's file."""
    found = session(outcome(512, 0.7, 0.7), outcome(65536, 1.6, 1.4), alone(8))
    assert len(found.profile.race_results) == 4
    learned = Profile.from_json(found.profile.to_json()).race_results
    won = found.outcomes[1].plan.choice.name
    cases: tuple[tuple[Form, int, str], ...] = (
        ("persistent", 65536, won),
        ("blocking", 100_000, won),
        ("blocking", 512, LIBRARY),
        ("blocking", 8, LIBRARY),
    )
    for form, nbytes, algorithm in cases:
        problem = Problem("broadcast", RANKS, nbytes)
        assert verdict(learned, problem, form).algorithm == algorithm


@pytest.mark.parametrize("own", [LIBRARY, LIBRARY_PERSISTENT])
def test_the_librarys_faster_form_counts(own: str) -> None:
    """Whichever of the two it is."""
    made = outcome(4096, gain=1.05)
    slower = {LIBRARY, LIBRARY_PERSISTENT} - {own}
    race = made.race.among(made.race.samples.keys() - slower)
    assert race.library == own
    assert race.speedup(race.best).middle == pytest.approx(
        made.race.medians[own].middle / made.race.medians[made.ours].middle
    )


def test_a_time_below_the_bound_decides_nothing() -> None:
    """47.7 µs, below a bound of 208 µs, were called "84.6 times as fast"."""
    made = outcome(4096, gain=1.5, bound_s=1e-4)
    assert made.doubtful
    assert [d.used for d in made.decisions] == ["library", "library"]
    assert made.plan.algorithm == LIBRARY
    assert {win.decision for win in made.results} == {"library"}
    tuning = session(made, outcome(512))
    said = [row["verdict"] for row in tuning_table(tuning).rows]
    assert said[:2] == ["below its bound", "below its bound"]
    assert tuning.profile.verdict == "noisy: races are below their lower bounds"
    wrong = "t0 or λ is wrong: faster than the lower bound were broadcast of 4096 bytes; tune again"
    assert any(line.startswith(wrong) for line in tuning.profile.advice)
    assert not outcome(4096, gain=1.5, bound_s=7e-6).doubtful, "near the bound is no proof"


BUSY = tuple(
    point(nbytes, lam=60.0, t0_s=1.2e-6, t0_interval_s=(1e-7, 1.4e-5), lam_interval=(5.0, 728.0))
    for nbytes in SIZES
)
"""As measured by four ranks on two busy cores."""


def test_what_is_not_known_proves_nothing() -> None:
    """With λ = 60 the bound was 72 µs, and wins of 1.7 times in 61 µs were discarded."""
    busy = profile(BUSY)
    task = outcome(8, measured=busy).task
    assert task.plan(busy).lower_bound_s >= 60 * 1.2e-6 > 61e-6
    assert task.least_s(busy) == pytest.approx(1e-7 * float(broadcast_time(RANKS, 5)))
    made = outcome(8, gain=1.5, measured=busy, bound_s=task.least_s(busy))
    assert made.decisions[1].used == "collwise"
    known = task.plan(profile()).lower_bound_s
    assert 0.8 * known < task.least_s(profile()) < 0.95 * known
    unknown = profile([point(8, t0_interval_s=None, lam_interval=None)])
    assert task.least_s(unknown) == task.plan(unknown).lower_bound_s


def test_lower_ends_of_everything() -> None:
    """Levels, their ports, combining and what was measured elsewhere."""
    combining = CombineTime(
        op="sum", dtype="float64", nbytes=8, median_s=2e-6, interval_s=(1e-6, 3e-6), repetitions=9
    )
    lowest = profile(
        FAR, provenance=ON_NODES, levels=(NODE,), combining=(combining,)
    ).at_lower_ends()
    (node,) = lowest.levels
    assert [one.t0_s for one in node.points] == [0.9 * one.t0_s for one in NODE.points]
    assert [(one.port_s, one.rank_s) for one in node.port] == [(0.0, None), (4e-5, 1e-12)]
    assert [one.lam for one in lowest.points] == [pytest.approx(0.95 * 8)] * len(FAR)
    assert lowest.combining[0].median_s == 1e-6
    other = profile(provenance=ON_NODES).measurements
    assert profile(other_placements=(other,)).at_lower_ends().other_placements[0] == (
        other.at_lower_ends()
    )
    assert lowest.at_lower_ends() == lowest


def test_a_gain_without_an_explanation_is_doubtful() -> None:
    """What the model predicts of the library's algorithms must explain half of it."""
    made = outcome(4096)
    usual = min(c.predicted_s for c in made.plan.candidates if ALGORITHMS[c.name].usual)
    explained = usual / made.plan.predicted_s
    assert not outcome(4096, gain=1.9 * explained, blocking_gain=0.8).doubtful
    assert outcome(4096, gain=2.2 * explained, blocking_gain=0.8).doubtful
    assert not outcome(4096, gain=0.4, blocking_gain=0.1).doubtful, "the library serves"


def test_the_model_explains_no_gain_of_nonblocking_calls() -> None:
    """Libraries do more in them than send messages; what is impossible is so there, too."""
    assert not outcome(4096, gain=1.2, nonblocking_gain=90.0).doubtful
    made = outcome(4096, gain=1.2, nonblocking_gain=2e3, bound_s=1e-7)
    assert [race.impossible for race in made.races.values()] == [False, True, False]
    assert made.impossible
    assert made.doubtful


def test_a_race_that_the_librarys_other_algorithm_won_can_be_doubtful() -> None:
    """The model has no time for such an algorithm."""
    made = outcome(4096, gain=9.0)
    own = Candidate("broadcast/library:binomial", {}, Fraction(1, 10**6))
    plan = replace(made.plan, choice=own, candidates=(own, *made.plan.candidates))
    assert replace(made, plan=plan).doubtful == made.doubtful
