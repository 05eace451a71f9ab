"""Blocks through a circulant graph: k blocks from a root to all ranks in k − 1 + ⌈log2 p⌉ rounds.

In round i every rank sends to the one `skip` further on, where the skips p, ⌈p/2⌉, ⌈⌈p/2⌉/2⌉, …, 1
take turns, the smallest first.  In each phase, as many rounds as there are skips (q), a rank
receives one block of each residue modulo q.  Which of them in which round follows from its number
alone, and what it sends is what the other end receives [Traeff2024b].  Backwards, and with
combining, the same rounds are a reduce.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.program import Program


@lru_cache(maxsize=256)
def skips(ranks: int) -> tuple[int, ...]:
    """1, …, ⌈p/2⌉, p: each is half the next one, rounded up."""
    numbers = [ranks]
    while numbers[-1] > 1:
        numbers.append((numbers[-1] + 1) // 2)
    return tuple(reversed(numbers))


@lru_cache(maxsize=1 << 12)
def received(ranks: int, rank: int) -> tuple[int, ...]:
    """The block that a rank receives in each round of a phase: −q … −1, or its first, 0 … q − 1.

    Block b >= 0 of a phase is sent by the root in round b; −j are blocks of the phase before, j
    rounds before its end.  Every residue modulo q occurs once.  Source: [Traeff2024b] §3.
    """
    numbers = skips(ranks)
    rounds, goal = len(numbers) - 1, ranks + rank
    first = _first_block(rank, numbers)
    unused = [block for block in range(rounds, -1, -1) if block != first]
    found: list[int] = []

    def search(reached: int, below: int, largest: int) -> None:
        """Go on from the rank `reached`, by skips of at most this index, to ranks `below`."""
        for index in [index for index in unused if index <= largest]:
            if len(found) == rounds:
                return
            at = reached + numbers[index]
            if index not in unused or at > goal - numbers[len(found)] or at >= below:
                continue
            if at <= goal - numbers[len(found) + 1]:
                search(at, below, index)
            if len(found) == rounds or reached > goal - numbers[len(found) + 1]:
                return
            below = at
            found.append(index)
            unused.remove(index)

    search(0, 2 * ranks, rounds)
    return tuple(first if index == rounds else index - rounds for index in found)


def _first_block(rank: int, numbers: Sequence[int]) -> int:
    """The smallest skip on the way to a rank by the largest skips that fit; q for the root."""
    for index in range(len(numbers) - 2, -1, -1):
        if numbers[index] <= rank:
            rank -= numbers[index]
            if not rank:
                return index
    return len(numbers) - 1


class Round(NamedTuple):
    """What one rank does in a round; a block is None where there is no message."""

    to: int
    sent: int | None
    source: int
    received: int | None


@dataclass(frozen=True)
class _Rounds(Program):
    """The pieces of a vector, all but the last one equally long, in rounds."""

    ranks: int
    pieces: tuple[Block, ...]

    def rounds(self, rank: int) -> Iterator[Round]:
        """The rounds of a broadcast, of one virtual rank."""
        numbers, count = skips(self.ranks), len(self.pieces)
        phase = len(numbers) - 1
        if not phase or not count:
            return
        own = received(self.ranks, rank)
        ends = [(rank + skip) % self.ranks for skip in numbers[:-1]]
        theirs = [received(self.ranks, end)[k] for k, end in enumerate(ends)]
        first = (1 - count) % phase  # so that the last round ends a phase
        for number in range(first, first + count - 1 + phase):
            k = number % phase
            shift = number - k - first
            sent = theirs[k] + shift if ends[k] else -1
            got = own[k] + shift if rank else -1
            yield Round(
                ends[k],
                min(sent, count - 1) if sent >= 0 else None,
                (rank - numbers[k]) % self.ranks,
                min(got, count - 1) if got >= 0 else None,
            )


class CirculantDown(_Rounds):
    """Broadcast from virtual rank 0."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations: list[Operation] = []
        for to, sent, source, got in self.rounds(rank):
            if sent is not None:
                operations.append(Send(to, (self.pieces[sent],)))
            if got is not None:
                operations.append(Recv(source, (self.pieces[got],)))
        return operations


class CirculantUp(_Rounds):
    """Reduce to virtual rank 0: the rounds of the broadcast backwards; in no order of the ranks."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        rounds = [*self.rounds(rank)][::-1]
        left = Counter(one.sent for one in rounds)  # by block: how often it still comes in
        values: dict[int, int] = {}  # by block: where its value lies, if not in the input
        operations: list[Operation] = []
        for to, sent, source, got in rounds:
            if got is not None:
                operations.append(Send(source, (self.pieces[got],), values.get(got, Slot.INPUT)))
            if sent is not None:
                piece, value = (self.pieces[sent],), values.get(sent, int(Slot.INPUT))
                into = Slot.OUTPUT if not rank and left[sent] == 1 else scratch(left[sent])
                operations.append(Recv(to, piece, into))
                operations.append(Combine(value, into, into, piece))
                values[sent] = into
                left[sent] -= 1
        return operations
