"""Allgathervs of long contributions in pieces: all sources broadcast at once, in rounds.

Contributions are cut into k pieces; most messages carry one of almost every source, about a k-th
of all data.  So contributions may differ in length.  Through a circulant graph the broadcasts take
k − 1 + ⌈log2 p⌉ rounds [Traeff2022].  In rounds made for the latency λ they take little more than
k − 1 + T_λ(p), where a single piece takes T_λ(p).
"""

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from typing import Any

from collwise.algorithms.allgatherv.census import LATENCY, census_time
from collwise.algorithms.registry import (
    Algorithm,
    Parameter,
    Rough,
    Settings,
    integer,
    register,
)
from collwise.model.limits import MOST_PIECES, ROUNDS_PLAYED, SEARCHED_RANKS, TABLED_ROUNDS
from collwise.model.machine import Machine
from collwise.schedule.all_rounds import AllRounds
from collwise.schedule.circulant import Circulant
from collwise.schedule.postal_rounds import PostalRounds
from collwise.schedule.problem import Problem
from collwise.schedule.rounds import highest

PIECES = integer("pieces", 1, "the pieces of a contribution, an integer of at least 1")


def _program(problem: Problem, settings: Settings) -> AllRounds:
    ranks, pieces, latency = problem.ranks, settings["pieces"], settings.get("latency")
    rounds = PostalRounds(ranks, pieces, latency) if latency else Circulant(ranks, pieces, 1)
    return AllRounds(problem, rounds)


def _rough_time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    """Rough seconds that the program takes if all ranks contribute equally.

    The time is that of a census of the first pieces, plus one round for each further piece.
    """
    ranks, count, latency = problem.ranks, int(settings["pieces"]), int(settings.get("latency", 1))
    piece = -(-problem.nbytes // (ranks * count))
    cost = machine.message(piece * (ranks - 1))
    later = (count - 1) * max(cost.gap, cost.latency / latency)
    return census_time(ranks, piece, latency, machine) + later


def _choices(problem: Problem, machine: Machine, *, latencies: bool) -> Iterable[Rough]:
    """The settings to compare, with 1, 2, 3, 4, 6, 8, 12, … pieces.

    latencies: whether the algorithm has a setting `latency`.   Empty for fewer than two sources,
    and for too many ranks or sources.
    """
    ranks, sources = problem.ranks, problem.sources
    if ranks > SEARCHED_RANKS or len(sources) < 2:  # with one source it is a broadcast
        return []
    received = ranks if problem.all_give_alike else ranks * len(sources)
    most = min(max(source.nbytes for source in sources), MOST_PIECES, ROUNDS_PLAYED // received)
    if latencies:
        most = min(most, TABLED_ROUNDS // ranks)
    counts = sorted({n for power in range(13) for n in (2**power, 3 * 2**power // 2) if n <= most})
    tried: list[Rough] = []
    for count in counts:
        settings: list[dict[str, Any]] = [{"pieces": count}]
        if latencies:
            lam = machine.planning_lam(-(-problem.nbytes // count))
            roundings = {min(max(rounded(lam), 1), highest(ranks)) for rounded in (floor, ceil)}
            settings = [{"latency": k, "pieces": count} for k in sorted(roundings)]
        tried += [Rough(_rough_time(problem, machine, choice), choice) for choice in settings]
    return tried


def _register(name: str, summary: str, time: str, source: str, **parameters: Parameter) -> None:
    register(
        Algorithm(
            name=f"allgatherv/{name}",
            summary=summary,
            source=(source, "Traeff2022"),
            time=time,
            build=_program,
            choices=lambda problem, machine: _choices(
                problem, machine, latencies="latency" in parameters
            ),
            parameters=parameters,
            segmented=True,
        )
    )


_register(
    "circulant",
    "all contributions as one vector, whose pieces travel through a circulant graph",
    "(k − 1 + ⌈log2 p⌉) rounds of a k-th of everything",
    "Traeff2024b",
    pieces=PIECES,
)
_register(
    "postal_rounds",
    "all contributions as one vector, whose pieces travel in the rounds of broadcast/postal_rounds",
    "about (k − 1 + T_λ(p)) rounds of a k-th of everything; simulated",
    "BarNoyKipnis1994",
    latency=LATENCY,
    pieces=PIECES,
)
