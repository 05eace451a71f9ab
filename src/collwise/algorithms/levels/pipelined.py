"""Segmented broadcasts and reduces along one tree that joins the trees of all levels.

In a broadcast leaders send to other groups first, then in their own.  MagPIe [Kielmann1999] has a
flat tree across groups and binomial trees inside; [Karonis2002] has more levels.  Both papers
choose the trees by fixed rules; here predicted times decide.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from collwise.algorithms.broadcast.segmented_tree import SEGMENT, TREES, segment_choices
from collwise.algorithms.levels.composition import (
    in_order_of_placement,
    parts_of,
    parts_parameter,
    register_multilevel,
)
from collwise.algorithms.parts import part
from collwise.algorithms.registry import Settings
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.model.limits import MOST_PIECES
from collwise.schedule.data_movement import DownTree
from collwise.schedule.hierarchy import TeamTree, hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank, UpTree
from collwise.schedule.trees import Tree
from collwise.timing.tree_times import tree_time

TREE_NAMES = ("chain", "binomial", "postal_tree")
"""Names of the trees that are tried with segments; `multilevel` tries all algorithms."""
UPWARDS = ("chain", "binomial", "postal_tree", "knomial", "alpha", "alpha_table")
"""Names of the trees that reduces may use: their subtrees have consecutive ranks.

In such a tree, the data that a rank receives is always the right operand of its combining.
"""
SLOWER = Fraction(3, 2)
"""An outermost tree is tried if its time is at most this multiple of the best tree's time."""
PARAMETERS = {
    "trees": parts_parameter("trees", "broadcast", "binomial | chain"),
    "segment": SEGMENT,
}


def joined_tree(problem: Problem, text: str, names: Iterable[str] = TREES) -> TeamTree:
    """The tree that joins the trees of all levels.

    text: names a tree for each level, the innermost first.   names: the allowed names.
    Raises InvalidArgument for a name that is not allowed.
    """
    teams = hierarchy_of(problem)
    parts = parts_of(text, "broadcast", teams.depth)
    for configured in parts:
        if configured.algorithm.short_name not in names:
            remedy = "give one of " + ", ".join(names)
            raise InvalidArgument("the trees of levels", f"{configured.label} is none", remedy)
    made: dict[tuple[int, int], Tree] = {}

    def tree(level: int, members: int) -> Tree:
        if (level, members) not in made:
            configured = parts[level - 1]
            team = Problem("broadcast", members, problem.nbytes)
            made[level, members] = TREES[configured.algorithm.short_name](
                team, dict(configured.settings)
            )
        return made[level, members]

    return TeamTree(teams, tree)


class Timed:
    """A tree over the ranks of one team, with the times of segmented broadcasts down this tree.

    name: one of TREE_NAMES.   level: the level of the team; 1 is the innermost.   machine: states
    what messages cost.   size: ranks of the team; 1 counts as 2.   nbytes: bytes to broadcast.
    """

    def __init__(self, name: str, level: int, machine: Levels, size: int, nbytes: int) -> None:
        self.law = OneLevel(machine, level)
        lam = f"(lam={self.law.planning_lam(min(nbytes, 4096))})" if name == "postal_tree" else ""
        self.label, self.problem = name + lam, Problem("broadcast", max(size, 2), nbytes)
        settings = dict(part(self.label, "broadcast").settings)
        self.tree = TREES[name](self.problem, settings)

    def time(self, segment: int) -> Fraction:
        """Exact seconds that a broadcast in the team takes, with segments of `segment` bytes."""
        return tree_time(self.tree, self.problem.nbytes, self.law, segment)


def segmented_trees(problem: Problem, machine: Levels) -> list[Settings]:
    """The settings to try: pairs of an outermost tree and a segment, the fastest trees first.

    For each inner level, the settings name the tree that is fastest with the segment.
    """
    depth = (teams := hierarchy_of(problem)).depth
    timed: list[tuple[Fraction, str, int]] = []
    for name in TREE_NAMES:
        across = Timed(name, depth, machine, teams.largest(depth), problem.nbytes)
        for choice in segment_choices(across.tree, across.problem, across.law):
            timed.append((across.time(choice["segment"]), across.label, choice["segment"]))
    choices: list[Settings] = []
    for time, outer, best in sorted(timed):
        if time > SLOWER * min(timed)[0]:
            break
        for segment in sorted({best, max(best // 2, problem.nbytes // MOST_PIECES + 1)}):
            inner = []
            for level in range(1, depth):
                here = level, machine, teams.largest(level), problem.nbytes
                trees = [Timed(name, *here) for name in TREE_NAMES]
                inner.append(min(trees, key=lambda tree: tree.time(segment)).label)
            choices.append({"trees": " | ".join([*inner, outer]), "segment": segment})
    return choices


def _reduce(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    items = -(-settings["segment"] // problem.itemsize)  # no element is cut
    tree = joined_tree(problem, settings["trees"], UPWARDS)
    return UpTree(tree, problem.nbytes, items * problem.itemsize)


register_multilevel(
    "broadcast/multilevel_pipelined",
    "segments down one tree: the tree among leaders, with a tree in each leader's group",
    "that of the outermost tree, and of the way down into the last group",
    lambda problem, settings: DownTree(
        joined_tree(problem, settings["trees"]), problem.nbytes, settings["segment"]
    ),
    segmented_trees,
    source=("Karonis2002",),
    parameters=PARAMETERS,
    segmented=True,
)
register_multilevel(
    "reduce/multilevel_pipelined",
    "segments up one tree: the tree among leaders, with a tree in each leader's group",
    "that of the outermost tree, and of the way out of the last group",
    _reduce,
    segmented_trees,
    source=("Karonis2002",),
    parameters=PARAMETERS,
    segmented=True,
    order=lambda problem: in_order_of_placement(replace(problem, order="rank")),
)
