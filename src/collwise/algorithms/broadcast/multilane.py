"""Broadcasts in lanes: scatter in the root's node, broadcast each part across, collect inside."""

from fractions import Fraction

from collwise.algorithms import in_lanes
from collwise.algorithms.composition import one_part, part, register_multilevel
from collwise.algorithms.registry import Settings
from collwise.model.levels import Levels
from collwise.schedule.data_movement import ProgramSequence
from collwise.schedule.lanes import InEveryLane, InTeam, Lanes
from collwise.schedule.operations import Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Written


def _scattered(made: Lanes) -> InTeam:
    """The root sends every part but its own to the rank of its node whose lane carries it."""
    parts = made.parts
    lists: list[tuple[Operation, ...]] = [(Recv(0, (part,)),) for part in parts]
    lists[0] = tuple(Send(number, (part,)) for number, part in enumerate(parts) if number)
    return InTeam(made.nodes[0][: len(parts)], Written(tuple(lists)))


def _build(problem: Problem, settings: Settings) -> Program:
    one, made = part(settings["across"], "broadcast"), in_lanes.lanes_of(problem)
    if not problem.nbytes:
        return ProgramSequence([], problem.ranks)
    phases: list[Program] = [_scattered(made)]
    if len(made.nodes) > 1:
        phases.append(InEveryLane(made, in_lanes.across(made, problem, one)))
    phases.append(in_lanes.collected_from_root(made, settings["gather"]))
    return ProgramSequence(phases, problem.ranks)


def _by_level(problem: Problem, machine: Levels, settings: Settings) -> Fraction:
    made = in_lanes.lanes_of(problem)
    scattered = len(made.parts) * machine.at(1, made.parts[0].length).gap
    return scattered + in_lanes.time_in_lanes(
        problem, machine, settings["across"], settings["gather"]
    )


register_multilevel(
    "broadcast/multilane",
    "scatter in the root's node, broadcast the parts side by side across, collect in every node",
    "the sum of the three",
    _build,
    in_lanes.choices,
    source=("Traeff2020",),
    parameters={
        "across": one_part("across", "broadcast", "postal_tree(lam=4)"),
        "gather": one_part("gather", "s_to_p", "bruck"),
    },
    segmented=True,
    by_level=_by_level,
)
