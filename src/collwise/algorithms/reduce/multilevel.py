"""Reduces over levels: inside every group to its leader, then across the leaders.

The time-reverse of the broadcast over levels: any algorithm for each level.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.broadcast.multilevel_pipelined import joined_tree
from collwise.algorithms.composition import (
    combined_choices,
    in_order_of_placement,
    parts_of,
    parts_parameter,
    programs,
    register_multilevel,
    time_by_parts,
)
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels
from collwise.schedule.hierarchy import InTeams, hierarchy_of, moved
from collwise.schedule.operations import Operation, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank, UpTree
from collwise.schedule.rows import Class


@dataclass(frozen=True)
class Inwards(Program):
    """Level after level, the innermost first; every leader goes on with what its team has combined.

    phases: the reduce in the teams of each level.   in_output: whether the last one's result goes
    to the output of rank 0.
    """

    phases: tuple[Program, ...]
    in_output: bool = True

    def classes(self) -> list[Class] | None:  # noqa: D102
        teams = {phase.teams if isinstance(phase, InTeams) else None for phase in self.phases}
        only = teams.pop() if len(teams) == 1 else None
        return None if only is None else only.by_seats()

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return self.with_value(rank)[0]

    def with_value(self, rank: int) -> tuple[list[Operation], int, int]:
        """The list, the slot of the rank's value in the end, and the next unused scratch."""
        operations: list[Operation] = []
        value, unused = int(Slot.INPUT), 0
        for phase in self.phases:
            if not (own := phase.operations(rank)):
                continue
            final = self.in_output and phase is self.phases[-1] and not rank
            result = int(Slot.OUTPUT) if final else scratch(unused)
            own, unused = moved(own, value, result, unused + (not final))
            operations += own
            value = result
        return operations, value, unused


def inwards(problem: Problem, text: str, levels: int, *, in_output: bool) -> Inwards:
    """The reduce to the leaders of the groups of so many levels, by the algorithms in `text`."""
    teams = hierarchy_of(problem)
    parts = parts_of(text, "reduce", levels) if levels else ()
    phases = [InTeams(teams, n, programs(one, problem)) for n, one in enumerate(parts, 1)]
    return Inwards(tuple(phases), in_output)


def _build(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    depth, text = hierarchy_of(problem).depth, settings["algorithms"]
    if all(one.algorithm.short_name in TREES for one in parts_of(text, "reduce", depth)):
        return UpTree(joined_tree(problem, text, TREES), problem.nbytes)
    return inwards(problem, text, depth, in_output=True)


def _choices(problem: Problem, machine: Levels) -> Iterable[Settings]:
    return [{"algorithms": text} for text in combined_choices(problem, machine, "reduce", SHORT)]


def _by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    depth = hierarchy_of(problem).depth
    return time_by_parts(problem, machine, settings["algorithms"], "reduce", depth)


SHORT = ("binomial", "flat", "postal_tree", "halving_gather")
"""What is tried inside a level; segments are `multilevel_pipelined`'s."""
TREES = ("chain", "binomial", "postal_tree", "knomial", "alpha", "alpha_table")
"""Trees whose subtrees are runs of ranks, so that what comes in is the right operand."""

register_multilevel(
    "reduce/multilevel",
    "inside the groups to their leaders, then across these, each by the best algorithm there",
    "the sum of the levels' times, at most",
    _build,
    _choices,
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "algorithms": parts_parameter("algorithms", "reduce", "binomial | postal_tree(lam=4)")
    },
    segmented=True,
    order=in_order_of_placement,
    by_level=_by_level,
)
