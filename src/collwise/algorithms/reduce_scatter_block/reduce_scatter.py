"""Reduce up a λ-tree to rank 0, then scatter down the same tree: short vectors where λ is high.

It combines in the order of the ranks.  Whole vectors go up, so exchanges are better for long ones.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from collwise.algorithms.broadcast.postal_tree import BY_LAM, tree
from collwise.algorithms.reductions import register_combining, up_tree_time
from collwise.algorithms.registry import Settings
from collwise.model.machine import Machine
from collwise.schedule.data_movement import Scatter
from collwise.schedule.operations import Copy, Operation, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree
from collwise.schedule.trees import Part, Shape

_RESULT = scratch(0)
"""Where the result lies on its way down; a rank's output has room for its own block only."""


@dataclass(frozen=True)
class ReduceScatter(Program):
    """Up and down the λ-tree; in the end everybody copies its block to its output."""

    problem: Problem
    lam: Fraction

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        problem = self.problem
        if not problem.nbytes:
            return []
        up = UpTree(tree(problem.ranks, self.lam), problem.nbytes, result=_RESULT)
        block = problem.nbytes // problem.ranks
        down = Scatter(tree(problem.ranks, self.lam), problem.nbytes, block, _RESULT)
        last = Copy(_RESULT, Slot.OUTPUT, problem.output_of(rank))
        return [*up.operations(rank), *down.operations(rank), last]


def _time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    tree_, block = tree(problem.ranks, settings["lam"]), problem.nbytes // problem.ranks

    @cache
    def scattering(shape: Shape) -> Fraction:
        """From when the root of a subtree has its blocks to when everybody has."""
        begin = end = Fraction(0)
        for child in tree_.child_shapes(shape):
            assert isinstance(child, Part)
            cost = machine.message(child.size * block)
            end = max(end, begin + cost.latency + scattering(child))
            begin += cost.gap
        return end

    return up_tree_time(tree_, problem.nbytes, machine) + scattering(tree_.root_shape)


register_combining(
    "reduce_scatter_block/postal_reduce_scatter",
    "λ-tree, upwards; then the blocks of the result are scattered down",
    "T_λ(p)·t0 upwards, about the same with shrinking messages downwards, and combining",
    lambda problem, settings: ReduceScatter(problem, settings["lam"]),
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    predicted=_time,
    **BY_LAM,
)
