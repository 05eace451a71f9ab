"""Pairwise exchange: every rank sends each block of its vector directly to the block's rank.

In round k rank r sends one message to rank r + k and receives one from rank r − k.  No rank
forwards data, so with large λ many messages are in flight at once.
"""

from dataclasses import dataclass

from collwise.algorithms.reductions import register_circular
from collwise.model.limits import RING_RANKS
from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.reduction import Circular


@dataclass(frozen=True)
class Pairwise(Circular):
    """Rank r combines its own contribution with those of ranks r − 1, r − 2, … as they arrive."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, operations = self.problem.ranks, list[Operation]()
        if not self.problem.nbytes:
            return operations
        block, value = self.problem.output_of(rank), int(Slot.INPUT)
        for distance in range(1, p):
            after = (rank + distance) % p
            into = Slot.OUTPUT if distance == p - 1 else scratch(distance)
            operations.append(Send(after, self.problem.output_of(after), Slot.INPUT))
            operations.append(Recv((rank - distance) % p, block, into))
            operations.append(Combine(value, into, into, block))
            value = into
        return operations


register_circular(
    "reduce_scatter_block/pairwise",
    "pairwise exchange: every rank sends each block to the rank that needs it",
    "(p − 2 + λ)·t0 for t0 of a block, and combining",
    Pairwise,
    source=("Thakur2005",),
    choices=lambda problem, _: [{}] if problem.ranks <= RING_RANKS else [],
    usual=True,
)
