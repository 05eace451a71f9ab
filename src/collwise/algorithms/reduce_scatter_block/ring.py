"""Ring reduce-scatter: every block is combined on its way around a ring, to its own rank.

Only neighbours exchange messages, of n/p bytes each.  No algorithm sends fewer bytes per rank.
"""

from dataclasses import dataclass
from functools import cached_property

from collwise.algorithms.reductions import register_circular
from collwise.model.limits import RING_RANKS
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.reduction import Blocks, Circular, equal_parts


@dataclass(frozen=True)
class Ring(Circular):
    """The vector is cut into p blocks of nearly equal length; rank j gets block j."""

    @cached_property
    def parts(self) -> list[Blocks]:
        """The byte ranges of the p blocks; entry j is for block j."""
        whole = Block(0, 0, self.problem.nbytes)
        return equal_parts(whole, self.problem.ranks, self.problem.itemsize)

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, parts = self.problem.ranks, self.parts
        operations: list[Operation] = []
        for turn in range(p - 1):
            sent, received = parts[(rank - 1 - turn) % p], parts[(rank - 2 - turn) % p]
            into = Slot.OUTPUT if turn == p - 2 else scratch(0)
            if sent:
                operations.append(Send((rank + 1) % p, sent, scratch(0) if turn else Slot.INPUT))
            if received:
                operations.append(Recv((rank - 1) % p, received, into))
                operations.append(Combine(Slot.INPUT, into, into, received))
        return operations


register_circular(
    "reduce_scatter_block/ring",
    "ring: blocks are combined from neighbour to neighbour",
    "(p − 1)(α + n/p·(β + γ))",
    Ring,
    source=("PatarasukYuan2009",),
    choices=lambda problem, _: [{}] if problem.ranks <= RING_RANKS else [],
    searched=False,
)
