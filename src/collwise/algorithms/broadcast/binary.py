"""Pipelined binary tree: every rank serves two, segment by segment.

Half the bandwidth of the chain, but log2 p hops instead of p − 1: for long messages on many ranks.
"""

from fractions import Fraction

from collwise.algorithms.broadcast.segmented_tree import (
    SEGMENT,
    down_tree,
    segment_choices,
    tree_time,
)
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """Rank v serves 2v + 1 and 2v + 2."""
    return HeapTree(ranks, 2)


def _predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    return tree_time(tree(problem.ranks), problem.nbytes, machine, settings["segment"])


register(
    Algorithm(
        name="broadcast/binary_segmented",
        summary="pipelined binary tree: every rank serves two, segment by segment",
        source=("OpenMPI", "SandersSpeckTraeff2009"),
        time="(h·(1 + λ) + 2(k − 1))·t0 for k segments and n = 2^(h+1) − 1",
        build=lambda problem, settings: down_tree(
            tree(problem.ranks), problem, settings["segment"]
        ),
        predicted=_predicted,
        choices=lambda problem, machine: segment_choices(
            lambda n: _predicted(problem, machine, {"segment": n}), problem, machine
        ),
        parameters={"segment": SEGMENT},
        segmented=True,
    )
)
