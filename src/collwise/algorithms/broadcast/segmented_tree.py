"""Broadcasts down a tree: their program and registration, and the best length of segments."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from collwise.algorithms.registry import Algorithm, Settings, integer, register
from collwise.model.limits import MOST_PIECES, SEGMENTED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Tree
from collwise.timing.tree_times import tree_time

TreeOf: TypeAlias = Callable[[Problem, Settings], Tree]
TREES: dict[str, TreeOf] = {}
"""Maps the short name of every unsegmented broadcast down a tree to the function for its tree."""
SEGMENT = integer("segment", 1, "the bytes in a segment, an integer of at least 1")


def register_tree(name: str, summary: str, time: str, tree: TreeOf, **more: Any) -> Algorithm:
    """Register a broadcast down a tree, in segments if `more` has a parameter `segment`.

    tree: returns the tree for a problem and settings; without segments it is also entered in TREES.
    more: other fields of `Algorithm`.
    """

    def build(problem: Problem, settings: Settings) -> Program:
        items = -(-settings.get("segment", 0) // problem.itemsize)  # no element is cut
        return DownTree(tree(problem, settings), problem.nbytes, items * problem.itemsize or None)

    facts: dict[str, Any] = {"build": build, **more}
    facts["segmented"] = "segment" in facts.get("parameters", {})
    if not facts["segmented"]:
        TREES[name] = tree
    return register(Algorithm(name=f"broadcast/{name}", summary=summary, time=time, **facts))


def segment_choices(tree: Tree, problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `segment`, in bytes, with the least predicted time down a tree.

    Powers of two are tried, and the sizes at which the machine's costs change, then 1¼, 1½ and 1¾
    times the powers of two near the best.  Empty if no segment can be tried.
    """
    time = partial(tree_time, tree, problem.nbytes, machine)

    def worth(lengths: Iterable[int]) -> set[int]:
        return {n for n in lengths if n < problem.nbytes <= n * MOST_PIECES}

    coarse = worth({1 << k for k in range(40)} | set(machine.sizes()))
    if not coarse or not 1 < problem.ranks <= SEGMENTED_RANKS:
        return []
    timed = {n: time(n) for n in sorted(coarse)}
    first = min(timed, key=timed.__getitem__)
    power = 1 << first.bit_length() - 1
    for n in sorted(worth(power * eighths // 8 for eighths in (4, 5, 6, 7, 8, 10, 12, 14))):
        timed.setdefault(n, time(n))
    return [{"segment": min(sorted(timed), key=timed.__getitem__)}]
