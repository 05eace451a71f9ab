"""Allreduces in lanes: reduce-scatter in the nodes, allreduce each part across, collect inside."""

from fractions import Fraction

from collwise.algorithms import in_lanes
from collwise.algorithms.composition import (
    in_order_of_placement,
    one_part,
    part,
    register_multilevel,
)
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels
from collwise.schedule.hierarchy import hierarchy_of
from collwise.schedule.lanes import InEveryLane, InLanes
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank

PARAMETERS = {
    "across": one_part("across", "allreduce", "recursive_doubling"),
    "gather": one_part("gather", "s_to_p", "bruck"),
}


def build(problem: Problem, settings: Settings) -> Program:
    """The program of a problem."""
    one, made = part(settings["across"], "allreduce"), in_lanes.lanes_of(problem)
    if problem.ranks == 1 or not problem.nbytes:
        return SingleRank(problem)
    across = InEveryLane(made, in_lanes.across(made, problem, one))
    collect = in_lanes.collection_in_nodes(made, settings["gather"])
    return InLanes(made, across if len(made.nodes) > 1 else None, collect)


def by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    """About the time."""
    made = in_lanes.lanes_of(problem)
    nbytes = made.parts[0].length
    cost, combine = machine.at(1, nbytes), machine.combine(nbytes) or Fraction(0)
    inside = made.teams.largest(1) * (cost.gap + combine) + cost.latency
    return inside + in_lanes.time_in_lanes(problem, machine, settings["across"], settings["gather"])


def order(problem: Problem) -> Order:
    """The order of the ranks if every node has one rank, or two neighbours.

    In larger nodes the last ranks are combined first.
    """
    in_order = in_order_of_placement(problem) == "rank"
    return "rank" if in_order and hierarchy_of(problem).largest(1) <= 2 else "same"


register_multilevel(
    "allreduce/multilane",
    "reduce-scatter in the nodes, allreduce the parts side by side across, collect in every node",
    "the sum of the three",
    build,
    in_lanes.choices,
    source=("Traeff2020",),
    parameters=PARAMETERS,
    segmented=True,
    order=order,
    by_level=by_level,
)
