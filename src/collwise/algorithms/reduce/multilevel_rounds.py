"""The broadcast in rounds over levels, backwards: pieces cross as late as they can be combined."""

from collwise.algorithms.composition import register_multilevel
from collwise.algorithms.in_rounds import pieces_of
from collwise.algorithms.level_rounds import (
    by_level,
    choices,
    latencies_of,
    members,
    parameters,
    rounds,
)
from collwise.algorithms.reduce.multilevel import Inwards, inwards
from collwise.algorithms.reductions import in_no_order
from collwise.algorithms.registry import Settings
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.lanes import InTeam
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.rounds import UpRounds


def _build(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    teams = hierarchy_of(problem)
    latencies = latencies_of(settings, teams.depth)
    inside = inwards(problem, settings["inside"], teams.depth - len(latencies), in_output=False)
    played = rounds(problem, latencies, settings["segment"])
    up = UpRounds(played, pieces_of(problem, settings["segment"]))
    return Inwards((*inside.phases, InTeam(members(teams, len(latencies)), up)))


register_multilevel(
    "reduce/multilevel_rounds",
    "pieces in rounds that span levels, backwards, each crossing side by side with others",
    "about k rounds for k pieces, and the way of the first one; found by playing it",
    _build,
    choices,
    source=("BarNoyKipnis1994", "Karonis2002"),
    parameters=parameters("reduce"),
    segmented=True,
    order=in_no_order,
    by_level=by_level,
)
