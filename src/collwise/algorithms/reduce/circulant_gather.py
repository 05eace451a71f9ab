"""Reduce as a reduce-scatter on a circulant graph and a gather at the root, for any p.

For 2^d ranks and stages of radix 2 it is the recursive halving of [vandeGeijn1991 §5], or a hybrid
of that paper.  Other numbers of ranks take as many rounds as the next larger 2^d, with fewer bytes.
"""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from collwise.algorithms.circulant_pieces import PARAMETERS
from collwise.algorithms.exchanges import STAGES, read
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Rough, Settings
from collwise.algorithms.search import rough_costs
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.circulant_exchange import CirculantExchange
from collwise.schedule.exchange import Stage
from collwise.schedule.problem import Problem

RADICES = (2, 3, 4, 5, 6, 7, 8, 16, 32)
"""Radices that plans try; they also try the number of ranks, if it is at most the last of these."""
_Best: TypeAlias = tuple[float, tuple[Stage, ...]]


def _program(problem: Problem, settings: Settings) -> CirculantExchange:
    """The exchange in the stages of the setting `stages`; the first stage divides the vector."""
    first, *others = read(settings["stages"])
    stages = (first._replace(divided=True), *others)
    return CirculantExchange(problem, latency=settings["latency"], stages=stages)


def _choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    """The settings to compare: stages of radix 2, and for each first stage the best later ones.

    Empty for 2^d ranks, where the reduces by exchanges do the same.  Empty if combining is free,
    since reduces in rounds are then never slower.  Empty for 0 or 1 elements or too many ranks.
    """
    whole, rounds = problem.nbytes // problem.itemsize, (problem.ranks - 1).bit_length()
    useless = problem.ranks == 1 << rounds or whole < 2
    if useless or problem.ranks > SEARCHED_RANKS or not machine.combine(problem.nbytes):
        return []

    costs = rough_costs(problem, machine)

    def after(ranks: int, items: int, stage: Stage) -> tuple[float, int, int]:
        """The rough seconds of one stage, and the values of `ranks` and `items` after the stage.

        ranks: how many ranks' partial results make up a block.   items: elements of a message.
        """
        left = -(-ranks // stage.radix)
        part = -(-whole * left // problem.ranks) if stage.divided else items
        gap, latency, combine = costs(part)
        others = -(-ranks // left) - 1
        once = others * gap + latency - gap
        return once * (1 + stage.divided) + others * combine, left, part

    def rough(stages: tuple[Stage, ...]) -> float:
        time, ranks, items = 0.0, problem.ranks, whole
        for stage in stages:
            more, ranks, items = after(ranks, items, stage)
            time += more
        return time

    @cache
    def best(ranks: int, items: int, divide: bool) -> _Best:
        """The least rough time in seconds, and the stages that take this time.

        ranks: how many ranks' partial results make up a block.   items: elements of a message.
        divide: whether stages may divide vectors.
        """
        tried = [] if ranks > 1 else [(0.0, tuple[Stage, ...]())]
        for radix in _radices(ranks):
            for divided in {False, divide and items > 1}:
                stage = Stage(radix, divided)
                time, left, part = after(ranks, items, stage)
                rest, stages = best(left, part, divided)
                tried.append((time + rest, (stage, *stages)))
        return min(tried)

    tried = {
        (Stage(2, divided=True),) * n + (Stage(2, divided=False),) * (rounds - n)
        for n in range(1, rounds + 1)
    }
    for radix in _radices(problem.ranks):
        first = Stage(radix, divided=True)
        _, left, part = after(problem.ranks, whole, first)
        tried.add((first, *best(left, part, True)[1]))
    gap, latency, _ = costs(-(-whole // problem.ranks))
    under_way = max(round(latency / gap), 1) if gap else 1
    return [
        Rough(rough(stages), {"stages": " ".join(map(str, stages)), "latency": under_way})
        for stages in sorted(tried)
    ]


def _radices(ranks: int) -> set[int]:
    return {radix for radix in (*RADICES, ranks) if 1 < radix <= min(ranks, RADICES[-1])}


register_combining(
    "reduce/circulant_gather",
    "reduce-scatter in rounds of a circulant graph, then gather at the root, for any p",
    "2⌈log2 p⌉α + (p − 1)/p·n(2β + γ) if stages are 2d",
    _program,
    source=("Traeff2024", "vandeGeijn1991 §5"),
    choices=_choices,
    order=lambda problem: "same",
    parameters={"stages": STAGES, "latency": PARAMETERS["latency"]},
    segmented=True,
)
