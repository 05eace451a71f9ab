"""Allreduces by exchanges in groups: while one piece of the vector travels, ranks send others."""

from collections.abc import Iterable
from functools import cache
from math import prod

from collwise.algorithms.circulant_pieces import LONGEST, PARAMETERS
from collwise.algorithms.exchanges import STAGES, radices, stages_of
from collwise.algorithms.reductions import fixed_if_asked, in_even_blocks, register_combining
from collwise.algorithms.registry import Rough, Settings
from collwise.algorithms.search import rough_costs
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.interleaved import Interleaved, tasks_of_pieces
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program

PIECES = (2, 3, 4, 6, 8, 12)
"""The numbers of pieces that plans try."""


def divisor(stages: Iterable[Stage]) -> int:
    """Number of parts into which all stages together divide a vector."""
    return prod(stage.radix for stage in stages if stage.divided)


def _program(problem: Problem, settings: Settings) -> Program:
    """The exchanges of all pieces, interleaved; the setting `pieces` gives their number.

    There are fewer pieces if a part of the vector has fewer elements, and only one if the product
    of the group sizes is below the number of ranks.
    """
    plain = Exchange(problem, stages_of(problem, settings))
    most = 1 if plain.extra else problem.nbytes // problem.itemsize // divisor(plain.stages)
    pieces = min(settings["pieces"], most)
    if pieces < 2 or problem.ranks == 1:
        return plain
    tasks = tasks_of_pieces(problem, pieces, lambda piece: Exchange(piece, plain.stages))
    return Interleaved(tasks, (settings["latency"],))


def _choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    """The settings to compare: for each number of pieces the best stages, with two latencies.

    A rough time assumes that only the first piece waits for messages.  Empty for fewer than three
    ranks, if λ is 1 or t0 is 0, and if anything but ranks' own ports delays messages.
    """
    ranks, items = problem.ranks, problem.nbytes // problem.itemsize

    costs = rough_costs(problem, machine)

    def best(ranks: int, items: int) -> tuple[float, tuple[Stage, ...]]:
        if ranks == 1:
            return 0.0, ()
        tried = [(float("inf"), tuple[Stage, ...]())]
        for radix in radices(ranks, fixed=problem.order == "fixed"):
            part = -(-items // radix)
            for divided, length in ((True, part), (False, items)):
                gap, latency, combine = costs(length)
                time = (1 + divided) * (busy * gap * (radix - 1) + latency - gap)
                rest, stages = known(ranks // radix, length)
                time += busy * (radix - 1) * combine + rest
                tried.append((time, (Stage(radix, divided), *stages)))
        return min(tried, key=lambda row: row[0])

    if ranks < 3 or not machine.independent_ports or not 0 < costs(1)[0] < costs(1)[1]:
        return []
    tried: list[Rough] = []
    for busy in PIECES:
        known = cache(best)
        time, stages = known(ranks, -(-items // busy))
        if not stages or busy * divisor(stages) > items:
            continue
        even = in_even_blocks(problem, problem.itemsize * divisor(stages) * busy)
        gap, latency, _ = costs(-(-items // busy // stages[0].radix))
        for under_way in (round(latency / gap), round(9 / 8 * latency / gap) + 1):
            settings = {"stages": " ".join(map(str, stages)), "pieces": busy}
            settings["latency"] = min(max(under_way, 1), LONGEST)
            tried.append(Rough(time, settings, even))
    return tried


register_combining(
    "allreduce/mixed_radix_pieces",
    "groups of several sizes divide or exchange vectors, piece after piece while messages travel",
    "(k − 1)·(the time for which a piece keeps a port busy) + the time of one piece, for k pieces",
    _program,
    order=fixed_if_asked,
    source=("vandeGeijn1991 §3.4", "Ruefenacht2017"),
    choices=_choices,
    parameters={"stages": STAGES, "pieces": PARAMETERS["pieces"], "latency": PARAMETERS["latency"]},
    segmented=True,
)
