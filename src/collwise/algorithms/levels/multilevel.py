"""Collectives over levels: one algorithm among the leaders of groups, another inside each group.

A broadcast runs at one level after another, the outermost first, and a reduce the innermost first.
An allreduce reduces to the leaders of groups, allreduces among them, and broadcasts inside groups.
"""

from collections.abc import Iterable
from functools import partial

from collwise.algorithms.levels.composition import (
    best_at_level,
    combined_choices,
    in_all_teams,
    in_order_of_placement,
    in_teams,
    parts_of,
    parts_parameter,
    register_multilevel,
    team_problem,
)
from collwise.algorithms.levels.pipelined import UPWARDS, joined_tree
from collwise.algorithms.parts import one_part, part
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels
from collwise.schedule.combinators import Then
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank, UpTree

SHORT = ("binomial", "flat", "postal_tree", "halving_gather")
"""Short names of the reduces that are tried at each level; `pipelined` tries segmented ones."""


def _broadcast(problem: Problem, settings: Settings) -> Program:
    depth = hierarchy_of(problem).depth
    phases = in_all_teams(problem, settings["algorithms"], "broadcast", depth)
    return Then(tuple(reversed(phases)))


def _reduce(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    depth, text = hierarchy_of(problem).depth, settings["algorithms"]
    parts = parts_of(text, "reduce", depth)
    if problem.order != "fixed" and all(p.algorithm.short_name in UPWARDS for p in parts):
        return UpTree(joined_tree(problem, text, UPWARDS), problem.nbytes)
    return Then(tuple(in_all_teams(problem, text, "reduce", depth)))


def _allreduce(problem: Problem, settings: Settings) -> Program:
    if problem.ranks == 1:
        return SingleRank(problem)
    teams, across = hierarchy_of(problem), part(settings["across"], "allreduce")
    middle = in_teams(
        teams,
        teams.depth,
        lambda ranks: across.build(team_problem(problem, "allreduce", ranks)),
    )
    inwards = in_all_teams(problem, settings["reduces"], "reduce", teams.depth - 1)
    outwards = in_all_teams(problem, settings["broadcasts"], "broadcast", teams.depth - 1)
    return Then((*inwards, middle, *reversed(outwards)))


def _allreduce_choices(problem: Problem, machine: Levels) -> Iterable[Settings]:
    """The settings to try: the best few allreduces among the leaders of the outermost groups.

    Each has the best reduce and broadcast for every inner level.  Empty for a single level.
    """
    depth = hierarchy_of(problem).depth
    best = partial(best_at_level, problem, machine)
    reduces = " | ".join(best("reduce", level, SHORT, 1)[0] for level in range(1, depth))
    broadcasts = " | ".join(best("broadcast", level, None, 1)[0] for level in range(1, depth))
    return [
        {"reduces": reduces, "across": across, "broadcasts": broadcasts}
        for across in (best("allreduce", depth, None, 3) if reduces else ())
    ]


register_multilevel(
    "broadcast/multilevel",
    "between the leaders of groups, then inside, at each level by its best algorithm",
    "the sum of the levels' times, at most",
    _broadcast,
    lambda problem, machine: [
        {"algorithms": text} for text in combined_choices(problem, machine, "broadcast")
    ],
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "algorithms": parts_parameter("algorithms", "broadcast", "binomial | postal_tree(lam=4)")
    },
    segmented=True,
)
register_multilevel(
    "reduce/multilevel",
    "inside groups to their leaders, then between these, at each level by its best algorithm",
    "the sum of the levels' times, at most",
    _reduce,
    lambda problem, machine: [
        {"algorithms": text} for text in combined_choices(problem, machine, "reduce", SHORT)
    ],
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "algorithms": parts_parameter("algorithms", "reduce", "binomial | postal_tree(lam=4)")
    },
    segmented=True,
    order=in_order_of_placement,
)
register_multilevel(
    "allreduce/multilevel",
    "reduce inside the groups, allreduce between their leaders, broadcast inside the groups",
    "the sum of the levels' times, at most",
    _allreduce,
    _allreduce_choices,
    source=("Kielmann1999", "Karonis2002"),
    parameters={
        "reduces": parts_parameter("reduces", "reduce", "binomial"),
        "across": one_part("across", "allreduce", "recursive_doubling", levels=False),
        "broadcasts": parts_parameter("broadcasts", "broadcast", "binomial"),
    },
    segmented=True,
    order=in_order_of_placement,
)
