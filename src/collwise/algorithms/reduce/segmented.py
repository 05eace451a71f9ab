"""Pipelined reduces: segment after segment up a chain or a λ-tree, for long vectors.

Up a chain, a byte takes the time of one transfer and one combine, however many ranks there are.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import inf
from typing import Any

from collwise.algorithms.broadcast import chain, postal_tree
from collwise.algorithms.broadcast.segmented_tree import SEGMENT, TreeOf
from collwise.algorithms.reductions import from_root_on, register_combining, simulated_time
from collwise.algorithms.registry import Settings, segments
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import Tree

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of segments worth a try."""
LARGEST_SIMULATED = 4096
"""Messages of a schedule that is simulated for its time."""


def heights(tree: Tree) -> list[int]:
    """How deep each of the trees under the root's children is."""
    parents, height = tree.edges().parent.tolist(), [0] * tree.size
    for rank in range(tree.size - 1, 0, -1):  # parents come before their children
        parent = parents[rank - 1]
        height[parent] = max(height[parent], height[rank] + 1)
    return [height[rank] for rank, parent in enumerate(parents, 1) if not parent]


def least(problem: Problem, machine: Machine, children: list[int], segment: int) -> Fraction:
    """Seconds that a reduce up a tree takes at least; 0 where messages delay each other elsewhere.

    children: the `heights` of the tree.   The last segment leaves the deepest rank after all
    others, and then has to go all the way.  The root receives all segments of all children, after
    the first one's way.
    """
    if not machine.independent_ports:
        return Fraction(0)
    count, rest = -(-problem.nbytes // segment), problem.nbytes % segment or segment
    (gap, latency), (last_gap, last_latency) = machine.message(segment), machine.message(rest)
    combine, last_combine = (machine.combine(n) or Fraction(0) for n in (segment, rest))
    deepest = (count - 1) * gap + (max(children) + 1) * (last_latency + last_combine)
    each = (count - 1) * (gap + combine) + last_gap + last_combine
    first = min(latency - gap, last_latency - last_gap)
    if count > 1:
        first += min(children) * (latency + combine)
    return max(deepest, len(children) * each + first)


def _register(
    name: str,
    summary: str,
    time: str,
    tree: TreeOf,
    chosen: Callable[[Problem, Machine], Settings],
    **more: Any,
) -> None:
    """Register a reduce up a tree.  chosen: its settings on a machine, but for the segment."""

    def build(problem: Problem, settings: Settings) -> Program:
        items = -(-settings["segment"] // problem.itemsize)  # no element is cut
        return UpTree(tree(problem, settings), problem.nbytes, items * problem.itemsize)

    def predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        return simulated_time(problem, machine, build(problem, settings))

    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        """The best of a few numbers of segments, for schedules that can be simulated quickly."""
        items, others = problem.nbytes // problem.itemsize, chosen(problem, machine)
        counts = [n for n in COUNTS if n <= items and n * problem.ranks <= LARGEST_SIMULATED]
        if problem.ranks == 1 or not counts:
            return []
        tried = [{**others, "segment": -(-items // n) * problem.itemsize} for n in counts]
        deep = heights(tree(problem, others))  # which has nothing to do with segments
        bounds = [least(problem, machine, deep, one["segment"]) for one in tried]
        best: tuple[Fraction | float, int] = inf, 0
        for bound, n in sorted(zip(bounds, range(len(tried)), strict=True)):
            if bound <= best[0]:  # others cannot be faster
                best = min(best, (predicted(problem, machine, tried[n]), n))
        return [tried[best[1]]]

    register_combining(
        f"reduce/{name}",
        summary,
        time,
        build,
        predicted=predicted,
        simulated=lambda problem, settings: problem.ranks * segments(problem, settings),
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
)
