"""Circulant rounds: a root broadcasts k blocks to all ranks in k − 1 + ⌈log2 p⌉ rounds.

In a round all messages go to the rank `skip` further on.  The skips 1, …, ⌈⌈p/2⌉/2⌉, ⌈p/2⌉ are
used in this order, over and over.  A phase is q = ⌈log2 p⌉ rounds, one for each skip; the numbers
of the q blocks that a rank receives in it have all residues modulo q.  A rank computes these blocks
from its number alone, and sends the block that its target receives [Traeff2024b].  If the rounds
are run backwards, and blocks are combined instead of copied, they are a reduce.
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
"""One integer, or an array of integers; functions with such an argument accept both."""


@lru_cache(maxsize=256)
def skips(ranks: int) -> tuple[int, ...]:
    """The numbers 1, …, ⌈p/2⌉, p; each is half the next one, rounded up.

    All but the last are the skips: the distances over which ranks send in the rounds of a phase.
    """
    numbers = [ranks]
    while numbers[-1] > 1:
        numbers.append((numbers[-1] + 1) // 2)
    return tuple(reversed(numbers))


@lru_cache(maxsize=1 << 12)
def received(ranks: int, rank: int, most: int | None = None) -> tuple[int, ...]:
    """The number of the block that a rank except the root receives in each of a phase's q rounds.

    The root sends block b >= 0 in round b of this phase, and block −j in the j-th round before it.
    One entry is in 0 … q − 1: the first block that the rank receives at all.  The other entries are
    in −q … −1.  Every residue modulo q occurs once.
    most: compute only so many first rounds; None for all.   Source: [Traeff2024b] §3.
    """
    numbers = skips(ranks)
    rounds, goal = len(numbers) - 1, ranks + rank
    first = _first_block(rank, numbers)
    enough = rounds if most is None else most
    lower = list(range(-1, rounds))  # [index]: the next lower unused index
    higher = list(range(1, rounds + 2))
    chosen: list[int] = []

    def use(index: int) -> None:
        below, above = lower[index], higher[index]
        if above <= rounds:
            lower[above] = below
        if below >= 0:
            higher[below] = above

    def search(reached: int, below: int, index: int) -> None:
        """Extend a path of skips from rank `reached`; append their indices to `chosen`, by round.

        index: highest index of a skip to use.   below: the path has to end before this rank.
        """
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
    """The number of the block that a rank sends to its target in each round of a phase.

    Rounds are computed from last to first.  Each round halves an interval of ranks that contains
    this rank.  If the rank is in the lower half, its block stays the same; in the upper half, its
    block is a new one.  In a few rounds the halves do not determine the block; then the block that
    the target receives is searched for [Traeff2024b].  An entry whose target is the root is unused.
    """
    if not rank:
        return tuple(range(len(skips(ranks)) - 1))
    blocks = [
        int(block) if known or not peer else received(ranks, peer, k + 1)[k]
        for k, block, known, peer in _narrow(ranks, rank)
    ]
    return tuple(reversed(blocks))


@lru_cache(maxsize=8)
def received_by_all(ranks: int) -> NDArray[np.int8]:
    """The blocks that all ranks receive in a phase of ⌈log2 p⌉ rounds.

    table[rank, round] is a block's number.  The root sends block b >= 0 in round b of this phase,
    and block −j in the j-th round before it.  Row 0, the root's, has no meaning.
    """
    all_ranks, numbers = np.arange(ranks), skips(ranks)
    table = np.zeros((ranks, len(numbers) - 1), np.int8)
    for k, block, known, peer in _narrow(ranks, all_ranks):
        table[peer, k] = block
        for rank in peer[np.logical_not(known) & (all_ranks > 0) & (peer > 0)].tolist():
            table[rank, k] = received(ranks, rank, k + 1)[k]
        table[peer[0], k] = k
    return table


def _narrow(ranks: int, rank: Numbers) -> Iterator[tuple[int, Numbers, Numbers, Numbers]]:
    """For each round of a phase, the last first: (round, block sent, whether certain, target).

    A block that is not certain has to be found as the block that the target receives (`received`).
    rank: the sender, or an array of senders; then the last three entries are arrays too.
    """
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
    """The number of the first block that a rank receives; for the root, a phase's number of rounds.

    It is the index of the smallest skip in the greedy sum of skips that equals the rank.   numbers:
    the result of `skips`.
    """
    first = rank * 0 + len(numbers) - 1
    for index in range(len(numbers) - 2, -1, -1):
        fits = rank >= numbers[index]
        rank = rank - numbers[index] * fits
        first = first + (index - first) * (fits & (rank == 0))
    return first


@dataclass(frozen=True)
class Circulant(Rounds):
    """The rounds of a broadcast of `count` pieces; in a round all ranks send equally far."""

    def _round_numbers(self) -> tuple[range, int]:
        """The numbers of all rounds, and q, the number of rounds in a phase.

        Round number n is round n modulo q of its phase; the very last round ends a phase.
        """
        phase = len(skips(self.ranks)) - 1
        if not phase or not self.count:
            return range(0), phase
        first = (1 - self.count) % phase
        return range(first, first + self.count - 1 + phase), phase

    def of(self, rank: int) -> Iterator[Round]:  # noqa: D102
        numbers, phase = self._round_numbers()
        steps, last = skips(self.ranks)[:-1], self.count - 1
        received_blocks = received(self.ranks, rank)
        targets = [(rank + step) % self.ranks for step in steps]
        sent_blocks = sent(self.ranks, rank)
        for number in numbers:
            k = number % phase
            shift = number - k - numbers.start
            out = sent_blocks[k] + shift if targets[k] else -1
            got = received_blocks[k] + shift if rank else -1
            yield Round(
                targets[k],
                min(out, last) if out >= 0 else None,
                (rank - steps[k]) % self.ranks,
                min(got, last) if got >= 0 else None,
            )

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        table = received_by_all(self.ranks)
        (numbers, phase), steps = self._round_numbers(), skips(self.ranks)
        ranks, rounds = np.arange(self.ranks), []
        for number in numbers:
            k = number % phase
            piece = table[:, k].astype(np.int64) + (number - k - numbers.start)
            target = np.flatnonzero((piece >= 0) & (ranks > 0))
            source = (target - steps[k]) % self.ranks
            rounds.append((source, target, np.minimum(piece[target], self.count - 1)))
        return rounds
