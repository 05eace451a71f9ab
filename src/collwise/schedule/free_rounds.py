"""Rounds for few ranks: each sends the newest piece that it has to any rank that lacks it.

The root first sends every piece once, in turn to all; then it helps with the newest as well.  So it
sends the last pieces to many ranks itself: with few ranks and a large λ, up to λ rounds fewer than
where each piece leaves the root once.

With levels a message takes as many rounds as those of its level.  The root sends to the others of
its own outermost group; whoever has a piece that another group lacks sends it there first, to one
rank after another.  So each piece crosses once, as early as it can, and many cross at once.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from collwise.schedule.rounds import Round, Rounds
from collwise.system.integers import Ints

_Messages = list[list[tuple[int, int, int, int]]]


@lru_cache(maxsize=64)
def _messages(
    ranks: int, count: int, latencies: tuple[int, ...], groups: tuple[tuple[int, ...], ...]
) -> _Messages:
    """By round: source, target, piece and level of every message.  Sets of ranks, pieces are bits.

    groups: of every inner level, the number of each rank's group.
    """
    everybody, depth = (1 << ranks) - 1, len(latencies)
    around = [[1 << rank for rank in range(ranks)]]  # by level and rank: the group
    for row in groups:
        masks = defaultdict[int, int](int)
        for rank, group in enumerate(row):
            masks[group] |= 1 << rank
        around.append([masks[group] for group in row])
    around.append([everybody] * ranks)
    meet = [[b ^ a for a, b in zip(around[at], around[at + 1], strict=True)] for at in range(depth)]
    lack, held = [everybody ^ 1] * count, [(1 << count) - 1] + [0] * (ranks - 1)
    fresh = [[everybody ^ row[0] for row in around[:-1]] for _ in range(count)]
    near = (around[-2][0] if depth > 1 else 1) ^ 1 or everybody ^ 1  # whom the root serves first
    turn = deque(rank for rank in range(ranks) if near >> rank & 1)
    unsent, missing, last = 0, count * (ranks - 1), [0] * depth
    busy = defaultdict[int, int](int)  # by round: who receives then
    arrivals = defaultdict[int, list[tuple[int, int]]](list)
    rounds: _Messages = []

    def wanted(rank: int, piece: int) -> Iterator[tuple[int, int]]:
        for level in range(depth - 1, -1, -1):
            idle = ~busy[len(rounds) + latencies[level]]
            if ranks_there := lack[piece] & meet[level][rank] & fresh[piece][level] & idle:
                below = rank if not level else last[level]
                yield (ranks_there & ((1 << below) - 1) or ranks_there).bit_length() - 1, level

    def choice(rank: int) -> tuple[int, int, int] | None:
        pieces = held[rank]
        while pieces:
            piece = pieces.bit_length() - 1
            pieces ^= 1 << piece
            if not lack[piece]:
                held[rank] ^= 1 << piece
            elif found := next(wanted(rank, piece), None):
                return piece, *found
        return None

    def first(piece: int) -> tuple[int, int, int] | None:
        for target in turn:
            level = next(at for at in range(depth) if meet[at][0] >> target & 1)
            if not busy[len(rounds) + latencies[level]] >> target & 1:
                turn.remove(target)
                turn.append(target)
                return piece, target, level
        return None

    while missing:
        for target, piece in arrivals.pop(len(rounds), ()):
            held[target] |= 1 << piece
        sent = []
        for rank in range(ranks):
            begins = not rank and unsent < count
            if (chosen := first(unsent) if begins else choice(rank)) is None:
                continue
            piece, target, level = chosen
            unsent += begins
            lack[piece] ^= 1 << target
            fresh[piece] = [mask & ~around[at][target] for at, mask in enumerate(fresh[piece])]
            last[level] = target
            there = len(rounds) + latencies[level]
            busy[there] |= 1 << target
            arrivals[there].append((target, piece))
            missing -= 1
            sent.append((rank, target, piece, level))
        rounds.append(sent)
    return rounds


@dataclass(frozen=True)
class FreeRounds(Rounds):
    """The rounds of so many pieces, played for integer latencies.

    groups: of every level but the outermost, the number of each rank's group; none where there is
    one level.   latencies: by level, `latency` the least of them.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    latencies: tuple[int, ...] = ()

    @property
    def messages(self) -> _Messages:
        """By round: source, target, piece and level of every message."""
        return _messages(self.ranks, self.count, self.latencies or (self.latency,), self.groups)

    @property
    def uneven(self) -> bool:  # noqa: D102
        return len(set(self.latencies)) > 1

    @property
    def last(self) -> int:
        """The round in which everything is there."""
        latencies = self.latencies or (self.latency,)
        every = enumerate(self.messages)
        return max((at + latencies[m[3]] for at, sent in every for m in sent), default=0)

    def of(self, rank: int) -> Iterator[Round]:
        """What takes longer is received later, so that it may be sent on `latency` rounds later."""
        later = [latency - self.latency for latency in self.latencies] or [0]
        sent, received = dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
        for number, messages in enumerate(self.messages):
            for by, target, piece, level in messages:
                if by == rank:
                    sent[number] = target, piece
                if target == rank:
                    received[number + later[level]] = by, piece
        for number in range(max([*sent, *received], default=-1) + 1):
            yield Round(*sent.get(number, (0, None)), *received.get(number, (0, None)))

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        tables = (np.array(sent, dtype=np.int64).reshape(-1, 4).T[:3] for sent in self.messages)
        return [(source, target, piece) for source, target, piece in tables]
