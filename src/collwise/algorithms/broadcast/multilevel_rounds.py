"""Pieces in rounds that span several levels, each crossing as early as it can.

Where every rank has a port of its own and only latencies differ (hosts of two sites), pieces cross
side by side from many ranks to many, while the root still sends the others.
"""

from collwise.algorithms.composition import parts_of, programs
from collwise.algorithms.level_rounds import register_rounds
from collwise.algorithms.registry import Settings
from collwise.schedule.data_movement import ProgramSequence
from collwise.schedule.hierarchy import InTeams, hierarchy_of
from collwise.schedule.lanes import InTeam
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rounds import DownRounds


def _build(problem: Problem, settings: Settings, across: InTeam, inner: int) -> Program:
    phases: list[Program] = [across]
    parts = parts_of(settings["inside"], "broadcast", inner) if inner else ()
    for level in range(inner, 0, -1):
        phases.append(InTeams(hierarchy_of(problem), level, programs(parts[level - 1], problem)))
    return ProgramSequence(phases, problem.ranks)


register_rounds(
    "broadcast",
    "pieces in rounds that span levels, each crossing early and side by side with others",
    "about k rounds for k pieces, and the way of the last one; simulated",
    DownRounds,
    _build,
)
