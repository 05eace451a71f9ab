"""Flat tree: the root sends to every other rank.  The tree is optimal for λ >= p − 1."""

from collwise.algorithms.broadcast.segmented_tree import register_tree
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """The tree in which all other ranks are children of the root."""
    return HeapTree(ranks, max(ranks - 1, 1))


register_tree(
    "flat",
    "flat tree: the root sends to every rank itself",
    "(p − 2 + λ)·t0",
    lambda problem, _: tree(problem.ranks),
    source=("BarNoyKipnis1994",),
    searched=False,
)
