"""A broadcast over levels, for any placement; a search finds the order of its sends.

Every rank that has the data may send to any other rank, in its own group or not.  In most other
algorithms for levels only leaders send to other groups.  [Bhat2003] chooses the next receiver
greedily, by the costs of messages between pairs; here the ranks of a group also share a port.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from collwise.algorithms.levels.composition import register_multilevel
from collwise.algorithms.levels.send_order import LevelCost, best_order
from collwise.algorithms.registry import Parameter, Settings
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels
from collwise.model.limits import ORDERED_RANKS
from collwise.model.placement import Placement
from collwise.schedule.data_movement import DownTree
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Edges, Family, Tree

TICKS = 32
"""The smallest t0 of all levels has this many ticks, the unit of all costs.

Finer times cannot be measured.
"""
_MEANING = "t0 (0 in memory), λ·t0 and the port of every level in any one unit: '32,64,16; 190,800'"


@dataclass(frozen=True)
class OrderedTree(Tree):
    """A tree made from an order of sends.   families: the parent and children of each rank."""

    size: int
    families: tuple[Family, ...]

    def family(self, rank: int) -> Family:  # noqa: D102
        return self.families[rank]

    def edges(self) -> Edges:  # noqa: D102
        rows = np.array([family[:2] for family in self.families[1:]], dtype=np.int64)
        return Edges(*rows.reshape(-1, 2).T)


@lru_cache(maxsize=64)
def ordered_tree(placement: Placement, costs: str) -> OrderedTree:
    """The tree of the best order of sends that the search finds.

    costs: t0, λ·t0 and port time of each level in one unit, such as "32,64,16; 190,800".
    """
    children: list[list[int]] = [[] for _ in range(placement.ranks)]
    above = [(-1, 0)] * placement.ranks
    order = best_order(placement, _parse(costs))
    for source, target in order.sends:
        above[target] = source, len(children[source])
        children[source].append(target)
    families = (Family(*parent, below) for parent, below in zip(above, children, strict=True))
    return OrderedTree(placement.ranks, tuple(families))


def _parse(text: Any) -> Sequence[LevelCost]:
    try:
        rows = [LevelCost(*map(int, level.split(","))) for level in text.split(";")]
    except (AttributeError, TypeError, ValueError):
        rows = []
    if not rows or any(min(row) < 0 or row.latency < max(row.gap, 1) for row in rows):
        raise InvalidArgument("the parameter costs", f"it is {text!r}", f"give {_MEANING}")
    return rows


def _read(value: Any) -> str:
    rows = _parse(value)
    return "; ".join(",".join(map(str, row if row.port else row[:2])) for row in rows)


def _tree(problem: Problem, settings: Settings) -> OrderedTree:
    placement = hierarchy_of(problem).placement
    levels = settings["costs"].split(";")
    if len(levels) == 1:
        levels *= placement.depth
    if len(levels) != placement.depth:
        seen = f"{len(levels)} costs for {placement.depth} levels"
        remedy = "give one for each, or one for all"
        raise InvalidArgument(f"a broadcast with costs {settings['costs']}", seen, remedy)
    return ordered_tree(placement, ";".join(levels))


def _build(problem: Problem, settings: Settings) -> Program:
    return DownTree(_tree(problem, settings), problem.nbytes)


def _choices(problem: Problem, machine: Levels) -> list[Settings]:
    if problem.ranks > ORDERED_RANKS:
        return []
    levels = range(1, len(machine.by_level) + 1)
    costs = [machine.at(level, problem.nbytes) for level in levels]
    tick = machine.message(problem.nbytes).gap / TICKS
    rows = [
        (cost.gap, cost.latency, machine.port(level, problem.nbytes))
        for level, cost in zip(levels, costs, strict=True)
    ]
    if machine.shares_memory:
        rows[0] = (Fraction(0), *rows[0][1:])
    texts = [",".join(str(round(time / tick)) for time in row) for row in rows]
    return [{"costs": _read("; ".join(texts))}]


register_multilevel(
    "broadcast/multilevel_ordered",
    "the rank that is free next sends to the group or the rank that takes longest from then on",
    "that of the best order of sends that was found",
    _build,
    _choices,
    source=("Bhat2003", "Kielmann1999"),
    parameters={"costs": Parameter(_read, _MEANING)},
)
