"""Reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any number of ranks [Traeff2024]."""

from dataclasses import dataclass

from collwise.algorithms.reduce_scatter_block import circulant
from collwise.algorithms.reductions import register_circular
from collwise.schedule.operations import Operation, Recv, Send


@dataclass(frozen=True)
class Circulant(circulant.Circulant):
    """After the reduce-scatter its rounds are run backwards, without combining."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, operations = self.problem.ranks, super().operations(rank)
        for before, left in reversed(self.rounds):
            if sent := self.blocks(rank, before - left):
                operations.append(Send((rank - left) % p, sent))
            if received := self.blocks(rank + left, before - left):
                operations.append(Recv((rank + left) % p, received))
        return operations


register_circular(
    "allreduce/circulant",
    "reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any p",
    "2⌈log2 p⌉α + (p − 1)/p·n(2β + γ)",
    Circulant,
    source=("Traeff2024",),
)
