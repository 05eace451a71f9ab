"""Rounds for a latency of λ > 1: a piece can be sent on λ rounds after it was sent.

In a round all ranks send over the same distance, to lower ranks (modulo p).  The distances are the
numbers of ranks N(t) that the fastest broadcast reaches by time t, largest first, over and over.  A
rank sends its newest piece that its target lacks; the root first sends every piece once.  Rounds
are found by simulating all ranks.  k pieces take a few t0 more than (k − 1 + T_λ(p)) t0: before the
last piece the root sends k − 1 others, and a broadcast takes at least T_λ(p) t0 [BarNoyKipnis1994].
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collwise.errors import BeyondLimits
from collwise.model.limits import ROUNDS_EVER
from collwise.schedule.rounds import Rounds
from collwise.system.integers import Ints


def distances(ranks: int, latency: int) -> list[int]:
    """The distances over which ranks send: the values of N(t) that are less than p, largest first.

    By time t, in t0, the fastest broadcast reaches N(t) = N(t − 1) + N(t − λ) ranks.
    """
    latency = min(latency, ranks)
    reached = [1] * latency
    while reached[-1] < ranks:
        reached.append(reached[-1] + reached[-latency])
    return sorted({number for number in reached if number < ranks}, reverse=True)


@lru_cache(maxsize=32)
def _received(ranks: int, count: int, latency: int) -> NDArray[np.int32]:
    """Which piece each rank receives in each round: table[round, rank], −1 for none."""
    kind = np.int64 if count < 63 else np.object_
    held: NDArray[Any] = np.zeros(ranks, kind)  # [rank]: bit mask of its pieces
    promised: NDArray[Any] = np.zeros(ranks, kind)
    unsent = held[0] = promised[0] = (1 << count) - 1
    steps, missing = distances(ranks, latency), (ranks - 1) * count
    rows: list[NDArray[np.int32]] = []
    under_way: list[tuple[Ints, NDArray[Any]]] = []
    while missing:
        if len(rows) >= latency:
            gets, sets = under_way[-latency]
            held[gets] |= sets
        step = steps[len(rows) % len(steps)]
        wanted = np.concatenate((held[step:], held[:step])) & ~promised
        wanted[0] = 0
        if new := int(wanted[-step]) & unsent:  # the root first sends every piece once
            wanted[-step] = new & -new
            unsent ^= new & -new
        row, gets = np.full(ranks, -1, np.int32), wanted.nonzero()[0]
        highest = [pieces.bit_length() - 1 for pieces in wanted[gets].tolist()]
        sets = np.array([1 << piece for piece in highest], kind)
        row[gets] = highest
        promised[gets] |= sets
        missing -= len(gets)
        rows.append(row)
        under_way.append((gets, sets))
    return np.array(rows, dtype=np.int32).reshape(-1, ranks)


@dataclass(frozen=True)
class PostalRounds(Rounds):
    """The rounds of a broadcast of `count` pieces, found by simulation with an integer latency.

    Raises BeyondLimits if (count + 64) × ranks exceeds ROUNDS_EVER: every rank has to simulate all
    ranks.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranks * (self.count + 64) > ROUNDS_EVER:
            asked = f"rounds for a latency of {self.latency} on {self.ranks:,} ranks"
            seen = f"{self.count:,} pieces would be played on all of them"
            raise BeyondLimits(asked, seen, "choose fewer ranks or pieces, or circulant")

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        rounds, steps = [], distances(self.ranks, self.latency)
        for number, row in enumerate(_received(self.ranks, self.count, self.latency)):
            target = np.flatnonzero(row >= 0)
            source = (target + steps[number % len(steps)]) % self.ranks
            rounds.append((source, target, row[target].astype(np.int64)))
        return rounds
