"""What a session races first, what that costs by the model, and how far a budget goes.  No MPI."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, zip_longest

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import NothingApplies
from collwise.model.placement import Placement
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS
from collwise.system import formatting
from collwise.tuning.outcomes import Task

RUNS = 120
"""Collectives in a race that decides: all competitors are checked, warmed up and tried once, the
four or so that are left run six times more, and ranks line up before each run."""
LEAST_S = 0.05
"""Seconds that any race takes: requests are made, and bytes compared."""
AGENDA_SHARE = 0.1
"""The share of the budget in which items are planned; beyond it they go by their lower bounds."""


@dataclass(frozen=True)
class Item:
    """A race to be run.

    gain: how many times as fast as the best that libraries have the plan is, by the model; None if
    the model does not know.   cost_s: seconds until the race decides, by the model.   spent_s: what
    a program spends on such calls; 0 if that is not known.
    """

    task: Task
    gain: float | None
    cost_s: float
    spent_s: float = 0.0

    @classmethod
    def of(
        cls,
        task: Task,
        profile: Profile,
        spent_s: float = 0.0,
        placement: Placement | None = None,
        *,
        planned: bool = True,
    ) -> "Item":
        """By the plan on a measured machine.   placement: where the ranks are in its levels.

        planned: False to go by the lower bound, which takes no search; then no gain is known.
        """
        gain, run_s = None, task.least_s(profile, placement)
        with suppress(NothingApplies):
            if planned:
                plan = task.plan(profile, placement=placement)
                usual_s, run_s = _usual(plan), plan.predicted_s
                gain = usual_s / run_s if usual_s and run_s else None
        return cls(task, gain, max(LEAST_S, RUNS * run_s), spent_s)

    @property
    def saving_s(self) -> float:
        """Seconds that the race may save the program, by the model."""
        return self.spent_s * (1 - 1 / self.gain) if self.gain else 0.0


def _usual(plan: Plan) -> float | None:
    """The predicted seconds of the best that libraries have."""
    return next((c.predicted_s for c in plan.candidates if ALGORITHMS[c.name].usual), None)


def most_useful_first(items: Iterable[Item]) -> list[Item]:
    """The order in which to race.

    What a program's calls may save decides, where that is known.  Otherwise collectives take turns,
    each with its sizes in their order.
    """
    items = list(items)
    if any(item.spent_s for item in items):
        return sorted(items, key=lambda item: (-item.saving_s, -item.spent_s))
    by_collective: dict[str, list[Item]] = {}
    for item in items:
        by_collective.setdefault(item.task.problem.collective, []).append(item)
    turns = chain.from_iterable(zip_longest(*by_collective.values()))
    return [item for item in turns if item is not None]


def agenda(
    tasks: Mapping[Task, float],
    profile: Profile,
    placement: Placement | None,
    has_time: Callable[[], bool],
) -> list[Item]:
    """The items of all tasks, the most useful first.

    tasks: with the seconds that a program spends on each.   has_time: whether to go on planning.
    """
    first = most_useful_first(Item(task, None, LEAST_S, spent) for task, spent in tasks.items())
    return most_useful_first(
        Item.of(item.task, profile, item.spent_s, placement, planned=has_time()) for item in first
    )


def covered(items: Sequence[Item], budget_s: float) -> int:
    """How many of the items, in their order, the budget is enough for; the first always."""
    total_s = 0.0
    for count, item in enumerate(items):
        total_s += item.cost_s
        if count and total_s > budget_s:
            return count
    return len(items)


def share_s(items: Sequence[Item], budget_s: float) -> float:
    """The seconds that the first of the items may take, beside the others that the budget covers.

    Each has its part by its cost.
    """
    within = items[: covered(items, budget_s)]
    return budget_s * items[0].cost_s / sum(item.cost_s for item in within)


def share_at_pace(
    items: Sequence[Item], done: Sequence[Item], spent_s: float, left_s: float
) -> float:
    """The seconds that the first of the items may take, where races may cost more than expected.

    done: were raced before, in `spent_s` seconds.   left_s: for all of the items.
    """
    pace = max(1.0, spent_s / sum(item.cost_s for item in done)) if done else 1.0
    return pace * share_s(items, left_s / pace)


def announcement(items: Sequence[Item], budget_s: float) -> str:
    """How many races there are, how long all of them would take, and what the budget covers."""
    races, enough = formatting.count(len(items), "race"), covered(items, budget_s)
    total_s = formatting.time(sum(item.cost_s for item in items), 2)
    covers = "all of them" if enough == len(items) else f"about {enough} of them"
    return (
        f"{races}: until all are decided takes about {total_s} by the model; the {budget_s:.3g} s"
        f" that are left cover {covers}"
    )


def not_raced(tasks: Mapping[Task, float], profile: Profile, ranks_per_node: str) -> list[Task]:
    """The tasks about which the profile has no race of both forms, with the same placement."""
    known = {race.key for race in profile.race_results}
    return [
        task
        for task in tasks
        if any(_key(task, form, ranks_per_node) not in known for form in FORMS)
    ]


def _key(task: Task, form: str, ranks_per_node: str) -> tuple[object, ...]:
    """As `RaceResult.key`."""
    problem = task.problem
    about = problem.collective, form, problem.ranks, problem.nbytes, problem.root
    return *about, len(problem.sources), ranks_per_node
