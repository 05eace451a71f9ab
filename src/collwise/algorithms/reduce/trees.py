"""Reduce of whole vectors up a tree: the time-reverse of a broadcast down the tree.

The λ-tree is optimal in the postal model, for a reduce as for a broadcast.  Most MPI libraries use
the binomial tree for short vectors; [vandeGeijn1991] §5 calls this approach 1.
"""

from typing import Any

from collwise.algorithms.broadcast import binomial, postal_tree
from collwise.algorithms.broadcast.segmented_tree import TreeOf
from collwise.algorithms.reductions import from_root_on, register_combining
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import LastFirst


def _register(name: str, summary: str, time: str, tree: TreeOf, **more: Any) -> None:
    register_combining(
        f"reduce/{name}",
        summary,
        time,
        lambda problem, settings: UpTree(tree(problem, settings), problem.nbytes),
        order=from_root_on,
        **more,
    )


_register(
    "binomial",
    "binomial tree, upwards: the number of ranks with a partial result halves in every step",
    "that of the binomial broadcast, and combining on the way",
    lambda problem, _: binomial.tree(problem.ranks),
    source=("vandeGeijn1991 §5", "Bruck1996 §2.1"),
    usual=True,
)
_register(
    "flat",
    "flat tree: every rank sends its vector to the root itself",
    "(p − 2 + λ)·t0, and combining at the root",
    lambda problem, _: LastFirst(problem.ranks),
    source=("BarNoyKipnis1994",),
    searched=False,
)
_register(
    "postal_tree",
    "λ-tree, upwards; optimal in the postal model",
    "T_λ(p)·t0, and combining on the way",
    postal_tree.of_settings,
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    **postal_tree.BY_LAM,
)
