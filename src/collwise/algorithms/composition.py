"""What algorithms for machines with levels share: an algorithm for each level, and their choice.

They take their parts from the algorithms for machines without levels.  The parts are written with
their settings, the innermost level first: "binomial | postal_tree(lam=4)".
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from collwise.algorithms.registry import (
    WRITTEN,
    Algorithm,
    Parameter,
    Settings,
    algorithms_for,
    parse_label,
    register,
)
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.schedule.hierarchy import Hierarchy, hierarchy_of
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program

BEST = 3
"""The number of algorithms of each level that are combined with those of the other levels."""


class LevelAlgorithm(NamedTuple):
    """An algorithm with its settings."""

    algorithm: Algorithm
    settings: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """As it is written."""
        values = ", ".join(f"{name}={value}" for name, value in self.settings)
        return self.algorithm.short_name + (f"({values})" if values else "")

    @classmethod
    def of(cls, algorithm: Algorithm, settings: Settings) -> "LevelAlgorithm":
        """With these settings, read and checked."""
        return cls(algorithm, tuple(algorithm.settings(settings).items()))


@lru_cache(maxsize=4096)
def part(label: str, collective: str, *, levels: bool = False) -> LevelAlgorithm:
    """An algorithm as it is written, such as "chain_segmented(segment=4096)".

    levels: it may be one for machines with levels.   Raises UnknownName or InvalidArgument.
    """
    algorithm, values = parse_label(label, collective)
    if algorithm.levels and not levels:
        remedy = "name one that knows no levels"
        raise InvalidArgument(f"{label} in a team", "it needs teams of its own", remedy)
    return LevelAlgorithm.of(algorithm, values)


def one_part(name: str, collective: str, example: str) -> Parameter:
    """A parameter that names an algorithm of a collective, for levels or not."""
    meaning = f"an algorithm of {collective}, such as {example}"

    def read(value: Any) -> str:
        if not isinstance(value, str) or not WRITTEN.fullmatch(value):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return part(value, collective, levels=True).label

    return Parameter(read, meaning)


def parts_parameter(name: str, collective: str, example: str) -> Parameter:
    """A parameter that names an algorithm of a collective for each level, or one for all."""
    meaning = f"an algorithm for each level, the innermost first, such as {example}; or one for all"

    def read(value: Any) -> str:
        labels = value.split("|") if isinstance(value, str) else [""]
        if not all(WRITTEN.fullmatch(label) for label in labels):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return " | ".join(part(label, collective).label for label in labels)

    return Parameter(read, meaning)


def parts_of(text: str, collective: str, levels: int) -> Sequence[LevelAlgorithm]:
    """The algorithm of each of so many levels.  Raises InvalidArgument for another number."""
    parts = [part(label, collective) for label in text.split("|")]
    if len(parts) == 1:
        parts *= levels
    if len(parts) < levels:
        seen = f"{len(parts)} algorithms for {levels} levels"
        raise InvalidArgument(f"{collective} by {text}", seen, "give one for each, or one for all")
    return parts[:levels]


def programs(one: LevelAlgorithm, problem: Problem) -> Callable[[int], Program]:
    """The program of a part, by the number of ranks in a team, for the problem's bytes."""
    made: dict[int, Program] = {}

    def program(ranks: int) -> Program:
        if ranks not in made:
            inner = team_problem(problem, one.algorithm.collective, ranks)
            if problem.kind.combines and one.algorithm.kind.combines:
                check_order(one.algorithm, inner)
            made[ranks] = one.algorithm.build(inner, dict(one.settings))
        return made[ranks]

    return program


def team_problem(problem: Problem, collective: str, ranks: int) -> Problem:
    """A problem of the same vector, in a team; in the same order if both combine."""
    order = problem.order if problem.kind.combines and collective != "broadcast" else "any"
    return Problem(collective, ranks, problem.nbytes, 0, problem.itemsize, order)


def time_by_parts(
    problem: Problem, machine: Levels, text: str, collective: str, levels: int
) -> Fraction:
    """The sum of the times of the largest team's program at each of so many levels."""
    parts = parts_of(text, collective, levels) if levels else ()
    times = (team_time(problem, machine, one, level) for level, one in enumerate(parts, 1))
    return sum(times, Fraction(0))


def team_time(problem: Problem, machine: Levels, one: LevelAlgorithm, level: int) -> Fraction:
    """The time of an algorithm in the largest team of a level."""
    largest = max(hierarchy_of(problem).largest(level), 2)
    inner = team_problem(problem, one.algorithm.collective, largest)
    return part_time(one.label, inner, OneLevel(machine, level))


@lru_cache(maxsize=4096)
def part_time(label: str, problem: Problem, law: OneLevel) -> Fraction:
    """The time of an algorithm in a team."""
    one = part(label, problem.collective)
    return one.algorithm.time_of(problem, law, dict(one.settings))


def check_order(algorithm: Algorithm, problem: Problem) -> None:
    """Raise InvalidArgument if it combines in a weaker order than is needed."""
    if not algorithm.keeps_order(problem):
        raise InvalidArgument(
            f"{algorithm.name} as a part, in the order {problem.order!r}",
            f"it combines in the order {algorithm.order(problem)!r}",
            "choose an algorithm that keeps the order, or ask for another order",
        )


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


def tried_labels(among: Iterable[Algorithm], problem: Problem, machine: Machine) -> list[str]:
    """Algorithms with the settings that are worth a try, as they are written."""
    labels = []
    for algorithm in among:
        with suppress(BeyondLimits):
            choices = algorithm.choices(problem, machine)
            labels += [LevelAlgorithm.of(algorithm, settings).label for settings in choices]
    return labels


@lru_cache(maxsize=1024)
def best_parts(
    problem: Problem, machine: OneLevel, among: tuple[str, ...] | None, most: int = BEST
) -> tuple[str, ...]:
    """The best algorithms of a team's problem by their closed forms, the fastest first.

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
