"""What algorithms for machines with levels share: an algorithm for each level, and their choice.

They take their parts from the algorithms for machines without levels.  The parts are written with
their settings, the innermost level first: "binomial | postal_tree(lam=4)".
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from collwise.algorithms.parts import Configured, part, tried_labels
from collwise.algorithms.registry import (
    WRITTEN,
    Algorithm,
    Parameter,
    Settings,
    algorithms_for,
    register,
)
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.schedule.combinators import On, Task
from collwise.schedule.hierarchy import Hierarchy, hierarchy_of
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program

BEST = 3
"""The number of algorithms of each level that are combined with those of the other levels."""


def parts_parameter(name: str, collective: str, example: str) -> Parameter:
    """A parameter that names an algorithm of a collective for each level, or one for all."""
    meaning = f"an algorithm for each level, the innermost first, such as {example}; or one for all"

    def read(value: Any) -> str:
        labels = value.split("|") if isinstance(value, str) else [""]
        if not all(WRITTEN.fullmatch(label) for label in labels):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return " | ".join(part(label, collective).label for label in labels)

    return Parameter(read, meaning)


def parts_of(text: str, collective: str, levels: int) -> Sequence[Configured]:
    """The algorithm of each of so many levels.  Raises InvalidArgument for another number."""
    parts = [part(label, collective) for label in text.split("|")]
    if len(parts) == 1:
        parts *= levels
    if len(parts) < levels:
        seen = f"{len(parts)} algorithms for {levels} levels"
        raise InvalidArgument(f"{collective} by {text}", seen, "give one for each, or one for all")
    return parts[:levels]


def in_teams(
    teams: Hierarchy, level: int, program: Callable[[int], Program], first: Program | None = None
) -> On:
    """A program in every team of a level.

    program: by the number of members, for two and more.   first: what the first team runs instead.
    """
    own, made = teams.teams[level - 1], dict[int, Program]()

    def task(number: int) -> Task | None:
        size = int(own.sizes[number])
        if size == 1:
            return None
        if first is not None and not number:
            return Task(first)
        if size not in made:
            made[size] = program(size)
        return Task(made[size])

    return On(own, task, level, seats=None if first else teams)


def in_all_teams(problem: Problem, text: str, collective: str, levels: int) -> list[On]:
    """An algorithm of a collective in the teams of each of so many levels, the innermost first."""
    teams = hierarchy_of(problem)

    def phase(level: int, one: Configured) -> On:
        return in_teams(
            teams, level, lambda ranks: one.build(team_problem(problem, collective, ranks))
        )

    parts = parts_of(text, collective, levels) if levels else ()
    return [phase(level, one) for level, one in enumerate(parts, 1)]


def team_problem(problem: Problem, collective: str, ranks: int) -> Problem:
    """A problem of the same vector, in a team; in the same order if both combine."""
    order = problem.order if problem.kind.combines and collective != "broadcast" else "any"
    return Problem(collective, ranks, problem.nbytes, 0, problem.itemsize, order)


@lru_cache(maxsize=4096)
def part_time(label: str, problem: Problem, law: OneLevel) -> Fraction:
    """The time of an algorithm in a team."""
    one = part(label, problem.collective)
    return one.algorithm.time_of(problem, law, dict(one.settings))


def in_order_of_placement(problem: Problem) -> Order:
    """The order of the ranks if every group is a run of ranks, led by its first one.

    Without a placement that is not known.
    """
    known = problem.placement is not None and not problem.root
    return "rank" if known and hierarchy_of(problem).lines_up else "same"


def register_multilevel(
    name: str,
    summary: str,
    time: str,
    build: Callable[[Problem, Settings], Program],
    choices: Callable[[Problem, Levels], Iterable[Settings]],
    **more: Any,
) -> Algorithm:
    """Register an algorithm for machines with levels; on others nobody tries it."""

    def tried(problem: Problem, machine: Machine) -> Iterable[Settings]:
        if problem.placement is None or not isinstance(machine, Levels) or not problem.nbytes:
            return []
        return choices(problem, machine)

    return register(
        Algorithm(
            name=name,
            summary=summary,
            time=time,
            build=build,
            choices=tried,
            levels=True,
            **more,
        )
    )


@lru_cache(maxsize=1024)
def best_parts(
    problem: Problem, machine: OneLevel, among: tuple[str, ...] | None, most: int = BEST
) -> tuple[str, ...]:
    """The best algorithms of a team's problem by their times, the fastest first.

    among: their short names; None for all.
    """
    timed = []
    for algorithm in algorithms_for(problem.collective, levels=False):
        if among is not None and algorithm.short_name not in among:
            continue
        if not algorithm.keeps_order(problem):
            continue
        for label in tried_labels([algorithm], problem, machine):
            with suppress(BeyondLimits):
                timed.append((part_time(label, problem, machine), label.count("="), label))
    timed.sort()
    distinct: dict[Fraction, str] = {}
    for time, _, label in timed:
        distinct.setdefault(time, label)
    return tuple(distinct.values())[:most]


def combined_choices(
    problem: Problem,
    machine: Levels,
    collective: str,
    among: tuple[str, ...] | None = None,
    most: int = BEST,
) -> list[str]:
    """The best algorithms of every level, each with each.  The largest team counts."""
    teams: Hierarchy = hierarchy_of(problem)
    every = [
        best_parts(
            team_problem(problem, collective, max(teams.largest(level), 2)),
            OneLevel(machine, level),
            among,
            most if level == teams.depth else max(most - 1, 1),
        )
        for level in range(1, teams.depth + 1)
    ]
    return [" | ".join(labels) for labels in product(*every)]
