"""Allreduces in lanes: reduce-scatter in the nodes, allreduce each part across, collect inside."""

from dataclasses import dataclass
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
from collwise.schedule.hierarchy import hierarchy_of, moved
from collwise.schedule.lanes import InTeam, Lanes, ReduceScatter
from collwise.schedule.operations import Copy, Operation, Slot
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank


@dataclass(frozen=True)
class InLanes(Program):
    """The three steps."""

    lanes: Lanes
    across: dict[int, InTeam]
    """By lane."""
    collect: tuple[Program, ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations, value, unused = ReduceScatter(self.lanes).with_value(rank)
        seat = self.lanes.teams.seat(1, rank)
        assert seat is not None
        if lane := self.across.get(seat.place):
            operations += moved(lane.operations(rank), value, Slot.OUTPUT, unused)[0]
        elif seat.place < len(self.lanes.parts):  # there is one node only
            operations.append(Copy(value, Slot.OUTPUT, (self.lanes.parts[seat.place],)))
        return operations + [op for phase in self.collect for op in phase.operations(rank)]


def _build(problem: Problem, settings: Settings) -> Program:
    one, made = part(settings["across"], "allreduce"), in_lanes.lanes_of(problem)
    if problem.ranks == 1 or not problem.nbytes:
        return SingleRank(problem)
    across = made.in_every_lane(in_lanes.across(made, problem, one))
    collect = in_lanes.collected(made, settings["gather"], root_has_all=False)
    return InLanes(made, dict(enumerate(across)), tuple(collect))


def _by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    made = in_lanes.lanes_of(problem)
    nbytes = made.parts[0].length
    cost, combine = machine.at(1, nbytes), machine.combine(nbytes) or Fraction(0)
    inside = max(map(len, made.nodes)) * (cost.gap + combine) + cost.latency
    return inside + in_lanes.time_in_lanes(problem, machine, settings["across"], settings["gather"])


def _order(problem: Problem) -> Order:
    """The order of the ranks if every node has one rank, or two neighbours.

    In larger nodes the last ranks are combined first.
    """
    in_order = in_order_of_placement(problem) == "rank"
    return "rank" if in_order and hierarchy_of(problem).largest(1) <= 2 else "same"


register_multilevel(
    "allreduce/multilane",
    "reduce-scatter in the nodes, allreduce the parts side by side across, collect in every node",
    "the sum of the three",
    _build,
    in_lanes.choices,
    source=("Traeff2020",),
    parameters={
        "across": one_part("across", "allreduce", "recursive_doubling"),
        "gather": one_part("gather", "s_to_p", "bruck"),
    },
    segmented=True,
    order=_order,
    by_level=_by_level,
)
