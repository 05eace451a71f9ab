"""Any allreduce in pieces of the vector, side by side: one piece crosses while others go on inside.

In lanes, of which each crosses with its own part, a long vector takes little more than its ports
are busy, however long the way between the groups is.
"""

from collections.abc import Iterator
from dataclasses import replace

from collwise.algorithms import in_lanes
from collwise.algorithms.composition import (
    check_order,
    one_part,
    part,
    register_multilevel,
    simulated,
)
from collwise.algorithms.level_rounds import LATENCIES, latencies_of
from collwise.algorithms.registry import Settings, integer
from collwise.model.levels import Levels
from collwise.schedule.data_movement import pieces
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.lanes import InTeam
from collwise.schedule.operations import Block
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.side_by_side import SideBySide

PIECES = (2, 3, 4, 6, 8)
"""Numbers of pieces that are worth a try."""
MAX_RANKS = 64
"""More are not tried, since all of them are played."""


def _cut(problem: Problem, number: int) -> list[Block]:
    items = -(-problem.nbytes // (problem.itemsize * number))
    return pieces(problem.nbytes, items * problem.itemsize or None)


def _build(problem: Problem, settings: Settings) -> Program:
    one, teams = part(settings["algorithm"], "allreduce", levels=True), hierarchy_of(problem)
    check_order(one.algorithm, replace(problem, order="same"))
    if problem.ranks == 1 or not problem.nbytes:
        return SingleRank(problem)
    everybody = tuple(range(problem.ranks))
    parts = tuple(
        InTeam(
            everybody,
            one.algorithm.build(replace(problem, nbytes=piece.length), dict(one.settings)),
            piece.offset,
        )
        for piece in _cut(problem, settings["pieces"])
    )
    depth = teams.placement.depth
    latencies = latencies_of(settings, depth)
    latencies = latencies[:1] * (depth - len(latencies)) + latencies
    return SideBySide(parts, teams.placement, latencies)


def _choices(problem: Problem, machine: Levels) -> Iterator[Settings]:
    """In lanes, with what is best for a piece."""
    if problem.ranks > MAX_RANKS:
        return
    for number in PIECES:
        piece = replace(problem, nbytes=_cut(problem, number)[0].length)
        nbytes = in_lanes.lanes_of(piece).parts[0].length
        travel = []
        for level in range(1, len(machine.by_level) + 1):
            gap, latency = machine.at(level, nbytes)
            travel.append(max(round(nbytes * (latency - gap) / gap), 1) if gap else 1)
        for one in in_lanes.choices(piece, machine)[:1]:
            inside = f"multilane(across={one['across']}, gather={one['gather']})"
            yield {
                "algorithm": inside,
                "pieces": number,
                "latencies": " ".join(map(str, travel)),
            }


register_multilevel(
    "allreduce/multilevel_pieces",
    "another allreduce in pieces, side by side: one crosses while others go on inside",
    "little more than the ports are busy; found by playing it",
    _build,
    _choices,
    source=("Traeff2020",),
    parameters={
        "algorithm": one_part("algorithm", "allreduce", "multilane(across=ring, gather=bruck)"),
        "pieces": integer("pieces", 1, "the pieces of the vector, an integer of at least 1"),
        "latencies": LATENCIES,
    },
    segmented=True,
    order=lambda problem: "same",
    by_level=simulated(_build),
)
