"""What algorithms in lanes share: the collection inside the nodes, and the choice of the parts.

Several ranks of a node carry a part each [Traeff2020].  Long messages take less time if one rank
alone cannot fill the node's card.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

from collwise.algorithms.composition import (
    BEST,
    LevelAlgorithm,
    best_parts,
    check_order,
    part,
    part_time,
)
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.schedule.hierarchy import InTeams, hierarchy_of
from collwise.schedule.lanes import Lanes, OfOneVector
from collwise.schedule.operations import Send, size_of
from collwise.schedule.problem import Problem, Source
from collwise.schedule.program import Program

INSIDE = ("bruck", "ring", "xor", "recursive_doubling", "two_step")
"""What is tried for the collection inside a node."""


def lanes_of(problem: Problem) -> Lanes:
    """The lanes of a problem."""
    return Lanes(hierarchy_of(problem), problem.nbytes, problem.itemsize)


def collection(lanes: Lanes, ranks: int) -> Problem:
    """The s-to-p broadcast of all parts in a node of so many ranks."""
    sources = tuple(Source(number, part.length) for number, part in enumerate(lanes.parts))
    return Problem("s_to_p", ranks, lanes.nbytes, sources=sources)


def _in_nodes(lanes: Lanes, label: str) -> Callable[[int], OfOneVector]:
    """The collection of all parts, by the ranks of a node."""
    one = part(label, "s_to_p")
    if one.algorithm.segmented:
        seen, remedy = "it cuts what ranks have", "give one that does not, such as bruck"
        raise InvalidArgument(f"{one.label} inside nodes", seen, remedy)
    begins = {number: part.offset for number, part in enumerate(lanes.parts)}

    @cache
    def program(ranks: int) -> OfOneVector:
        built = one.algorithm.build(collection(lanes, ranks), dict(one.settings))
        return OfOneVector(built, begins)

    return program


def collection_in_nodes(lanes: Lanes, label: str) -> InTeams:
    """Every rank gets all parts from those of its node."""
    return InTeams(lanes.teams, 1, _in_nodes(lanes, label))


def collected_from_root(lanes: Lanes, label: str) -> InTeams:
    """The same where rank 0 had all parts before."""
    program = _in_nodes(lanes, label)
    first = replace(program(int(lanes.nodes.sizes[0])), has_all=True)
    return InTeams(lanes.teams, 1, program, first)


def across(lanes: Lanes, problem: Problem, one: LevelAlgorithm) -> Callable[[int], Program]:
    """The program of the ranks of a lane, by the lane's bytes."""

    @cache
    def program(nbytes: int) -> Program:
        inner = lane_problem(lanes, problem, nbytes)
        if problem.kind.combines:
            check_order(one.algorithm, inner)
        return one.algorithm.build(inner, dict(one.settings))

    return program


def lane_problem(lanes: Lanes, problem: Problem, nbytes: int) -> Problem:
    """What the ranks of a lane do."""
    kind, order = problem.collective, problem.order
    return Problem(kind, max(len(lanes.nodes), 2), nbytes, 0, problem.itemsize, order)


def choices(problem: Problem, machine: Levels) -> list[dict[str, str]]:
    """The best few across, with the best collection inside; none if there is only one lane."""
    lanes = lanes_of(problem)
    if len(lanes.parts) < 2 or len(lanes.nodes) < 2:
        return []
    lane = lane_problem(lanes, problem, lanes.parts[0].length)
    outer = best_parts(lane, _law_of_lanes(lanes, machine), None, BEST)
    inner = collection(lanes, lanes.teams.largest(1))
    gather = best_parts(inner, OneLevel(machine, 1), INSIDE, 1)
    return [{"across": one, "gather": gather[0]} for one in outer]


def time_in_lanes(problem: Problem, machine: Levels, label: str, gather: str) -> Fraction:
    """Roughly the time: all lanes through the shared port of a node, then the collection."""
    lanes = lanes_of(problem)
    one, inside = part(label, problem.collective), part(gather, "s_to_p")
    lane = lane_problem(lanes, problem, lanes.parts[0].length)
    inner = collection(lanes, lanes.teams.largest(1))
    time = part_time(one.label, lane, _law_of_lanes(lanes, machine))
    return time + part_time(inside.label, inner, OneLevel(machine, 1))


def busy_across(problem: Problem, machine: Levels, label: str) -> tuple[Fraction, Fraction]:
    """How long messages across keep the first rank's own port busy, and that of its node."""
    lanes = lanes_of(problem)
    program = across(lanes, problem, part(label, problem.collective))(lanes.parts[0].length)
    sizes = [size_of(op) for op in program.operations(0) if isinstance(op, Send)]
    law, depth = _law_of_lanes(lanes, machine), len(machine.by_level)
    own = sum((machine.at(depth, nbytes).gap for nbytes in sizes), Fraction(0))
    return own, sum((law.message(nbytes).gap for nbytes in sizes), Fraction(0))


def _law_of_lanes(lanes: Lanes, machine: Levels) -> OneLevel:
    return OneLevel(machine, len(machine.by_level), crowd=len(lanes.parts))
