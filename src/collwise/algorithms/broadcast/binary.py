"""Pipelined binary tree: each segment goes on to at most two children.

The tree has half the bandwidth of the chain, but about log2 p hops instead of p − 1.  The
tree is for long messages on many ranks.
"""

from collwise.algorithms.broadcast.segmented_tree import (
    SEGMENT,
    register_tree,
    segment_choices,
)
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """The binary tree in which the children of rank v are 2v + 1 and 2v + 2."""
    return HeapTree(ranks, 2)


register_tree(
    "binary_segmented",
    "pipelined binary tree: every rank serves two, segment by segment",
    "(h·(1 + λ) + 2(k − 1))·t0 for k segments and n = 2^(h+1) − 1",
    lambda problem, _: tree(problem.ranks),
    source=("OpenMPI", "SandersSpeckTraeff2009"),
    choices=lambda problem, machine: segment_choices(tree(problem.ranks), problem, machine),
    parameters={"segment": SEGMENT},
    searched=False,
)
