"""Blocks through a circulant graph: k blocks from a root to all ranks in k − 1 + ⌈log2 p⌉ rounds.

In round i every rank sends to the one `skip` further on, where the skips p, ⌈p/2⌉, ⌈⌈p/2⌉/2⌉, …, 1
take turns, the smallest first.  In each phase, as many rounds as there are skips (q), a rank
receives one block of each residue modulo q.  Which of them in which round follows from its number
alone, and what it sends is what the other end receives [Traeff2024b].  Backwards, and with
combining, the same rounds are a reduce.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.schedule.rounds import Round, Rounds
from collwise.system.integers import Ints

Numbers: TypeAlias = Any
"""One integer, or an array of them: the arithmetic is the same."""


@lru_cache(maxsize=256)
def skips(ranks: int) -> tuple[int, ...]:
    """1, …, ⌈p/2⌉, p: each is half the next one, rounded up."""
    numbers = [ranks]
    while numbers[-1] > 1:
        numbers.append((numbers[-1] + 1) // 2)
    return tuple(reversed(numbers))


@lru_cache(maxsize=1 << 12)
def received(ranks: int, rank: int, most: int | None = None) -> tuple[int, ...]:
    """The block that a rank receives in each round of a phase: −q … −1, or its first, 0 … q − 1.

    most: so many of its rounds are enough.

    Block b >= 0 of a phase is sent by the root in round b; −j are blocks of the phase before, j
    rounds before its end.  Every residue modulo q occurs once.  Source: [Traeff2024b] §3.
    """
    numbers = skips(ranks)
    rounds, goal = len(numbers) - 1, ranks + rank
    first = _first_block(rank, numbers)
    enough = rounds if most is None else most
    lower = list(range(-1, rounds))  # of every index, the next lower one that is unused
    higher = list(range(1, rounds + 2))
    chosen: list[int] = []

    def use(index: int) -> None:
        below, above = lower[index], higher[index]
        if above <= rounds:
            lower[above] = below
        if below >= 0:
            higher[below] = above

    def search(reached: int, below: int, index: int) -> None:
        """Go on from the rank `reached`, by skips of at most this index, to ranks `below`."""
        while index >= 0 and len(chosen) < enough:
            at = reached + numbers[index]
            if at <= goal - numbers[len(chosen)] and at < below:
                if at <= goal - numbers[len(chosen) + 1]:
                    search(at, below, index)
                if len(chosen) >= enough or reached > goal - numbers[len(chosen) + 1]:
                    return
                below = at
                chosen.append(index)
                use(index)
            index = lower[index]

    use(first)
    search(0, 2 * ranks, rounds if first < rounds else rounds - 1)
    return tuple(first if index == rounds else index - rounds for index in chosen)


def sent(ranks: int, rank: int) -> tuple[int, ...]:
    """The block that a rank sends in each round of a phase: what its other end receives.

    From the largest skip down, the ranks are narrowed to those below `end`, this one now at `at`
    among them.  It sends one block until it is in the upper part, then the next.  In the few rounds
    for which that is not enough to know, the other end's block is searched for [Traeff2024b].
    What stands where the other end is the root is not sent.
    """
    if not rank:
        return tuple(range(len(skips(ranks)) - 1))
    blocks = [
        int(block) if known or not peer else received(ranks, peer, k + 1)[k]
        for k, block, known, peer in _narrowed(ranks, rank)
    ]
    return tuple(reversed(blocks))


@lru_cache(maxsize=8)
def received_by_all(ranks: int) -> NDArray[np.int8]:
    """By rank but for the root, and by round of a phase, the block: what the other end sends."""
    every, numbers = np.arange(ranks), skips(ranks)
    table = np.zeros((ranks, len(numbers) - 1), np.int8)
    for k, block, known, peer in _narrowed(ranks, every):
        table[peer, k] = block
        for rank in peer[np.logical_not(known) & (every > 0) & (peer > 0)].tolist():
            table[rank, k] = received(ranks, rank, k + 1)[k]
        table[peer[0], k] = k
    return table


def _narrowed(ranks: int, rank: Numbers) -> Iterator[tuple[int, Numbers, Numbers, Numbers]]:
    """As `sent` says, from the last round on: the block, whether it is known, the other end."""
    numbers = skips(ranks)
    rounds, first = len(numbers) - 1, _first_block(rank, numbers)
    at, end, block = rank, rank * 0 + ranks, first
    for k in range(rounds - 1, 0, -1):
        skip, less = numbers[k], numbers[k - 1]
        lower, upper = at < skip, at >= skip
        known = lower & ((at + skip < end) | (end < less) | ((k == 1) & (first > 0)))
        known = known | upper & ((k == 1) | (at > skip) | (end - skip < less))
        at, block = at - skip * upper, block + (k - rounds - block) * upper
        end = end - (end - skip) * (lower & (end > skip)) - skip * upper
        yield k, block, known, (rank + skip) % ranks
    if rounds:
        yield 0, first - rounds, rank >= 0, (rank + 1) % ranks


def _first_block(rank: Numbers, numbers: Sequence[int]) -> Numbers:
    """The smallest skip on the way to a rank by the largest skips that fit; q for the root."""
    first = rank * 0 + len(numbers) - 1
    for index in range(len(numbers) - 2, -1, -1):
        fits = rank >= numbers[index]
        rank = rank - numbers[index] * fits
        first = first + (index - first) * (fits & (rank == 0))
    return first


@dataclass(frozen=True)
class Circulant(Rounds):
    """The rounds of so many pieces."""

    def _numbers(self) -> tuple[range, int]:
        """The rounds, the first numbered such that the last ends a phase; rounds in a phase."""
        phase = len(skips(self.ranks)) - 1
        if not phase or not self.count:
            return range(0), phase
        first = (1 - self.count) % phase
        return range(first, first + self.count - 1 + phase), phase

    def of(self, rank: int) -> Iterator[Round]:  # noqa: D102
        numbers, phase = self._numbers()
        steps, last = skips(self.ranks)[:-1], self.count - 1
        own = received(self.ranks, rank)
        ends = [(rank + step) % self.ranks for step in steps]
        theirs = sent(self.ranks, rank)
        for number in numbers:
            k = number % phase
            shift = number - k - numbers.start
            out = theirs[k] + shift if ends[k] else -1
            got = own[k] + shift if rank else -1
            yield Round(
                ends[k],
                min(out, last) if out >= 0 else None,
                (rank - steps[k]) % self.ranks,
                min(got, last) if got >= 0 else None,
            )

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        table = received_by_all(self.ranks)
        (numbers, phase), steps = self._numbers(), skips(self.ranks)
        ranks, rounds = np.arange(self.ranks), []
        for number in numbers:
            k = number % phase
            piece = table[:, k].astype(np.int64) + (number - k - numbers.start)
            target = np.flatnonzero((piece >= 0) & (ranks > 0))
            source = (target - steps[k]) % self.ranks
            rounds.append((source, target, np.minimum(piece[target], self.count - 1)))
        return rounds
