"""Code shared by algorithms for machines with levels: a flat algorithm for each level.

A flat algorithm is one for machines without levels.  A text names the flat algorithm of each level
with its settings, the innermost level first: "binomial | postal_tree(lam=4)".  A team is the ranks
that run a flat algorithm together: at level 1 the ranks of a group, at an outer level the leaders
of groups.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from collwise.algorithms.parts import Configured, part, tried_labels
from collwise.algorithms.reductions import fixed_if_asked
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
"""The most algorithms that `best_parts` returns by default."""


def parts_parameter(name: str, collective: str, example: str) -> Parameter:
    """A parameter whose value names an algorithm for each level, or one for all levels.

    example: an algorithm that the error for an invalid value suggests.
    """
    meaning = f"an algorithm for each level, the innermost first, such as {example}; or one for all"

    def read(value: Any) -> str:
        labels = value.split("|") if isinstance(value, str) else [""]
        if not all(WRITTEN.fullmatch(label) for label in labels):
            raise InvalidArgument(f"the parameter {name}", f"it is {value!r}", f"give {meaning}")
        return " | ".join(part(label, collective).label for label in labels)

    return Parameter(read, meaning)


def parts_of(text: str, collective: str, levels: int) -> Sequence[Configured]:
    """Parse a text into algorithms for `levels` levels, the innermost level first.

    If `text` names one algorithm, all levels use it.  Surplus algorithms are ignored.  Raises
    InvalidArgument for too few algorithms.
    """
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
    """The program in which each team of a level, unless it is a single rank, runs its own program.

    program: maps the size of a team, >= 2, to its program.   first: a program that the first team
    runs instead; None if the first team is no exception.
    If `program` raises an error, the ranks of all teams raise it.
    """
    here = teams.teams[level - 1]
    made = {size: program(size) for size in {*here.sizes.tolist()} if size > 1}

    def task(number: int) -> Task | None:
        size = int(here.sizes[number])
        if size == 1:
            return None
        return Task(made[size] if first is None or number else first)

    return On(here, task, level, seats=None if first else teams)


def in_all_teams(problem: Problem, text: str, collective: str, levels: int) -> list[On]:
    """Programs, one for each of the `levels` innermost levels, the innermost first.

    In each program all teams of one level run the algorithm that `text` names for that level.
    """
    teams = hierarchy_of(problem)

    def phase(level: int, algorithm: Configured) -> On:
        return in_teams(
            teams, level, lambda ranks: algorithm.build(team_problem(problem, collective, ranks))
        )

    parts = parts_of(text, collective, levels) if levels else ()
    return [phase(level, algorithm) for level, algorithm in enumerate(parts, 1)]


def team_problem(problem: Problem, collective: str, ranks: int) -> Problem:
    """The problem of a team of `ranks` ranks, with the vector length of `problem`.

    The order of combining is that of `problem`, or "any" if the collective combines nothing.
    """
    order = problem.order if problem.kind.combines and collective != "broadcast" else "any"
    return Problem(collective, ranks, problem.nbytes, 0, problem.itemsize, order)


def in_order_of_placement(problem: Problem) -> Order:
    """The order in which an algorithm over levels combines: "fixed", "rank" or "same".

    It is "same" without a placement, if the root is not 0, or if a group's ranks are not
    consecutive.  Otherwise it is "rank", or "fixed" if the problem asks for "fixed" and at each
    level but the outermost all teams have equally many members, a power of two.
    """
    known = problem.placement is not None and not problem.root
    if not known or not hierarchy_of(problem).lines_up:
        return "same"
    inner = ({*teams.sizes.tolist()} for teams in hierarchy_of(problem).teams[:-1])
    even = all(len(sizes) == 1 and sizes.pop().bit_count() == 1 for sizes in inner)
    return fixed_if_asked(problem) if even else "rank"


def register_multilevel(
    name: str,
    summary: str,
    time: str,
    build: Callable[[Problem, Settings], Program],
    choices: Callable[[Problem, Levels], Iterable[Settings]],
    **more: Any,
) -> Algorithm:
    """Register an algorithm for machines with levels; plans for other machines do not try it.

    more: other fields of `Algorithm`.
    """

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
    """Labels of the fastest flat algorithms for the problem of a team, the fastest first.

    among: short names to try; all if None, or if the order is "fixed".   most: labels at most.
    Of algorithms that take exactly the same time, only the one with the fewest settings is kept.
    """
    timed = []
    for algorithm in algorithms_for(problem.collective, levels=False):
        skipped = among is not None and algorithm.short_name not in among
        if skipped and problem.order != "fixed":  # which few algorithms keep
            continue
        if not algorithm.keeps_order(problem):
            continue
        for label in tried_labels([algorithm], problem, machine):
            with suppress(BeyondLimits):
                configured = part(label, problem.collective)
                time = algorithm.time_of(problem, machine, dict(configured.settings))
                timed.append((time, label.count("="), label))
    timed.sort()
    distinct: dict[Fraction, str] = {}
    for time, _, label in timed:
        distinct.setdefault(time, label)
    return tuple(distinct.values())[:most]


def best_at_level(
    problem: Problem,
    machine: Levels,
    collective: str,
    level: int,
    among: tuple[str, ...] | None,
    most: int,
) -> tuple[str, ...]:
    """Labels of up to `most` flat algorithms, those fastest for the largest team of a level."""
    team = team_problem(problem, collective, max(hierarchy_of(problem).largest(level), 2))
    return best_parts(team, OneLevel(machine, level), among, most)


def combined_choices(
    problem: Problem, machine: Levels, collective: str, among: tuple[str, ...] | None = None
) -> list[str]:
    """All combinations of the fastest algorithms of each level, with one algorithm for each level.

    A combination is written "label | label | …", the innermost level first.  There are up to
    BEST algorithms for the outermost level, and up to BEST − 1 for each other level.
    among: short names of the algorithms to try; None for all.
    """
    depth = hierarchy_of(problem).depth
    best = [
        best_at_level(problem, machine, collective, level, among, BEST - (level < depth))
        for level in range(1, depth + 1)
    ]
    return [" | ".join(labels) for labels in product(*best)]
