"""Flat tree: the root sends to everybody.  Optimal where λ >= p − 1."""

from fractions import Fraction

from collwise.algorithms.broadcast.segmented_tree import down_tree
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """Everybody below the root."""
    return HeapTree(ranks, max(ranks - 1, 1))


def _predicted(problem: Problem, machine: Machine, _: Settings) -> Fraction:
    cost = machine.message(problem.nbytes)
    return (problem.ranks - 2) * cost.gap + cost.latency


register(
    Algorithm(
        name="broadcast/flat",
        summary="flat tree: the root sends to every rank itself",
        source=("BarNoyKipnis1994",),
        time="(p − 2 + λ)·t0",
        build=lambda problem, _: down_tree(tree(problem.ranks), problem),
        predicted=_predicted,
    )
)
