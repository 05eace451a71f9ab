"""Broadcasts over levels: any algorithm across the leaders of groups, any inside each group.

Level after level, the outermost first.
"""

from fractions import Fraction

from collwise.algorithms.composition import (
    combined_choices,
    parts_of,
    parts_parameter,
    programs,
    register_multilevel,
    time_by_parts,
)
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels
from collwise.schedule.data_movement import ProgramSequence
from collwise.schedule.hierarchy import InTeams, hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


def _build(problem: Problem, settings: Settings) -> Program:
    teams = hierarchy_of(problem)
    parts = parts_of(settings["algorithms"], "broadcast", teams.depth)
    levels = range(teams.depth, 0, -1)
    phases = [InTeams(teams, level, programs(parts[level - 1], problem)) for level in levels]
    return ProgramSequence(phases, problem.ranks)


def _choices(problem: Problem, machine: Levels) -> list[Settings]:
    return [{"algorithms": text} for text in combined_choices(problem, machine, "broadcast")]


def _by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    depth = hierarchy_of(problem).depth
    return time_by_parts(problem, machine, settings["algorithms"], "broadcast", depth)


register_multilevel(
    "broadcast/multilevel",
    "across the leaders of groups, then inside the groups, each by the best algorithm there",
    "the sum of the levels' times, at most",
    _build,
    _choices,
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "algorithms": parts_parameter("algorithms", "broadcast", "binomial | postal_tree(lam=4)")
    },
    segmented=True,
    by_level=_by_level,
)
