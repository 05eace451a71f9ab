"""Ring allreduce: a reduce-scatter and then an allgather around a ring.

Only neighbours exchange messages, of n/p bytes.  The ring is for very long vectors on few ranks.
"""

from dataclasses import dataclass

from collwise.algorithms.reduce_scatter_block import ring
from collwise.algorithms.reductions import register_circular
from collwise.model.limits import RING_RANKS
from collwise.schedule.operations import Operation, Recv, Send


@dataclass(frozen=True)
class Ring(ring.Ring):
    """The ring reduce-scatter, then an allgather around the same ring."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, parts, operations = self.problem.ranks, self.parts, super().operations(rank)
        for turn in range(p - 1):
            if sent := parts[(rank - turn) % p]:
                operations.append(Send((rank + 1) % p, sent))
            if received := parts[(rank - 1 - turn) % p]:
                operations.append(Recv((rank - 1) % p, received))
        return operations


register_circular(
    "allreduce/ring",
    "ring: blocks are combined from neighbour to neighbour, then passed around",
    "2(p − 1)(α + n/p·β) + (p − 1)/p·nγ",
    Ring,
    source=("PatarasukYuan2009",),
    choices=lambda problem, _: [{}] if problem.ranks <= RING_RANKS else [],
    usual=True,
)
