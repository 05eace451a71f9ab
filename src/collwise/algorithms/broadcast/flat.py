"""Flat tree: the root sends to everybody.  Optimal where λ >= p − 1."""

from fractions import Fraction

from collwise.algorithms.broadcast.segmented_tree import register_tree
from collwise.algorithms.registry import Settings
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """Everybody below the root."""
    return HeapTree(ranks, max(ranks - 1, 1))


def _predicted(problem: Problem, machine: Machine, _: Settings) -> Fraction:
    cost = machine.message(problem.nbytes)
    return (problem.ranks - 2) * cost.gap + cost.latency


register_tree(
    "flat",
    "flat tree: the root sends to every rank itself",
    "(p − 2 + λ)·t0",
    lambda problem, _: tree(problem.ranks),
    source=("BarNoyKipnis1994",),
    predicted=_predicted,
)
