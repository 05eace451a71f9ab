"""Allgathervs over levels: gather inside groups, exchange across them, broadcast inside."""

from collections.abc import Iterable

from collwise.algorithms.broadcast.segmented_tree import TREES
from collwise.algorithms.levels.composition import (
    best_at_level,
    best_parts,
    parts_parameter,
    register_multilevel,
)
from collwise.algorithms.levels.joined import Joined, across
from collwise.algorithms.levels.pipelined import joined_tree
from collwise.algorithms.parts import one_part, part
from collwise.algorithms.registry import Settings, algorithms_for
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


def _build(problem: Problem, settings: Settings) -> Program:
    exchange = part(settings["exchange"], "allgatherv")
    if exchange.algorithm.segmented:
        seen, remedy = "it cuts what ranks have", "give one that does not, such as bruck"
        raise InvalidArgument(f"{exchange.label} across groups", seen, remedy)
    return Joined(problem, exchange, joined_tree(problem, settings["trees"]))


def _choices(problem: Problem, machine: Levels) -> Iterable[Settings]:
    teams = hierarchy_of(problem)
    whole = tuple(a.short_name for a in algorithms_for("allgatherv") if not a.segmented)
    outer = best_parts(across(problem, teams), OneLevel(machine, teams.depth), whole)
    inner = range(1, teams.depth)
    asked = problem, machine, "broadcast"
    trees = [best_at_level(*asked, level, tuple(TREES), 1)[0] for level in inner]
    trees.append("flat")  # never used: at the outermost level leaders exchange instead
    return [{"exchange": exchange, "trees": " | ".join(trees)} for exchange in outer]


register_multilevel(
    "allgatherv/multilevel",
    "gather in every group, exchange between the groups, broadcast in every group",
    "the sum of the levels' times, at most",
    _build,
    _choices,
    source=("Karonis2002", "Hambrusch1998 §2"),
    parameters={
        "exchange": one_part("exchange", "allgatherv", "bruck", levels=False),
        "trees": parts_parameter("trees", "broadcast", "binomial"),
    },
)
