"""Allreduces in lanes: while one piece travels between nodes, nodes reduce the next piece.

A rank may send a message before it receives messages that were sent to it earlier.  So every rank
has to post all its receives at the start.
"""

from dataclasses import replace

from collwise.algorithms.circulant_pieces import PARAMETERS
from collwise.algorithms.levels import lanes
from collwise.algorithms.levels.composition import register_multilevel
from collwise.algorithms.levels.rounds_over_levels import LATENCIES, latencies_of, rounds_under_way
from collwise.algorithms.registry import Settings
from collwise.errors import BeyondLimits
from collwise.model.levels import Levels
from collwise.model.limits import LANES_PLAYED, LANES_TRIED, ROUNDS_UNDER_WAY
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.interleaved import Interleaved, tasks_of_pieces
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program

PIECES = (2, 3, 4, 6)
"""The numbers of pieces that plans try."""


def _messages(problem: Problem, pieces: int) -> int:
    """The approximate number of messages that all ranks send for `pieces` pieces."""
    return 2 * pieces * problem.ranks * hierarchy_of(problem).largest(1)


def _longest_piece(problem: Problem, pieces: int) -> Problem:
    items = -(-problem.nbytes // (problem.itemsize * pieces))
    return replace(problem, nbytes=items * problem.itemsize)


def _build(problem: Problem, settings: Settings) -> Program:
    teams = hierarchy_of(problem)
    given = latencies_of(settings, teams.depth)
    latencies = (1,) * (teams.depth - len(given)) + given  # inner levels may be left out
    count = min(settings["pieces"], problem.nbytes // problem.itemsize)
    if count < 2 or problem.ranks == 1:
        return lanes.allreduce(problem, settings)
    if (messages := _messages(problem, count)) > LANES_PLAYED:
        asked = f"an allreduce of {problem.ranks:,} ranks in lanes, in pieces"
        seen = f"about {messages:,} messages would be played"
        raise BeyondLimits(asked, seen, "choose fewer pieces, or another algorithm")
    tasks = tasks_of_pieces(problem, count, lambda piece: lanes.allreduce(piece, settings))
    return Interleaved(tasks, latencies, teams.placement)


def _choices(problem: Problem, machine: Levels) -> list[Settings]:
    """The settings to try: the best of an allreduce in lanes, with each useful number of pieces.

    Pieces save no time if a message at the outermost level arrives within one round.
    """
    best, made = lanes.choices(problem, machine)[:1], list[Settings]()
    for count in PIECES if best else ():
        if _messages(problem, count) > LANES_TRIED or count * problem.itemsize > problem.nbytes:
            break
        nbytes = lanes.Lanes(_longest_piece(problem, count)).parts[0].length
        gap = machine.at(1, nbytes).gap
        levels = range(1, len(machine.by_level) + 1)
        costs = [machine.at(level, nbytes).latency for level in levels]
        rounds = [
            min(rounds_under_way(cost, gap), ROUNDS_UNDER_WAY) if gap else 1 for cost in costs
        ]
        if rounds[-1] > 1:
            latencies = " ".join(map(str, rounds))
            made.append({**best[0], "pieces": count, "latencies": latencies})
    return made


register_multilevel(
    "allreduce/multilane_pieces",
    "multilane in pieces: while one is between nodes, the next is reduced and scattered inside",
    "(k − 1)·(the time for which a piece keeps a port busy) + the time of one piece, for k pieces",
    _build,
    _choices,
    source=("Traeff2020",),
    parameters={
        **lanes.parameters("allreduce", "recursive_doubling"),
        "pieces": PARAMETERS["pieces"],
        "latencies": LATENCIES,
    },
    segmented=True,
    order=lanes.order,
)
