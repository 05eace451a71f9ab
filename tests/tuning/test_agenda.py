"""What is raced first, and what a budget covers."""

import msgspec
import pytest

from collwise.algorithms.registry import ALGORITHMS
from collwise.measure.race import ALWAYS_RACED
from collwise.planner.choose import problem_for
from collwise.profiles.records import FORMS
from collwise.schedule.collectives import COLLECTIVES
from collwise.tuning.agenda import (
    LEAST_S,
    RUNS,
    Item,
    agenda,
    announcement,
    covered,
    most_useful_first,
    not_raced,
    share_s,
)
from collwise.tuning.outcomes import Task
from tests.profiles.example import SIZES, point, profile
from tests.tuning.examples import PROFILE, outcome, session

SLOW = profile(tuple(point(n, "nonblocking", 8.0, t0_s=(n + 100) / 1e6) for n in SIZES))


def task(collective: str = "broadcast", nbytes: int = 8) -> Task:
    sources = [0] if COLLECTIVES[collective].has_sources else None
    return Task(problem_for(collective, ranks=5, nbytes=nbytes, sources=sources)[0])


def items(*costs_s: float) -> list[Item]:
    return [Item(task(nbytes=8 * n), None, cost_s) for n, cost_s in enumerate(costs_s, 1)]


def test_an_item_knows_what_the_model_says() -> None:
    asked = task(nbytes=65536)
    plan = asked.plan(PROFILE)
    usual = min(c.predicted_s for c in plan.candidates if ALGORITHMS[c.name].usual)
    item = Item.of(asked, PROFILE, 10.0)
    assert item.gain == usual / plan.predicted_s >= 1
    assert item.cost_s == max(LEAST_S, RUNS * plan.predicted_s)
    assert item.saving_s == pytest.approx(10 * (1 - plan.predicted_s / usual))
    assert Item.of(asked, PROFILE).saving_s == Item(asked, None, 1.0, 9.0).saving_s == 0


def test_what_is_not_planned_goes_by_its_lower_bound() -> None:
    asked = task("allreduce", 1 << 20)
    rough, planned = (Item.of(asked, SLOW, planned=planned) for planned in (False, True))
    assert rough.gain is None
    bound_s = asked.least_s(SLOW)
    assert LEAST_S < rough.cost_s == RUNS * bound_s <= planned.cost_s


def test_an_agenda_plans_in_its_order_while_there_is_time() -> None:
    tasks = {task(name, n): 0.0 for name in ("broadcast", "reduce") for n in (8, 512)}
    time = iter((True, True, False, False))
    found = agenda(tasks, PROFILE, None, lambda: next(time))
    assert [(i.task.problem.collective, i.task.problem.nbytes) for i in found] == [
        ("broadcast", 8), ("reduce", 8), ("broadcast", 512), ("reduce", 512)
    ]  # fmt: skip
    assert [item.gain is not None for item in found] == [True, True, False, False]


def test_collectives_take_turns() -> None:
    """So a short budget decides something about each of them."""
    sizes = {"broadcast": (8, 512, 4096), "reduce": (8,), "allreduce": (8, 512)}
    planned = [Item(task(name, n), None, 1.0) for name, some in sizes.items() for n in some]
    told = [(i.task.problem.collective, i.task.problem.nbytes) for i in most_useful_first(planned)]
    assert told == [
        ("broadcast", 8), ("reduce", 8), ("allreduce", 8),
        ("broadcast", 512), ("allreduce", 512), ("broadcast", 4096),
    ]  # fmt: skip
    assert most_useful_first([]) == []


def test_what_saves_a_program_most_comes_first() -> None:
    """Not what it spends most on: there may be nothing to gain."""
    spent = [(100.0, 1.0), (10.0, 2.0), (40.0, 1.5), (5.0, None), (6.0, 1.0)]
    planned = [
        Item(task(nbytes=8 * n), gain, 1.0, spent_s) for n, (spent_s, gain) in enumerate(spent, 1)
    ]
    assert [item.spent_s for item in most_useful_first(planned)] == [40, 10, 100, 6, 5]


def test_what_a_budget_covers() -> None:
    for budget_s, count in ((0, 1), (1, 1), (2.9, 1), (3, 2), (6, 3), (99, 3)):
        assert covered(items(1, 2, 3), budget_s) == count
    assert covered(items(9), 1) == 1


def test_a_race_has_its_share_of_what_is_covered() -> None:
    """What the budget does not cover takes nothing away from what it does."""
    assert share_s(items(1, 2, 3), 12.0) == 2
    assert share_s(items(1, 2, 300), 12.0) == 4
    assert share_s(items(9, 1), 3.0) == 3
    assert sum(share_s([one], 1.0) for one in items(1, 1)) == 2


def test_races_that_take_longer_than_expected() -> None:
    """The rest is expected to take as much longer: fewer are covered, and they have more time."""
    rest = items(1, 1, 1, 1)
    assert share_s(rest, 8.0) == 2
    assert share_s(rest, 8.0, items(2), 1.0) == 2
    assert share_s(rest, 8.0, items(2), 8.0) == 4
    assert share_s(rest, 8.0, items(2), 16.0) == 8


def test_the_announcement() -> None:
    assert announcement(items(10, 20), 60) == (
        "2 races: until all are decided takes about 30 s by the model; the 60 s that are left"
        " cover all of them"
    )
    assert announcement(items(10, 20, 60), 31.2345).endswith(
        "takes about 90 s by the model; the 31.2 s that are left cover about 2 of them"
    )


def test_what_a_profile_knows_is_not_raced_again() -> None:
    made = outcome(4096)
    known = session(made).profile
    asked = {made.task: 0.0, outcome(8).task: 1.0}
    assert not_raced(asked, known, "", "blocking") == [outcome(8).task]
    assert not_raced(asked, known, "2x8", "blocking") == [*asked]
    sources = outcome(40, sources=(0, 2))
    assert not_raced({sources.task: 0.0}, session(sources).profile, "", "blocking") == []


def test_what_there_was_no_time_for_is_no_reason_to_race_again() -> None:
    made = outcome(4096, nonblocking_gain=2.0)
    known = session(made).profile
    every = {race.form: race for race in known.race_results}
    assert every.keys() == {*FORMS}
    for form in FORMS:
        left = msgspec.structs.replace(
            known, race_results=tuple(race for race in every.values() if race.form != form)
        )
        again = not_raced({made.task: 0.0}, left, "", "blocking")
        assert again == [made.task] * (form in ALWAYS_RACED), form
        assert not_raced({made.task: 0.0}, left, "", form) == [made.task]
