"""Pairwise exchange: every rank sends each block of its vector straight to the block's rank.

In round k rank r sends to rank r + k and receives from rank r − k: one message each, no forwarding,
so that where λ is high all are on their way at once.
"""

from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.broadcast.scatter_ring import LIMIT
from collwise.algorithms.reductions import unless_alone
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import ByRank
from collwise.timing import ideal_alike


@dataclass(frozen=True)
class Pairwise(ByRank):
    """Each rank combines its own contribution and those of r − 1, r − 2, …, as they come."""

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, operations = self.problem.ranks, list[Operation]()
        if not self.problem.nbytes:
            return operations
        own, value = self.problem.output_of(rank), int(Slot.INPUT)
        for distance in range(1, p):
            after = (rank + distance) % p
            into = Slot.OUTPUT if distance == p - 1 else scratch(distance)
            operations.append(Send(after, self.problem.output_of(after), Slot.INPUT))
            operations.append(Recv((rank - distance) % p, own, into))
            operations.append(Combine(value, into, into, own))
            value = into
        return operations


def _time(problem: Problem, machine: Machine, _: Settings) -> Fraction:
    return ideal_alike(Pairwise(problem).operations(0), machine)


register(
    Algorithm(
        name="reduce_scatter_block/pairwise",
        summary="pairwise exchange: every rank sends each block to the rank that needs it",
        source=("Thakur2005",),
        time="(p − 2 + λ)·t0 for t0 of a block, and combining",
        build=unless_alone(lambda problem, _: Pairwise(problem)),
        predicted=_time,
        choices=lambda problem, _: [{}] if problem.ranks <= LIMIT else [],
        order=lambda problem: "same",
        segmented=True,
    )
)
