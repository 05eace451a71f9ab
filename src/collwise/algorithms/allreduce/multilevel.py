"""Allreduces over levels: reduce inside to the leaders, combine across them, broadcast inside."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.composition import (
    best_parts,
    in_order_of_placement,
    part,
    parts_of,
    parts_parameter,
    programs,
    register_multilevel,
    team_problem,
    team_time,
    time_by_parts,
)
from collwise.algorithms.reduce.multilevel import SHORT, Inwards, inwards
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels, OneLevel
from collwise.schedule.hierarchy import InTeams, hierarchy_of, moved
from collwise.schedule.operations import Operation, Slot
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.rows import Class


@dataclass(frozen=True)
class Across(Program):
    """Inwards, across the outermost level, and outwards again."""

    inside: Inwards
    across: InTeams
    outwards: tuple[InTeams, ...]

    def classes(self) -> list[Class]:  # noqa: D102
        return self.across.teams.by_seats()

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations, value, unused = self.inside.with_value(rank)
        operations += moved(self.across.operations(rank), value, Slot.OUTPUT, unused)[0]
        return operations + [op for phase in self.outwards for op in phase.operations(rank)]


def _build(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    teams = hierarchy_of(problem)
    inner = range(teams.depth - 1, 0, -1)
    across = programs(part(settings["across"], "allreduce"), problem)
    parts = parts_of(settings["broadcasts"], "broadcast", max(teams.depth - 1, 1))
    return Across(
        inwards(problem, settings["reduces"], teams.depth - 1, in_output=False),
        InTeams(teams, teams.depth, across),
        tuple(InTeams(teams, level, programs(parts[level - 1], problem)) for level in inner),
    )


def _choices(problem: Problem, machine: Levels) -> Iterable[Settings]:
    """The best few across, and what is best inside."""
    teams = hierarchy_of(problem)
    sizes = [(level, max(teams.largest(level), 2)) for level in range(1, teams.depth + 1)]
    best = {
        collective: [
            best_parts(
                team_problem(problem, collective, size), OneLevel(machine, level), among, most
            )
            for level, size in levels
        ]
        for collective, levels, among, most in (
            ("reduce", sizes[:-1], SHORT, 1),
            ("allreduce", sizes[-1:], None, 3),
            ("broadcast", sizes[:-1], None, 1),
        )
    }
    return [
        {
            "reduces": " | ".join(reduces),
            "across": across,
            "broadcasts": " | ".join(outwards),
        }
        for reduces, outwards in [
            ([p[0] for p in best["reduce"]], [p[0] for p in best["broadcast"]])
        ]
        for across in best["allreduce"][0]
        if reduces
    ]


def _by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    depth = hierarchy_of(problem).depth
    return (
        time_by_parts(problem, machine, settings["reduces"], "reduce", depth - 1)
        + team_time(problem, machine, part(settings["across"], "allreduce"), depth)
        + time_by_parts(problem, machine, settings["broadcasts"], "broadcast", depth - 1)
    )


register_multilevel(
    "allreduce/multilevel",
    "reduce inside the groups, allreduce across their leaders, broadcast inside",
    "the sum of the levels' times, at most",
    _build,
    _choices,
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "reduces": parts_parameter("reduces", "reduce", "binomial"),
        "across": parts_parameter("across", "allreduce", "recursive_doubling"),
        "broadcasts": parts_parameter("broadcasts", "broadcast", "binomial"),
    },
    segmented=True,
    by_level=_by_level,
    order=in_order_of_placement,
)
