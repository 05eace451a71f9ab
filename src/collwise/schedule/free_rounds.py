"""Rounds for few ranks: each sends the newest piece that it has to any rank that lacks it.

The root first sends every piece once, in turn to all; then it helps with the newest as well.  So it
sends the last pieces to many ranks itself: with few ranks and a large λ, up to λ rounds fewer than
where each piece leaves the root once.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from collwise.schedule.rounds import Round, Rounds
from collwise.system.integers import Ints

_Messages = list[list[tuple[int, int, int]]]


@lru_cache(maxsize=64)
def _messages(ranks: int, count: int, latency: int) -> _Messages:
    """By round: source, target and piece of every message.  Sets of ranks or pieces are bits."""
    others = (1 << ranks) - 2
    lack, held = [others] * count, [(1 << count) - 1] + [0] * (ranks - 1)
    unsent, turn, missing = 0, deque(range(1, ranks)), count * (ranks - 1)
    rounds: _Messages = []
    while missing:
        if len(rounds) >= latency:
            for _, target, piece in rounds[-latency]:
                held[target] |= 1 << piece
        idle, sent = others, list[tuple[int, int, int]]()
        for rank in range(ranks):
            if not rank and unsent < count:
                piece, target = unsent, turn[0]
                turn.rotate(-1)
                unsent += 1
            else:
                pieces, piece, wanted = held[rank], -1, 0
                while pieces and not wanted:
                    piece = pieces.bit_length() - 1
                    wanted = lack[piece] & idle
                    pieces ^= 1 << piece
                    if not lack[piece]:
                        held[rank] ^= 1 << piece
                if not wanted:
                    continue
                target = (wanted & ((1 << rank) - 1) or wanted).bit_length() - 1
            lack[piece] ^= 1 << target
            idle ^= 1 << target
            missing -= 1
            sent.append((rank, target, piece))
        rounds.append(sent)
    return rounds


@dataclass(frozen=True)
class FreeRounds(Rounds):
    """The rounds of so many pieces, played for an integer latency."""

    def of(self, rank: int) -> Iterator[Round]:  # noqa: D102
        for messages in _messages(self.ranks, self.count, self.latency):
            to, sent, source, received = 0, None, 0, None
            for by, target, piece in messages:
                if by == rank:
                    to, sent = target, piece
                if target == rank:
                    source, received = by, piece
            yield Round(to, sent, source, received)

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        tables = (
            np.array(sent, dtype=np.int64).reshape(-1, 3).T
            for sent in _messages(self.ranks, self.count, self.latency)
        )
        return [(source, target, piece) for source, target, piece in tables]
