"""The broadcast in rounds over levels, backwards: pieces cross as late as they can be combined."""

from collwise.algorithms.level_rounds import register_rounds
from collwise.algorithms.reduce.multilevel import Inwards, inwards
from collwise.algorithms.reductions import in_no_order
from collwise.algorithms.registry import Settings
from collwise.schedule.lanes import InTeam
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.rounds import UpRounds


def _build(problem: Problem, settings: Settings, across: InTeam, inner: int) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    inside = inwards(problem, settings["inside"], inner, in_output=False)
    return Inwards((*inside.phases, across))


register_rounds(
    "reduce",
    "pieces in rounds that span levels, backwards, each crossing side by side with others",
    "about k rounds for k pieces, and the way of the first one; simulated",
    UpRounds,
    _build,
    order=in_no_order,
)
