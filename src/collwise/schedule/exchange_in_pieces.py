"""An exchange in groups, in pieces of the vector: while one piece travels, others are sent.

Every piece goes through all stages.  All ranks run the same sequence of sends and receives, so a
rank's k-th send of a piece in a stage matches the target's k-th receive.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from collwise.schedule.circulant_exchange import events
from collwise.schedule.exchange import Exchange, Stage, digit_by_digit
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.reduction import Circular, equal_parts
from collwise.schedule.rows import Class


def divisor(stages: Iterable[Stage]) -> int:
    """Number of parts into which the stages divide a vector."""
    return prod(stage.radix for stage in stages if stage.divided)


@dataclass(frozen=True)
class ExchangeInPieces(Circular):
    """An allreduce by stages of all ranks; every part of a piece has at least one element."""

    stages: tuple[Stage, ...]
    pieces: int
    latency: int

    @property
    def unit(self) -> int:  # noqa: D102
        return self.problem.itemsize * divisor(self.stages) * self.pieces

    def classes(self) -> list[Class] | None:
        """One class of all ranks, digit by digit, if all parts are equally long; else None."""
        uneven = self.problem.nbytes % self.unit
        return None if uneven else [digit_by_digit(self.stages, self.problem.ranks)]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        back = [stage.radix for stage in reversed(self.stages) if stage.divided]
        messages = [radix - 1 for radix in (*(stage.radix for stage in self.stages), *back)]
        rounds = tuple(
            tuple((number, place) for place in range(count))
            for number, count in enumerate(messages)
        )
        parts = equal_parts(self.problem.whole, self.pieces, self.problem.itemsize)
        lists = [self._by_round(rank, piece, messages) for (piece,) in parts]
        operations: list[Operation] = []
        for _, sends, piece, (number, place) in events(rounds, self.pieces, self.latency):
            sent, received = lists[piece][number]
            operations += [sent[place]] if sends else received[place]
        return operations

    def _by_round(
        self, rank: int, piece: Block, messages: list[int]
    ) -> list[tuple[list[Operation], list[list[Operation]]]]:
        """For each round, its sends, and each of its receives with the combines that follow it."""
        exchange = Exchange(replace(self.problem, nbytes=piece.length), self.stages)
        sent, received = list[Operation](), list[list[Operation]]()
        for op in exchange.operations(rank):
            blocks = tuple(b._replace(offset=b.offset + piece.offset) for b in op.blocks)
            moved = op._replace(blocks=blocks)
            if isinstance(op, Send):
                sent.append(moved)
            elif isinstance(op, Recv):
                received.append([moved])
            else:
                received[-1].append(moved)
        starts = [sum(messages[:number]) for number in range(len(messages))]
        ends = [start + count for start, count in zip(starts, messages, strict=True)]
        return [
            (sent[start:end], received[start:end]) for start, end in zip(starts, ends, strict=True)
        ]
