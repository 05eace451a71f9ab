"""Reduce-scatter and allgather around a circle of any number of ranks.

In each round of a reduce-scatter, a rank sends to up to radix − 1 others and keeps about 1/radix of
its blocks.  Radix 2 gives the rounds of [Traeff2024].  With radix p, each block is sent to its rank
directly.  All ranks run the same sequence of steps, so sends and receives match.

A vector in several pieces has one such program for each piece.  `interleaved` lets ranks send later
pieces while messages of earlier ones travel.

In a reduce, the parts of the result are gathered at the root after the reduce-scatter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from collwise.schedule.exchange import Stage
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.reduction import Blocks, Circular, run_of_parts
from collwise.schedule.rows import Class

_PARTS = scratch(0)
"""The scratch slot in which a rank keeps its partial results of all blocks."""


class Step(NamedTuple):
    """One message that every rank sends: `width` blocks, to the rank `distance` further on.

    number: the number of the scratch slot that receives the message.   final: whether combining it
    completes the receiver's own block.   gathers: whether the message belongs to the allgather,
    which sends in the other direction, or to a reduce's gather, where only some ranks send it.
    """

    number: int
    distance: int
    width: int
    final: bool
    gathers: bool


@lru_cache(maxsize=256)
def steps_by_round(
    ranks: int, radices: tuple[int, ...], *, gathers: bool
) -> tuple[tuple[Step, ...], ...]:
    """The steps of every round of a reduce-scatter, and of an allgather after it if `gathers`.

    The allgather has the same rounds in reverse order.   radices: one for each round; the last one
    is repeated as often as needed.
    After a round that leaves `left` blocks, rank r has partial results of blocks r … r + left − 1
    (modulo p), and has sent its partial results of all other blocks.
    """
    before, number, scatter = ranks, 1, list[tuple[Step, ...]]()
    while before > 1:
        left = -(-before // radices[min(len(scatter), len(radices) - 1)])
        distances = range(left, before, left)
        widths = (min(left, before - distance) for distance in distances)
        last = before - 1 if left == 1 else 0
        scatter.append(
            tuple(
                Step(number + place, distance, width, distance == last, gathers=False)
                for place, (distance, width) in enumerate(zip(distances, widths, strict=True))
            )
        )
        number += len(distances)
        before = left
    gather = [tuple(step._replace(gathers=True) for step in steps) for steps in reversed(scatter)]
    return tuple(scatter + gather * gathers)


@dataclass(frozen=True)
class CirculantExchange(Circular):
    """An allreduce, reduce or reduce-scatter: rank j completes block j of p nearly equal blocks.

    radix: in each round, a rank keeps about 1/radix of its blocks.
    latency: in a rank's list, at most this many sends of a round precede its first receive.
    part: (number, count): this program exchanges piece `number` of `count`.  Pieces are cut from
    the vector; in a reduce-scatter, from each block.
    stages: for a reduce, in place of `radix`: each round's radix, and whether the round divides
    vectors; the last stage is repeated.  A round that does not divide sends parts whole.  So there
    may be fewer parts than ranks; then some blocks, evenly spread, are empty.
    """

    radix: int = 2
    latency: int = 1
    part: tuple[int, int] = (0, 1)
    stages: tuple[Stage, ...] = ()

    @property
    def unit(self) -> int:  # noqa: D102
        return super().unit * self.part[1]

    @property
    def scatters(self) -> bool:
        """Whether every rank ends with its own block only."""
        return self.problem.kind.output == "own block"

    @property
    def to_root(self) -> bool:
        """Whether only rank 0 ends with the result."""
        return self.problem.kind.output == "root"

    def classes(self) -> list[Class] | None:  # noqa: D102
        return None if self.stages or self.to_root else super().classes()

    @property
    def _scatter_rounds(self) -> tuple[tuple[Step, ...], ...]:
        """The rounds of the reduce-scatter."""
        radices = tuple(stage.radix for stage in self.stages) or (self.radix,)
        return steps_by_round(self.problem.ranks, radices, gathers=False)

    @property
    def _gather_rounds(self) -> tuple[tuple[Step, ...], ...]:
        """Rounds after the reduce-scatter: of an allgather, of a gather at the root, or none."""
        if self.scatters:
            return ()
        radices = self._divisors if self.to_root else (self.radix,)
        both = steps_by_round(self.parts, radices, gathers=True)
        return both[len(both) // 2 :]

    @cached_property
    def _divisors(self) -> tuple[int, ...]:
        """The radices of the reduce-scatter's rounds that divide vectors; `radix` if none does."""
        count = len(self._scatter_rounds)
        stages = (*self.stages, *self.stages[-1:] * count)[:count]
        return tuple(stage.radix for stage in stages if stage.divided) or (self.radix,)

    @cached_property
    def parts(self) -> int:
        """Number of parts into which the vector is divided; at most as many blocks have bytes."""
        return min(prod(self._divisors), self.problem.ranks) if self.stages else self.problem.ranks

    def rounds(self) -> tuple[tuple[Step, ...], ...]:
        """For each round, its steps: the reduce-scatter, then the allgather or gather, if any."""
        return self._scatter_rounds + self._gather_rounds

    def block_of(self, part: Any) -> Any:
        """The number of the block that contains a part, which is also the rank that completes it.

        part: the number of the part, or an array of numbers.
        """
        return part * self.problem.ranks // self.parts

    def parts_before(self, block: Any) -> Any:
        """How many parts lie in blocks with numbers below `block` (an integer or an array)."""
        return -(-block * self.parts // self.problem.ranks)

    def _gather_messages(self, part: int) -> dict[int, tuple[bool, int]]:
        """In the gather at rank 0: the messages of the rank that has completed part number `part`.

        Maps the peer's distance, in parts, to a pair: whether the rank sends to the peer (otherwise
        it receives), and the number of parts in the message.
        """
        moves, at, need = dict[int, tuple[bool, int]](), part, self.parts
        for steps in reversed(self._gather_rounds):
            left = steps[0].distance
            if before := at // left * left:
                at, need = at - before, min(left, need - before)
                moves = {before: (True, need)}
                continue
            far = [] if at else [step.distance for step in steps if step.distance < need]
            moves |= {distance: (False, min(left, need - distance)) for distance in far}
            need = min(left, need)
        return moves

    @cached_property
    def _piece(self) -> Blocks:
        """The piece of the vector that is exchanged; of the first block, if blocks are cut."""
        number, count = self.part
        length = self.problem.nbytes // (self.problem.ranks if self._cuts_blocks else 1)
        return run_of_parts(Block(0, 0, length), number, 1, count, self.problem.itemsize)

    @property
    def _cuts_blocks(self) -> bool:
        return self.scatters and self.part[1] > 1

    def blocks(self, first: int, number: int) -> Blocks:
        """The bytes of this program's piece in `number` blocks from block `first` on, modulo p."""
        ranks, itemsize = self.problem.ranks, self.problem.itemsize
        for piece in self._piece:
            if not self._cuts_blocks:
                at = first, first + number, ranks
                begin, end, count = (int(self.parts_before(block)) for block in at)
                return run_of_parts(piece, begin, end - begin, count, itemsize)
            block, others = self.problem.nbytes // ranks, range(first, first + number)
            return tuple(piece._replace(offset=o % ranks * block + piece.offset) for o in others)
        return ()

    def _turns(self) -> Iterator[tuple[bool, Step]]:
        """Yield every step twice, in list order: (True, step) to send, (False, step) to receive.

        A receive follows its step's send and at most latency − 1 later sends of the round.
        """
        for steps in self.rounds():
            sends = [(at, True, step) for at, step in enumerate(steps)]
            receives = [(at + self.latency, False, step) for at, step in enumerate(steps)]
            for _, is_send, step in sorted(receives + sends, key=itemgetter(0, 1)):
                yield is_send, step

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, operations = self.problem.ranks, list[Operation]()
        if not (vector := self.blocks(0, p)):
            return operations
        operations.append(Copy(Slot.INPUT, _PARTS, vector))
        result: int = Slot.OUTPUT
        if self.to_root and rank:
            result = scratch(self._scatter_rounds[-1][-1].number + 1)
        part = self.parts_before(rank)
        moves = self._gather_messages(part) if self.to_root and self.block_of(part) == rank else {}
        for sends, step in self._turns():
            ahead, behind = (rank + step.distance) % p, (rank - step.distance) % p
            width = step.width
            if step.gathers and self.to_root:
                sends_it, number = moves.get(step.distance, (sends, 0))
                ahead, behind = (self.block_of(part + d) for d in (step.distance, -step.distance))
                end = self.block_of(part + number + (0 if sends else step.distance))
                width = (end - (rank if sends else ahead)) * (sends_it == sends and number > 0)
            blocks = self.blocks(rank if sends == step.gathers else ahead, width)
            if not blocks:
                continue
            if step.gathers:
                message = Send(behind, blocks, result) if sends else Recv(ahead, blocks, result)
                operations.append(message)
            elif sends:
                operations.append(Send(ahead, blocks, _PARTS))
            else:
                here, into = scratch(step.number), result if step.final else _PARTS
                operations.append(Recv(behind, blocks, here))
                operations.append(Combine(here, _PARTS, into, blocks))
        return operations
