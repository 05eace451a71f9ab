"""Pipelined reduces: segment after segment up a chain or a λ-tree, for long vectors.

Up a chain, a byte takes the time of one transfer and one combine, however many ranks there are.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from collwise.algorithms.broadcast import chain, postal_tree
from collwise.algorithms.broadcast.segmented_tree import SEGMENT, TreeOf
from collwise.algorithms.reductions import from_root_on, register_combining, simulated_time
from collwise.algorithms.registry import MAX_SIMULATED, Settings, segments
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import UpTree
from collwise.timing.pipelined_up_trees import after_first, heights, least, pipelined_times, steps

COUNTS = (*(n << k for k in range(11) for n in (2, 3)), 4096)
"""Numbers of segments worth a try."""
MOST_STEPS, MAX_PIPELINED = 1 << 14, 1 << 20
"""Steps, and messages, of a schedule that is simulated while planning: some 0.3 s."""
LARGEST_SIMULATED, FEW = 4096, 128
"""Messages, and segments, of one that is simulated event by event."""


@lru_cache(maxsize=64)
def _time(program: UpTree, machine: Machine) -> Fraction:
    """Exact seconds of a reduce up a tree, all ranks at once."""
    times = pipelined_times(program, machine)
    return int(times.finish.max()) * times.unit


def _register(
    name: str,
    summary: str,
    time: str,
    tree: TreeOf,
    chosen: Callable[[Problem, Machine], Settings],
    **more: Any,
) -> None:
    """Register a reduce up a tree.  chosen: its settings on a machine, but for the segment."""

    def build(problem: Problem, settings: Settings) -> UpTree:
        items = -(-settings["segment"] // problem.itemsize)  # no element is cut
        return UpTree(tree(problem, settings), problem.nbytes, items * problem.itemsize)

    def predicted(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
        if not machine.independent_ports:
            return simulated_time(problem, machine, build(problem, settings))
        return _time(build(problem, settings), machine)

    def simulated(problem: Problem, settings: Settings) -> int:
        messages = problem.ranks * segments(problem, settings)
        few = problem.nbytes and messages <= MAX_SIMULATED << 4
        return max(messages >> 4, 2 * steps(build(problem, settings)) if few else 0)

    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        """The best of a few numbers of segments, of those whose schedules are quick to simulate."""
        items, others = problem.nbytes // problem.itemsize, chosen(problem, machine)
        most, few = LARGEST_SIMULATED, FEW
        if machine.independent_ports:
            most, few = MAX_PIPELINED, COUNTS[-1]
        counts = [n for n in COUNTS if n <= min(items, few) and n * problem.ranks <= most]
        if problem.ranks == 1 or not counts or problem.ranks > LARGEST_SIMULATED:
            return []
        whole = tree(problem, others)  # which has nothing to do with segments
        deep, degree = heights(whole), int(np.bincount(whole.edges().parent).max())
        if machine.independent_ports:
            counts = [n for n in counts if (2 * n + max(deep)) * degree <= MOST_STEPS]
        tried = [{**others, "segment": -(-items // n) * problem.itemsize} for n in counts]
        bounds = [least(problem.nbytes, machine, deep, one["segment"]) for one in tried]
        best: tuple[Fraction | float, int] = inf, 0
        for bound, n in sorted(zip(bounds, range(len(tried)), strict=True)):
            if bound > best[0]:
                continue  # it cannot be faster
            one, nbytes = tried[n], tried[n]["segment"]
            if machine.independent_ports and best[0] < inf and max(deep) < 2 * counts[n]:
                # That of the first segment is quick, and tells nearly everything.
                bound = predicted(replace(problem, nbytes=nbytes), machine, one)
                bound += after_first(problem.nbytes, machine, len(deep), nbytes)
            if bound <= best[0]:
                best = min(best, (predicted(problem, machine, one), n))
        return [tried[best[1]]] if tried else []

    register_combining(
        f"reduce/{name}",
        summary,
        time,
        build,
        predicted=predicted,
        simulated=simulated,
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
