"""Reduce up a λ-tree to rank 0, then scatter down the same tree: short vectors where λ is high.

It combines in the order of the ranks.  Whole vectors go up, so exchanges are better for long ones.
"""

from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.broadcast.postal_tree import BY_LAM, tree
from collwise.algorithms.reductions import register_combining
from collwise.schedule.data_movement import Scatter
from collwise.schedule.operations import Copy, Operation, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree

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


register_combining(
    "reduce_scatter_block/postal_reduce_scatter",
    "λ-tree, upwards; then the blocks of the result are scattered down",
    "T_λ(p)·t0 upwards, about the same with shrinking messages downwards, and combining",
    lambda problem, settings: ReduceScatter(problem, settings["lam"]),
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    **BY_LAM,
    searched=False,
)
