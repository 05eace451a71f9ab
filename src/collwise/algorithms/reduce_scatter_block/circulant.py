"""Reduce-scatter in ⌈log2 p⌉ rounds for any number of ranks [Traeff2024].

Each round about halves the blocks for which a rank still has a part, and ranks are neighbours at
about half the distance: no ranks are left over, as in recursive halving, where p is no 2^d.
"""

from dataclasses import dataclass
from itertools import pairwise

from collwise.algorithms.reductions import register_circular
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.reduction import Circular, run_of_parts

_PARTS = scratch(0)
"""Where a rank's parts of all blocks are, as far as they have been combined."""


@dataclass(frozen=True)
class Circulant(Circular):
    """Block j, of p blocks of nearly equal length, is completed by rank j.

    After a round to `left` blocks, rank r has parts of the blocks r … r + left − 1 (modulo p), to
    which every rank has contributed that will not send to it any more.
    """

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """The numbers of blocks before and after each round: p, ⌈p/2⌉, ⌈⌈p/2⌉/2⌉, …, 1."""
        left = [self.problem.ranks]
        while left[-1] > 1:
            left.append((left[-1] + 1) // 2)
        return list(pairwise(left))

    def blocks(self, first: int, number: int) -> tuple[Block, ...]:
        """So many blocks from this one on, around the circle."""
        problem = self.problem
        vector = Block(0, 0, problem.nbytes)
        return run_of_parts(vector, first, number, problem.ranks, problem.itemsize)

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p = self.problem.ranks
        operations: list[Operation] = []
        if vector := self.problem.vector:
            operations.append(Copy(Slot.INPUT, _PARTS, vector))
        for number, (before, left) in enumerate(self.rounds):
            if sent := self.blocks(rank + left, before - left):
                operations.append(Send((rank + left) % p, sent, _PARTS))
            if received := self.blocks(rank, before - left):
                into = Slot.OUTPUT if left == 1 else _PARTS
                operations.append(Recv((rank - left) % p, received, scratch(number + 1)))
                operations.append(Combine(scratch(number + 1), _PARTS, into, received))
        return operations


register_circular(
    "reduce_scatter_block/circulant",
    "in ⌈log2 p⌉ rounds of halving size, for any p",
    "⌈log2 p⌉α + (p − 1)/p·n(β + γ)",
    Circulant,
    source=("Traeff2024",),
)
