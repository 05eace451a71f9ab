"""Reduces in segments up one tree over levels: the trees of all levels joined into one.

The time-reverse of `broadcast/multilevel_pipelined`.
"""

from collwise.algorithms.broadcast.multilevel_pipelined import (
    PARAMETERS,
    joined_tree,
    segmented_trees,
    time_of_segments,
)
from collwise.algorithms.composition import in_order_of_placement, register_multilevel
from collwise.algorithms.reduce.multilevel import TREES
from collwise.algorithms.registry import Settings
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank, UpTree


def _build(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    items = -(-settings["segment"] // problem.itemsize)  # no element is cut
    tree = joined_tree(problem, settings["trees"], TREES)
    return UpTree(tree, problem.nbytes, items * problem.itemsize)


register_multilevel(
    "reduce/multilevel_pipelined",
    "segments up one tree, joined of the leaders' tree and those of their groups",
    "the outermost tree's, and the way out of the last group",
    _build,
    segmented_trees,
    source=("Karonis2002",),
    parameters=PARAMETERS,
    segmented=True,
    order=in_order_of_placement,
    by_level=time_of_segments,
)
