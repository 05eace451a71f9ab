"""Reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any number of ranks [Traeff2024].

Each round about halves the blocks for which a rank still has a part, and ranks are neighbours at
about half the distance: no ranks are left over, as in halving and doubling, where p is no 2^d.
"""

from dataclasses import dataclass
from itertools import pairwise

from collwise.algorithms.reductions import circular_time, unless_alone
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.reduction import ByRank, Span

_PARTS = scratch(0)
"""Where a rank's parts of all blocks are, as far as they have been combined."""


def halvings(ranks: int) -> list[int]:
    """p, ⌈p/2⌉, ⌈⌈p/2⌉/2⌉, …, 1."""
    left = [ranks]
    while left[-1] > 1:
        left.append((left[-1] + 1) // 2)
    return left


@dataclass(frozen=True)
class Circulant(ByRank):
    """Block j, of p blocks of nearly equal length, is completed by rank j.

    After a round to `left` blocks, rank r has parts of the blocks r … r + left − 1 (modulo p), to
    which every rank has contributed that will not send to it any more.
    """

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p = self.problem.ranks
        vector = Span(0, self.problem.nbytes)

        def blocks(first: int, number: int) -> tuple[Block, ...]:
            return vector.around(first, number, p, self.problem.itemsize)

        operations: list[Operation] = []
        if vector.blocks:
            operations.append(Copy(Slot.INPUT, _PARTS, vector.blocks))
        rounds = list(pairwise(halvings(p)))
        for number, (before, left) in enumerate(rounds):
            if sent := blocks(rank + left, before - left):
                operations.append(Send((rank + left) % p, sent, _PARTS))
            if received := blocks(rank, before - left):
                into = Slot.OUTPUT if left == 1 else _PARTS
                operations.append(Recv((rank - left) % p, received, scratch(number + 1)))
                operations.append(Combine(scratch(number + 1), _PARTS, into, received))
        for before, left in reversed(rounds):
            if sent := blocks(rank, before - left):
                operations.append(Send((rank - left) % p, sent))
            if received := blocks(rank + left, before - left):
                operations.append(Recv((rank + left) % p, received))
        return operations


register(
    Algorithm(
        name="allreduce/circulant",
        summary="reduce-scatter and allgather in ⌈log2 p⌉ rounds each, for any p",
        source=("Traeff2024",),
        time="2⌈log2 p⌉α + (p − 1)/p·n(2β + γ)",
        build=unless_alone(lambda problem, _: Circulant(problem)),
        predicted=lambda problem, machine, _: circular_time(problem, machine, Circulant),
        order=lambda problem: "same",
        segmented=True,
    )
)
