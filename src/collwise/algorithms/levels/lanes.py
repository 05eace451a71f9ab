"""Lanes: the i-th ranks of all nodes form a team, which carries the i-th part of the bytes.

Several ranks of a node then send at once, which helps where one rank cannot saturate the network
card of its node [Traeff2020].  A broadcast scatters in the root's node, broadcasts each part across
nodes, and allgathers in every node.  An allreduce does a reduce-scatter in every node, allreduces
each part across nodes, and allgathers in every node.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from collwise.algorithms.levels.composition import (
    BEST,
    best_parts,
    in_order_of_placement,
    in_teams,
    register_multilevel,
)
from collwise.algorithms.parts import one_part, part
from collwise.algorithms.registry import Parameter, Settings
from collwise.errors import InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.schedule.combinators import On, OneVector, Task, Then
from collwise.schedule.data_movement import Scatter, pieces
from collwise.schedule.hierarchy import Teams, hierarchy_of
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Order, Problem, Source
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.trees import keeping

INSIDE = ("bruck", "ring", "xor", "recursive_doubling", "two_step")
"""Short names of the allgatherv algorithms that are tried inside a node."""


@dataclass(frozen=True)
class ReduceScatter(Program):
    """A reduce-scatter in a node: the i-th rank receives part i of all others and combines them.

    parts: the byte range of each part of the vector.   size: number of ranks in the node.
    """

    parts: tuple[Block, ...]
    size: int

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations, value = list[Operation](), int(Slot.INPUT)
        for step in range(1, self.size):
            to, source = (rank + step) % self.size, (rank - step) % self.size
            if to < len(self.parts):
                operations.append(Send(to, (self.parts[to],), Slot.INPUT))
            if rank < len(self.parts):
                part, received = (self.parts[rank],), scratch(step)
                left, right, into = value, received, received
                if source < rank:
                    left, right, into = received, value, scratch(0)
                if step == self.size - 1:
                    into = int(Slot.OUTPUT)
                operations.append(Recv(source, part, received))
                operations.append(Combine(left, right, into, part))
                value = into
        return operations


class Lanes:
    """The lanes of a problem, at most one per rank of the smallest node.

    parts: the byte range that each lane carries.   teams: the ranks of each lane, one in each node.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.hierarchy = problem, hierarchy_of(problem)
        self.nodes: Teams = self.hierarchy.teams[0]
        items = -(-problem.nbytes // (problem.itemsize * int(self.nodes.sizes.min())))
        self.parts = tuple(pieces(problem.nbytes, items * problem.itemsize or None))
        places, members = self.nodes.places, self.nodes.members
        self.teams = Teams(members[places[members] < len(self.parts)], places)

    def problem_across(self, nbytes: int) -> Problem:
        """The problem that the ranks of one lane solve, with vectors of `nbytes` bytes."""
        kind, order = self.problem.collective, self.problem.order
        ranks = max(len(self.nodes), 2)
        return Problem(kind, ranks, nbytes, 0, self.problem.itemsize, order)

    def problem_inside(self, ranks: int) -> Problem:
        """The allgatherv of all parts in a node of `ranks` ranks; the i-th rank has part i."""
        sources = tuple(Source(number, part.length) for number, part in enumerate(self.parts))
        return Problem("allgatherv", ranks, self.problem.nbytes, sources=sources)

    def across(self, label: str) -> list[Program]:
        """A list of one program, in which every lane runs the algorithm; empty for a single node.

        label: the algorithm with its settings.
        """
        algorithm = part(label, self.problem.collective)

        @cache
        def program(nbytes: int) -> Program:
            return algorithm.build(self.problem_across(nbytes))

        def task(number: int) -> Task:
            lane = self.parts[number]
            return Task(program(lane.length), lane.offset)

        if len(self.nodes) == 1:
            return []
        for number in range(len(self.parts)):  # all ranks raise the errors of all lanes
            task(number)
        return [On(self.teams, task, self.hierarchy.depth, crowd=len(self.parts))]

    def collected(self, label: str, *, from_root: bool = False) -> On:
        """The program in which the ranks of each node allgather the parts, so that all have all.

        label: the allgatherv algorithm.  Raises InvalidArgument if it cuts contributions.
        from_root: whether rank 0 has all parts already, so that no part is sent to rank 0.
        """
        allgather = part(label, "allgatherv")
        if allgather.algorithm.segmented:
            seen, remedy = "it cuts what ranks have", "give one that does not, such as bruck"
            raise InvalidArgument(f"{allgather.label} inside nodes", seen, remedy)
        begins = tuple(part.offset for part in self.parts)

        def program(ranks: int, *, has_all: bool = False) -> OneVector:
            return OneVector(allgather.build(self.problem_inside(ranks)), begins, has_all)

        first = program(int(self.nodes.sizes[0]), has_all=True) if from_root else None
        return in_teams(self.hierarchy, 1, program, first)


def _broadcast(problem: Problem, settings: Settings) -> Program:
    if not problem.nbytes:
        return Then(())
    lanes = Lanes(problem)
    first = Teams(np.array(lanes.nodes[0][: len(lanes.parts)]), np.zeros(problem.ranks, np.int64))
    flat = keeping(len(lanes.parts), lambda ranks: ranks - 1)
    scattered = Task(Scatter(flat, problem.nbytes, lanes.parts[0].length))
    phases: list[Program] = [On(first, lambda _: scattered, 1)]
    phases += lanes.across(settings["across"])
    phases.append(lanes.collected(settings["gather"], from_root=True))
    return Then(tuple(phases))


def allreduce(problem: Problem, settings: Settings) -> Program:
    """The program of an allreduce in lanes.

    settings: labels of the algorithms for each lane (`across`) and for every node (`gather`).
    """
    if problem.ranks == 1 or not problem.nbytes:
        return SingleRank(problem)
    lanes = Lanes(problem)
    inside = in_teams(lanes.hierarchy, 1, lambda ranks: ReduceScatter(lanes.parts, ranks))
    phases = (inside, *lanes.across(settings["across"]), lanes.collected(settings["gather"]))
    return Then(phases)


def choices(problem: Problem, machine: Levels) -> list[dict[str, str]]:
    """The settings to try: the best few algorithms across nodes, the best allgather inside nodes.

    Empty if there is only one lane or only one node.
    """
    lanes = Lanes(problem)
    if len(lanes.parts) < 2 or len(lanes.nodes) < 2:
        return []
    law = OneLevel(machine, lanes.hierarchy.depth, crowd=len(lanes.parts))
    outer = best_parts(lanes.problem_across(lanes.parts[0].length), law, None, BEST)
    inner = lanes.problem_inside(lanes.hierarchy.largest(1))
    gather = best_parts(inner, OneLevel(machine, 1), INSIDE, 1)
    return [{"across": label, "gather": gather[0]} for label in outer]


def order(problem: Problem) -> Order:
    """The order in which an allreduce in lanes combines: "same" if a node has more than two ranks.

    The reduce-scatter in such a node does not keep the rank order.  Otherwise the order is that of
    `in_order_of_placement`.
    """
    order = in_order_of_placement(problem)
    return "same" if order == "same" or hierarchy_of(problem).largest(1) > 2 else order


def parameters(collective: str, example: str) -> dict[str, Parameter]:
    """The parameters `across` and `gather` of an algorithm in lanes, by name.

    example: an algorithm of `collective` that errors suggest for `across`.
    """
    gather = one_part("gather", "allgatherv", "bruck")
    return {"across": one_part("across", collective, example), "gather": gather}


register_multilevel(
    "broadcast/multilane",
    "scatter in the root's node, broadcast the parts side by side, collect in every node",
    "the sum of the three steps",
    _broadcast,
    choices,
    source=("Traeff2020",),
    parameters=parameters("broadcast", "postal_tree(lam=4)"),
    segmented=True,
)
register_multilevel(
    "allreduce/multilane",
    "reduce-scatter in nodes, allreduce the parts side by side between them, collect in nodes",
    "the sum of the three steps",
    allreduce,
    choices,
    source=("Traeff2020",),
    parameters=parameters("allreduce", "recursive_doubling"),
    segmented=True,
    order=order,
)
