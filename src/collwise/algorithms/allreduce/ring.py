"""Ring: every block travels around all ranks and is combined on its way, then travels on.

Neighbours only, in messages of n/p bytes: for very long vectors on few ranks.
"""

from dataclasses import dataclass

from collwise.algorithms.broadcast.scatter_ring import LIMIT
from collwise.algorithms.reductions import circular_time, unless_alone
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import ByRank, Span


@dataclass(frozen=True)
class Ring(ByRank):
    """Block j, of p blocks of nearly equal length, is completed by rank j."""

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p = self.problem.ranks
        blocks = [s.blocks for s in Span(0, self.problem.nbytes).parts(p, self.problem.itemsize)]
        after, before = (rank + 1) % p, (rank - 1) % p
        operations: list[Operation] = []
        for turn in range(p - 1):
            sent, received = blocks[(rank - 1 - turn) % p], blocks[(rank - 2 - turn) % p]
            into = Slot.OUTPUT if turn == p - 2 else scratch(0)
            if sent:
                operations.append(Send(after, sent, scratch(0) if turn else Slot.INPUT))
            if received:
                operations.append(Recv(before, received, into))
                operations.append(Combine(Slot.INPUT, into, into, received))
        for turn in range(p - 1):
            if sent := blocks[(rank - turn) % p]:
                operations.append(Send(after, sent))
            if received := blocks[(rank - 1 - turn) % p]:
                operations.append(Recv(before, received))
        return operations


register(
    Algorithm(
        name="allreduce/ring",
        summary="ring: blocks are combined from neighbour to neighbour, then passed around",
        source=("PatarasukYuan2009",),
        time="2(p − 1)(α + n/p·β) + (p − 1)/p·nγ",
        build=unless_alone(lambda problem, _: Ring(problem)),
        predicted=lambda problem, machine, _: circular_time(problem, machine, Ring),
        choices=lambda problem, _: [{}] if problem.ranks <= LIMIT else [],
        order=lambda problem: "same",
        segmented=True,
    )
)
