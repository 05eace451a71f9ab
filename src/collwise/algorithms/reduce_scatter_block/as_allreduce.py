"""Reduce-scatter by any allreduce in scratch memory; then every rank copies its own block.

The reduce-scatter takes as long as the allreduce.  The algorithm is for short vectors and large λ:
an allreduce by census has no allgather phase that a reduce-scatter could leave out.
"""

from collections.abc import Iterable

from collwise.algorithms.parts import one_part, part, tried_labels
from collwise.algorithms.reductions import fixed_if_asked, register_combining
from collwise.algorithms.registry import Settings, algorithms_for
from collwise.model.machine import Machine
from collwise.schedule.combinators import KeepOwn, Then
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


def _allreduce(problem: Problem) -> Problem:
    return Problem("allreduce", problem.ranks, problem.nbytes, 0, problem.itemsize, problem.order)


def _build(problem: Problem, settings: Settings) -> Program:
    allreduce = part(settings["algorithm"], "allreduce").build(_allreduce(problem))
    return Then((allreduce, KeepOwn(problem)))


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    whole = _allreduce(problem)
    among = [a for a in algorithms_for("allreduce", levels=False) if a.keeps_order(whole)]
    return [{"algorithm": label} for label in tried_labels(among, whole, machine)]


register_combining(
    "reduce_scatter_block/as_allreduce",
    "any algorithm for allreduces; every rank keeps its block of the result",
    "that of the allreduce",
    _build,
    order=fixed_if_asked,
    source=("Bruck1996 §3",),
    choices=_choices,
    parameters={"algorithm": one_part("algorithm", "allreduce", "census_in_order(latency=4)")},
    segmented=True,
)
