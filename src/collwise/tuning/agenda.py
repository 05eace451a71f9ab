"""Orders the tasks of a session, and estimates how long races take.  This module needs no MPI."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, zip_longest

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import NothingApplies
from collwise.measure.race import ALWAYS_RACED
from collwise.model.placement import Placement
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form
from collwise.system import formatting
from collwise.tuning.outcomes import Task

RUNS = 120
"""The number of collectives that a race runs until it decides.

All competitors are checked, warmed up and tried once; the four or so that are then left run six
times more.  The ranks synchronize before each run.
"""
LEAST_S = 0.05
"""The least seconds of a race, for making requests and comparing bytes."""
AGENDA_SHARE = 0.1
"""The share of the budget for planning items; later items have only their lower bounds."""


@dataclass(frozen=True)
class Item:
    """A race to be run.

    gain: predicted time of the best algorithm that libraries have, divided by the plan's; None if
    unknown.   cost_s: predicted seconds until the race decides.   spent_s: seconds that
    a program spends on the task's calls; 0 if unknown.
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
        """The item of a task.   placement: the groups of the ranks at the machine's levels.

        planned: whether to plan the task.  Otherwise the lower bound, which is quick to compute,
        replaces the plan's time, and the gain is unknown.
        """
        gain, run_s = None, task.least_s(profile, placement)
        with suppress(NothingApplies):
            if planned:
                plan = task.plan(profile, placement=placement)
                usual = (c.predicted_s for c in plan.candidates if ALGORITHMS[c.name].usual)
                usual_s, run_s = next(usual, None), plan.predicted_s
                gain = usual_s / run_s if usual_s and run_s else None
        return cls(task, gain, max(LEAST_S, RUNS * run_s), spent_s)

    @property
    def saving_s(self) -> float:
        """Seconds that the race may save the program, by the model."""
        return self.spent_s * (1 - 1 / self.gain) if self.gain else 0.0


def most_useful_first(items: Iterable[Item]) -> list[Item]:
    """The items in the order in which to race them.

    If `spent_s` of any item is known, races that may save most come first.  Otherwise collectives
    take turns; the items of each collective keep their order.
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

    tasks: maps a task to the seconds that a program spends on it.   has_time: a function that says
    whether there is time to plan one more task; without time, tasks have only lower bounds.
    """
    first = most_useful_first(Item(task, None, LEAST_S, spent) for task, spent in tasks.items())
    return most_useful_first(
        Item.of(item.task, profile, item.spent_s, placement, planned=has_time()) for item in first
    )


def covered(items: Sequence[Item], budget_s: float) -> int:
    """How many of the first items the budget covers; at least 1 if there are any."""
    ends_s = list(accumulate(item.cost_s for item in items))
    return min(max(1, bisect_right(ends_s, budget_s)), len(items))


def share_s(
    items: Sequence[Item], budget_s: float, done: Sequence[Item] = (), spent_s: float = 0.0
) -> float:
    """The first item's share of the budget, in seconds; all items that the budget covers share it.

    done: items that were raced before, in `spent_s` seconds.   If `done` took longer than expected,
    `items` are expected to take longer in the same proportion.
    """
    pace = max(1.0, spent_s / sum(item.cost_s for item in done)) if done else 1.0
    within = items[: covered(items, budget_s / pace)]
    return budget_s * items[0].cost_s / sum(item.cost_s for item in within)


def announcement(items: Sequence[Item], budget_s: float) -> str:
    """A text: how many races there are, how long all of them take, how many the budget covers."""
    races, enough = formatting.count(len(items), "race"), covered(items, budget_s)
    total_s = formatting.time(sum(item.cost_s for item in items), 2)
    covers = "all of them" if enough == len(items) else f"about {enough} of them"
    return (
        f"{races}: until all are decided takes about {total_s} by the model; the {budget_s:.3g} s"
        f" that are left cover {covers}"
    )


def not_raced(
    tasks: Mapping[Task, float], profile: Profile, ranks_per_node: str, form: Form
) -> list[Task]:
    """The tasks of which `form`, or one ALWAYS_RACED, has no race here in the profile.

    ranks_per_node: the placement here.
    """
    known = {race.key for race in profile.race_results}

    def is_known(task: Task, form: Form) -> bool:
        problem = task.problem
        about = problem.collective, form, problem.ranks, problem.nbytes, problem.root
        return (*about, len(problem.sources), ranks_per_node) in known

    wanted: set[Form] = {form, *ALWAYS_RACED}
    return [task for task in tasks if not all(is_known(task, one) for one in wanted)]
