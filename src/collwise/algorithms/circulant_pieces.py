"""Reduce-scatters and allreduces on circulant graphs: radix 2 in one piece, any radix in pieces.

Where λ is above 1, a message arrives some time after its sender's port is free.  In this time ranks
send messages of other pieces, so only the latency of the first piece counts.
"""

from collections.abc import Iterable
from itertools import product
from typing import Any

from collwise.algorithms.reductions import in_even_blocks, register_circular
from collwise.algorithms.registry import Rough, Settings, integer
from collwise.algorithms.search import rough_costs
from collwise.model.limits import CIRCULANT_MESSAGES, SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.circulant_exchange import CirculantExchange, steps_by_round
from collwise.schedule.combinators import Task
from collwise.schedule.interleaved import Interleaved
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program

PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""The numbers of pieces that plans try."""
LONGEST = 1 << 20
"""Largest latency that is tried, in sends: longer ones do not change the order of operations."""
PARAMETERS = {
    "radix": integer("radix", 2, "which part of its blocks a rank keeps, an integer of at least 2"),
    "pieces": integer("pieces", 1, "the pieces of the vector, an integer of at least 1"),
    "latency": integer("latency", 1, "the sends until a message is there, at least 1"),
}


def messages(problem: Problem, settings: Settings) -> int:
    """Number of messages that each rank sends with the given settings."""
    gathers = problem.kind.output != "own block"
    rounds = steps_by_round(problem.ranks, (settings["radix"],), gathers=gathers)
    return int(settings["pieces"]) * sum(map(len, rounds))


def radices(ranks: int) -> list[int]:
    """The radices worth trying: for each number of rounds, the smallest radix that suffices."""
    radices = {ranks}
    for rounds in range(2, (ranks - 1).bit_length() + 1):
        radix = 2
        while radix**rounds < ranks:
            radix += 1
        radices.add(radix)
    return sorted(radices)


def choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    """The settings to compare; each number of pieces above 1 comes with two latencies.

    A rough time assumes that only the first piece waits for messages.  Empty for one rank, for too
    many ranks, and for fewer elements than ranks.
    """
    ranks, items = problem.ranks, problem.nbytes // problem.itemsize
    gathers = problem.kind.output != "own block"
    if not 1 < ranks <= min(items, SEARCHED_RANKS):
        return []

    costs = rough_costs(problem, machine)

    def rough(radix: int, pieces: int) -> tuple[float, int]:
        """The rough time in seconds, and a message's latency as a number of sends."""
        unit = -(-items // (ranks * pieces))
        # busy: how long one piece keeps a port busy.  alone: how long a single piece would take.
        # waited: the sum of the latencies and combining times of one piece's messages.
        busy = alone = waited = 0.0
        for steps in steps_by_round(ranks, (radix,), gathers=gathers):
            before, last = busy, 0.0
            for step in steps:
                gap, latency, combine = costs(step.width * unit)
                combine *= not step.gathers
                busy, last = busy + gap + combine, latency - gap
                waited += latency + combine
            alone += busy - before + last
        # Some machines charge nothing for messages.
        latency = min(max(round(waited / busy), 1), LONGEST) if busy else 1
        return (pieces - 1) * busy + alone, latency

    tried: list[Rough] = []
    for radix, pieces in product(radices(ranks), PIECES):
        settings = {"radix": radix, "pieces": pieces}
        if pieces * ranks <= items and messages(problem, settings) <= CIRCULANT_MESSAGES:
            time, latency = rough(radix, pieces)
            even = in_even_blocks(problem, ranks * problem.itemsize * pieces)
            for under_way in (latency, latency * 9 // 8 + 1)[: min(pieces, 2)]:
                tried.append(Rough(time, {**settings, "latency": under_way}, even))
    return tried


def without_empty_parts(problem: Problem, radix: int, pieces: int, latency: int) -> Program:
    """The exchange in `pieces` pieces, or in fewer if a block has fewer elements.

    If there are fewer elements than ranks, the settings are ignored and the radix is 2: for radix 2
    an upper bound of the time is known even if some blocks are empty.
    """
    most = problem.nbytes // problem.itemsize // problem.ranks
    if not most:
        return CirculantExchange(problem)
    count = min(pieces, most)
    parts = (Task(CirculantExchange(problem, radix, part=(n, count))) for n in range(count))
    return Interleaved(tuple(parts), (latency,))


def register_circulant(
    collective: str, summary: str, time: str, in_pieces: str, time_in_pieces: str
) -> None:
    """Register two algorithms for a collective: the exchange of radix 2, and the one in pieces.

    summary, time: of the exchange of radix 2.   in_pieces, time_in_pieces: the summary and time of
    the exchange in pieces.
    """
    made: dict[str, Any] = {"source": ("Traeff2024",)}
    plain = f"{collective}/circulant"
    register_circular(plain, summary, time, CirculantExchange, searched=False, **made)
    made |= {"choices": choices, "parameters": PARAMETERS}
    made |= {"program": without_empty_parts}
    register_circular(f"{collective}/circulant_pieces", in_pieces, time_in_pieces, **made)
