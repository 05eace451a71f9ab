"""Scatter, then allgather around a ring in p − 1 steps: very long messages on few ranks.

The "bucket" collect: only neighbours talk, so nothing contends on a network that is a ring or more.
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

LIMIT = 1024
"""More ranks than this spend longer on the start-ups of a ring than it can save."""


def steps(ranks: int) -> Steps:
    """Every rank passes on, to its left, what came last from its right."""
    return tuple(Step(1, d, d + 1) for d in range(1, ranks))


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    return [{}] if 2 < problem.ranks <= min(LIMIT, problem.nbytes) else []


register(
    Algorithm(
        name="broadcast/scatter_ring",
        summary="scatter down a binomial tree, collect around a ring in p − 1 steps",
        source=("vandeGeijn1991 §3", "Barnett1994"),
        time="recurrence over ⌈log2 p⌉ + p − 1 rounds; about (p − 1 + log2 p)·α + 2(p − 1)/p·nβ",
        build=lambda problem, _: scatter_collect(problem, steps(problem.ranks)),
        predicted=lambda problem, machine, _: scatter_collect_time(
            problem, machine, steps(problem.ranks)
        ),
        choices=_choices,
        segmented=True,
    )
)
