"""Scatter, then allgather in ⌈log2 p⌉ rounds of doubling size: long messages on many ranks.

Any p: the rounds are those of the dissemination ("Bruck") allgather, in place.
"""

from collections.abc import Iterable

from collwise.algorithms.broadcast.scatter_collect import (
    Steps,
    scatter_collect,
    scatter_collect_time,
)
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.data_movement import Step
from collwise.schedule.problem import Problem


def steps(ranks: int) -> Steps:
    """Distances 1, 2, 4, …: after each, a rank has twice as many pieces from itself on."""
    powers = [1 << k for k in range((ranks - 1).bit_length())]
    return tuple(Step(d, d, min(2 * d, ranks)) for d in powers)


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    return [{}] if 2 < problem.ranks <= min(1 << 16, problem.nbytes) else []


register(
    Algorithm(
        name="broadcast/scatter_allgather",
        summary="scatter down a binomial tree, collect in ⌈log2 p⌉ rounds of doubling size",
        source=("vandeGeijn1991 §3", "Barnett1994", "Bruck1997"),
        time="recurrence over 2⌈log2 p⌉ rounds; about 2d·α + 2(p − 1)/p·nβ for p = 2^d",
        build=lambda problem, _: scatter_collect(problem, steps(problem.ranks)),
        predicted=lambda problem, machine, _: scatter_collect_time(
            problem, machine, steps(problem.ranks)
        ),
        choices=_choices,
        segmented=True,
    )
)
