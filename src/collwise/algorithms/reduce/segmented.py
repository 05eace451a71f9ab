"""Pipelined reduces: segment after segment up a chain or a λ-tree, for long vectors.

Up a chain of any number of ranks, the time per byte is that of one transfer and one combine.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from collwise.algorithms.broadcast import chain, postal_tree
from collwise.algorithms.broadcast.segmented_tree import SEGMENT, TreeOf
from collwise.algorithms.reductions import from_root_on, register_combining
from collwise.algorithms.registry import Rough, Settings
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import UpTree
from collwise.timing.tree_times import depth

COUNTS = (*(n << k for k in range(11) for n in (2, 3)), 4096)
"""The numbers of segments that plans try."""


def _register(
    name: str,
    summary: str,
    time: str,
    tree: TreeOf,
    chosen: Callable[[Problem, Machine], Settings],
    **more: Any,
) -> None:
    """Register a segmented reduce up a tree.

    tree: returns the tree for a problem and settings.   more: other fields of `Algorithm`.
    chosen: returns all settings except `segment`, for a problem and a machine.
    """

    def build(problem: Problem, settings: Settings) -> UpTree:
        items = -(-settings["segment"] // problem.itemsize)  # no element is cut
        return UpTree(tree(problem, settings), problem.nbytes, items * problem.itemsize)

    def choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
        """The settings to compare, by number of segments; empty for 1 rank and for too many ranks.

        A rough time assumes that the first segment makes as many hops as the tree is deep, and that
        each further segment keeps the root's port busy once for each child of the root.
        """
        items, others = problem.nbytes // problem.itemsize, chosen(problem, machine)
        if not 1 < problem.ranks <= SEARCHED_RANKS:
            return
        shape = tree(problem, others)
        hops, children = depth(shape), len(shape.family(0).children)
        for count in COUNTS:
            if count <= items:
                segment = -(-items // count) * problem.itemsize
                combine = machine.combine(segment) or Fraction(0)
                gap, latency = machine.message(segment)
                time = hops * (latency + combine) + (count - 1) * children * (gap + combine)
                yield Rough(time, {**others, "segment": segment})

    register_combining(
        f"reduce/{name}",
        summary,
        time,
        build,
        choices=choices,
        order=from_root_on,
        segmented=True,
        **more,
    )


_register(
    "chain_segmented",
    "pipelined chain, upwards: segments follow each other to the root",
    "((p − 1)·λ + k − 1)·t0 for k segments, and combining on the way",
    lambda problem, _: chain.tree(problem.ranks),
    lambda problem, machine: {},
    source=("Desprez1993",),
    parameters={"segment": SEGMENT},
)
_register(
    "postal_tree_segmented",
    "pipelined λ-tree, upwards",
    "(T_λ(p) + (k − 1)·d)·t0 for k segments, d the root's number of children",
    postal_tree.of_settings,
    lambda problem, machine: {"lam": machine.planning_lam(problem.nbytes)},
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    parameters={"lam": postal_tree.LAM, "segment": SEGMENT},
    searched=False,
)
