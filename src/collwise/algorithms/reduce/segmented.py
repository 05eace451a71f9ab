"""Pipelined reduces: segment after segment up a chain or a λ-tree, for long vectors.

Up a chain of any number of ranks, the time per byte is that of one transfer and one combine.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from collwise.algorithms.broadcast import chain, postal_tree
from collwise.algorithms.broadcast.segmented_tree import SEGMENT, TreeOf
from collwise.algorithms.reductions import from_root_on, register_combining
from collwise.algorithms.registry import Settings, program_time
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import UpTree
from collwise.timing.tree_times import time_by_pace

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

    tree: returns the tree for a problem and settings.   chosen: returns the settings other than
    `segment` for a problem and a machine.   more: other fields of `Algorithm`.
    """

    def build(problem: Problem, settings: Settings) -> UpTree:
        items = -(-settings["segment"] // problem.itemsize)  # no element is cut
        return UpTree(tree(problem, settings), problem.nbytes, items * problem.itemsize)

    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        """The settings with the segment that takes least, extrapolated from the first segments.

        Empty for one rank and for too many ranks.
        """
        items, others = problem.nbytes // problem.itemsize, chosen(problem, machine)
        if not 1 < problem.ranks <= SEARCHED_RANKS:
            return []

        def time(settings: Settings) -> Fraction:
            segment: int = settings["segment"]

            def time_of(segments: int) -> Fraction:
                some = replace(problem, nbytes=segments * segment)
                return program_time(some, build(some, settings), machine)

            return time_by_pace(-(-problem.nbytes // segment), time_of)

        counts = [n for n in COUNTS if n <= items]
        tried = [{**others, "segment": -(-items // n) * problem.itemsize} for n in counts]
        return sorted(tried, key=time)[:1]

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
