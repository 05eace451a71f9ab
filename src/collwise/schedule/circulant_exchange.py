"""Reduce-scatter, and allgather, around a circle of any number of ranks, in pieces of the vector.

In each round a rank sends to several others, and about a radix-th of its blocks is left; radix 2
gives the rounds of [Traeff2024], radix p sends each block straight to its rank.  Every piece goes
through all rounds.  While its messages travel, those of later pieces are sent: what is ready first
for the oldest piece, if a message is there `latency` messages later.  All ranks do alike, so every
message has its partner at the same place of the other rank's list.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from typing import Any, NamedTuple

from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.reduction import Blocks, Circular, equal_parts, run_of_parts

_PARTS = scratch(0)
"""Where a rank's parts of all blocks are, as far as they have been combined."""


class Step(NamedTuple):
    """A message of every rank in one direction: so many blocks, over so many ranks.

    number: which scratch slot receives it.   final: what comes in completes a block.
    """

    number: int
    distance: int
    width: int
    final: bool
    gathers: bool


@lru_cache(maxsize=256)
def steps_by_round(ranks: int, radix: int, *, gathers: bool) -> tuple[tuple[Step, ...], ...]:
    """Those of the reduce-scatter, then, if it gathers, the same backwards.

    After a round to `left` blocks, rank r has parts of the blocks r … r + left − 1 (modulo p), to
    which every rank has contributed that will not send to it any more.
    """
    before, number, there = ranks, 1, list[tuple[Step, ...]]()
    while before > 1:
        left = -(-before // radix)
        distances = range(left, before, left)
        widths = (min(left, before - distance) for distance in distances)
        last = before - 1 if left == 1 else 0
        there.append(
            tuple(
                Step(number + place, distance, width, distance == last, gathers=False)
                for place, (distance, width) in enumerate(zip(distances, widths, strict=True))
            )
        )
        number += len(distances)
        before = left
    back = [tuple(step._replace(gathers=True) for step in steps) for steps in reversed(there)]
    return tuple(there + back * gathers)


class Event(NamedTuple):
    """A message of a step is sent, or received."""

    when: int
    sends: bool
    piece: int
    step: Any


@lru_cache(maxsize=64)
def events(rounds: tuple[tuple[Any, ...], ...], pieces: int, latency: int) -> tuple[Event, ...]:
    """What every rank does, in order; played for messages that are there `latency` sends later.

    rounds: the messages of a piece, by round, after all of which it can go on.
    """
    timeline, now = list[Event](), 0
    coming, ready = (
        [(0, piece, 0) for piece in range(pieces * bool(rounds))],
        list[tuple[int, int]](),
    )
    while coming or ready:
        while coming and (coming[0][0] <= now or not ready):
            when, *turn = heappop(coming)
            now = max(now, when)
            heappush(ready, (turn[0], turn[1]))
        piece, number = heappop(ready)
        for step in rounds[number]:
            timeline.append(Event(now, True, piece, step))
            timeline.append(Event(now + latency, False, piece, step))
            now += 1
        if number + 1 < len(rounds):
            heappush(coming, (now - 1 + latency, piece, number + 1))
    return tuple(sorted(timeline, key=lambda event: event[:2]))


@dataclass(frozen=True)
class CirculantExchange(Circular):
    """Block j, of p blocks of nearly equal length, is completed by rank j.

    An allreduce's pieces are cut into blocks, a reduce-scatter's blocks into pieces.
    """

    radix: int = 2
    pieces: int = 1
    latency: int = 1

    @property
    def unit(self) -> int:  # noqa: D102
        return super().unit * self.pieces

    @property
    def scatters(self) -> bool:
        """Whether every rank ends with its own block only."""
        return self.problem.kind.output == "own block"

    @property
    def events(self) -> tuple[Event, ...]:
        """What every rank does, in order."""
        rounds = steps_by_round(self.problem.ranks, self.radix, gathers=not self.scatters)
        return events(rounds, self.pieces, self.latency)

    @cached_property
    def _pieces(self) -> list[Blocks]:
        """Of the vector, or of a block if it is those that are cut."""
        length = self.problem.nbytes // (self.problem.ranks if self._cuts_blocks else 1)
        return equal_parts(Block(0, 0, length), self.pieces, self.problem.itemsize)

    @cached_property
    def _cuts_blocks(self) -> bool:
        return self.scatters and self.pieces > 1

    def blocks(self, piece: int, first: int, number: int) -> Blocks:
        """So many blocks of a piece from this one on, around the circle."""
        ranks = self.problem.ranks
        for part in self._pieces[piece]:
            if not self._cuts_blocks:
                return run_of_parts(part, first, number, ranks, self.problem.itemsize)
            block, others = self.problem.nbytes // ranks, range(first, first + number)
            return tuple(part._replace(offset=o % ranks * block + part.offset) for o in others)
        return ()

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, operations, begun = self.problem.ranks, list[Operation](), set[int]()
        for _, sends, piece, step in self.events if self.problem.nbytes else ():
            if piece not in begun and (vector := self.blocks(piece, 0, p)):
                operations.append(Copy(Slot.INPUT, _PARTS, vector))
            begun.add(piece)
            ahead, behind = (rank + step.distance) % p, (rank - step.distance) % p
            if sends == step.gathers:
                blocks = self.blocks(piece, rank, step.width)
            else:
                blocks = self.blocks(piece, ahead, step.width)
            if not blocks:
                continue
            if step.gathers:
                operations.append(Send(behind, blocks) if sends else Recv(ahead, blocks))
            elif sends:
                operations.append(Send(ahead, blocks, _PARTS))
            else:
                here, into = scratch(step.number), Slot.OUTPUT if step.final else _PARTS
                operations.append(Recv(behind, blocks, here))
                operations.append(Combine(here, _PARTS, into, blocks))
        return operations
