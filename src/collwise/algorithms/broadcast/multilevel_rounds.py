"""Pieces in rounds that span several levels, each crossing as early as it can.

Where every rank has a port of its own and only latencies differ (hosts of two sites), pieces cross
side by side from many ranks to many, while the root still sends the others.
"""

from collwise.algorithms.composition import parts_of, programs, register_multilevel
from collwise.algorithms.in_rounds import pieces_of
from collwise.algorithms.level_rounds import (
    by_level,
    choices,
    latencies_of,
    members,
    parameters,
    rounds,
)
from collwise.algorithms.registry import Settings
from collwise.schedule.data_movement import ProgramSequence
from collwise.schedule.hierarchy import InTeams, hierarchy_of
from collwise.schedule.lanes import InTeam
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rounds import DownRounds


def _build(problem: Problem, settings: Settings) -> Program:
    teams = hierarchy_of(problem)
    latencies = latencies_of(settings, teams.depth)
    played = rounds(problem, latencies, settings["segment"])
    down = DownRounds(played, pieces_of(problem, settings["segment"]))
    phases: list[Program] = [InTeam(members(teams, len(latencies)), down)]
    inner = teams.depth - len(latencies)
    parts = parts_of(settings["inside"], "broadcast", inner) if inner else ()
    for level in range(inner, 0, -1):
        phases.append(InTeams(teams, level, programs(parts[level - 1], problem)))
    return ProgramSequence(phases, problem.ranks)


register_multilevel(
    "broadcast/multilevel_rounds",
    "pieces in rounds that span levels, each crossing early and side by side with others",
    "about k rounds for k pieces, and the way of the last one; found by playing it",
    _build,
    choices,
    source=("BarNoyKipnis1994", "Karonis2002"),
    parameters=parameters("broadcast"),
    segmented=True,
    by_level=by_level,
)
