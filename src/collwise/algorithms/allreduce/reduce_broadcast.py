"""Reduce up a tree to rank 0, then broadcast down the same tree: Version 1 of [vandeGeijn1991].

With the binomial tree the allreduce takes d(α + nβ) longer than recursive doubling, for p = 2^d.
The λ-tree is for large λ if all ranks must end with the same bits, unlike those of `census`.
"""

from typing import Any

from collwise.algorithms.broadcast import binomial, postal_tree
from collwise.algorithms.broadcast.segmented_tree import TreeOf
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Settings
from collwise.schedule.combinators import Then
from collwise.schedule.data_movement import DownTree
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import LastFirst


def _register(name: str, summary: str, time: str, tree: TreeOf, **more: Any) -> None:
    def build(problem: Problem, settings: Settings) -> Program:
        shared = tree(problem, settings), problem.nbytes
        return Then((UpTree(*shared), DownTree(*shared)))

    register_combining(f"allreduce/{name}", summary, time, build, **more)


_register(
    "reduce_broadcast",
    "binomial tree, upwards and then downwards",
    "2d(α + nβ) + dnγ for p = 2^d",
    lambda problem, _: binomial.tree(problem.ranks),
    source=("vandeGeijn1991 §3.1",),
    searched=False,
)
_register(
    "flat",
    "all ranks send to rank 0, which sends the result to all",
    "2(p − 2 + λ)·t0, and combining at rank 0",
    lambda problem, _: LastFirst(problem.ranks),
    source=("BarNoyKipnis1994",),
    usual=True,
    searched=False,
)
_register(
    "postal_reduce_broadcast",
    "λ-tree, upwards and then downwards",
    "2·T_λ(p)·t0, and combining on the way",
    postal_tree.of_settings,
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    **postal_tree.BY_LAM,
    searched=False,
)
