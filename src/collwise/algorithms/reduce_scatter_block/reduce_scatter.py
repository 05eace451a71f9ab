"""Reduce up a λ-tree to rank 0, then scatter down the same tree: for short vectors and large λ.

Vectors are combined in the order of the ranks.  For long vectors the algorithms by exchanges are
faster, since here whole vectors are sent up.
"""

from collwise.algorithms.broadcast.postal_tree import BY_LAM, tree
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Settings
from collwise.schedule.combinators import KeepOwn, Then
from collwise.schedule.data_movement import Scatter
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import UpTree


def _build(problem: Problem, settings: Settings) -> Program:
    shared = tree(problem.ranks, settings["lam"])
    up = UpTree(shared, problem.nbytes)
    down = Scatter(shared, problem.nbytes, problem.nbytes // problem.ranks)
    return Then((up, down, KeepOwn(problem)))


register_combining(
    "reduce_scatter_block/postal_reduce_scatter",
    "λ-tree, upwards; then the blocks of the result are scattered down",
    "T_λ(p)·t0 upwards, about the same with shrinking messages downwards, and combining",
    _build,
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    **BY_LAM,
    searched=False,
)
