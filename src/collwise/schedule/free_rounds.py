"""Rounds for few ranks: each rank sends its newest piece that another rank lacks.

The root first sends every piece once, to the other ranks in turn; then it sends its newest pieces
again.  Thus many ranks get the last pieces from the root.  With few ranks and a high latency of λ
rounds, all pieces take up to λ rounds fewer than if the root sends each piece once.

On a machine with levels, a message takes as many rounds as the latency of its level.  The root
first sends each piece inside its own outermost group, if this has other ranks.  Ranks of this group
send a piece that another group lacks to that group first, and successive pieces to successive ranks
there.  So pieces reach the other groups early, and many are on their way to them at once.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

import numpy as np

from collwise.schedule.rounds import Rounds
from collwise.system.integers import Ints

_Messages = list[list[tuple[int, int, int, int]]]


@lru_cache(maxsize=64)
def _messages(
    ranks: int, count: int, latencies: tuple[int, ...], groups: tuple[tuple[int, ...], ...]
) -> _Messages:
    """For each round, all messages that are sent in it, as (source, target, piece, level).

    latencies: in rounds, by level.   groups: for each inner level, the number of each rank's group.
    Bit masks are sets of ranks or pieces.
    """
    everybody, depth = (1 << ranks) - 1, len(latencies)
    around = [[1 << rank for rank in range(ranks)]]  # mask of the group by [level][rank]
    for row in groups:
        masks = defaultdict[int, int](int)
        for rank, group in enumerate(row):
            masks[group] |= 1 << rank
        around.append([masks[group] for group in row])
    around.append([everybody] * ranks)
    meet = [[b ^ a for a, b in zip(around[at], around[at + 1], strict=True)] for at in range(depth)]
    whole = (1 << count) - 1
    lack, held = [everybody ^ 1] * count, [whole] + [0] * (ranks - 1)
    lacks = [0] + [whole] * (ranks - 1)  # by rank, the pieces that were not yet sent to it
    fresh = [[everybody ^ row[0] for row in around[:-1]] for _ in range(count)]
    across = around[-2][0] if depth > 1 else everybody  # ranks that send to other outermost groups
    near = across ^ 1 or everybody ^ 1  # ranks that the root serves first
    turn = deque(rank for rank in range(ranks) if near >> rank & 1)
    unsent, missing, last = 0, count * (ranks - 1), [0] * depth
    busy = defaultdict[int, int](int)  # [round]: ranks that receive in it
    arrivals = defaultdict[int, list[tuple[int, int]]](list)
    rounds: _Messages = []

    def wanted(rank: int, piece: int) -> tuple[int, int, int] | None:
        for level in range(depth - 1, -1, -1):
            if level == depth - 1 and not across >> rank & 1:
                continue
            there = lack[piece] & meet[level][rank] & fresh[piece][level]
            if there := there & ~busy[now + latencies[level]]:
                below = (1 << (last[level] if level else rank)) - 1
                return piece, (there & below or there).bit_length() - 1, level
        return None

    def choice(rank: int) -> tuple[int, int, int] | None:
        free = 0  # ranks that may receive from this one now
        for level in range(depth if across >> rank & 1 else depth - 1):
            free |= meet[level][rank] & ~busy[now + latencies[level]]
        pieces = 0
        while free:
            target = free.bit_length() - 1
            free ^= 1 << target
            pieces |= lacks[target]
        pieces &= held[rank]
        while pieces:
            piece = pieces.bit_length() - 1
            pieces ^= 1 << piece
            if message := wanted(rank, piece):
                return message
        return None

    def first(piece: int) -> tuple[int, int, int] | None:
        for target in turn:
            level = next(at for at in range(depth) if meet[at][0] >> target & 1)
            if not busy[now + latencies[level]] >> target & 1:
                turn.remove(target)
                turn.append(target)
                return piece, target, level
        return None

    while missing:
        now = len(rounds)
        for target, piece in arrivals.pop(now, ()):
            held[target] |= 1 << piece
        sent = []
        for rank in range(ranks):
            begins = not rank and unsent < count
            if (chosen := first(unsent) if begins else choice(rank)) is None:
                continue
            piece, target, level = chosen
            unsent += begins
            lack[piece] ^= 1 << target
            lacks[target] ^= 1 << piece
            fresh[piece] = [mask & ~around[at][target] for at, mask in enumerate(fresh[piece])]
            last[level] = target
            busy[now + latencies[level]] |= 1 << target
            arrivals[now + latencies[level]].append((target, piece))
            missing -= 1
            sent.append((rank, target, piece, level))
        rounds.append(sent)
    return rounds


@lru_cache(maxsize=64)
def _would_deadlock(rounds: "FreeRounds") -> bool:
    """Whether ranks that receive in order of arrival would deadlock if their sends block."""
    before: TopologicalSorter[int] = TopologicalSorter()
    sent, heard, came = dict[int, int](), dict[int, int](), dict[tuple[int, int], int]()
    all_messages = [
        (at, *message) for at, messages in enumerate(rounds.messages) for message in messages
    ]
    for number, (_, source, target, piece, _) in enumerate(all_messages):
        before.add(number, *{sent.get(source, -1), came.get((source, piece), -1)} - {-1})
        sent[source] = came[target, piece] = number
    arrival = [row[0] + rounds.latencies[row[4]] for row in all_messages]
    for number in sorted(range(len(all_messages)), key=arrival.__getitem__):
        if (previous := heard.get(target := all_messages[number][2])) is not None:
            before.add(number, previous)
        heard[target] = number
    try:
        before.prepare()
    except CycleError:
        return True
    return False


@dataclass(frozen=True)
class FreeRounds(Rounds):
    """The rounds of a broadcast of `count` pieces, found by simulation with integer latencies.

    groups: for every level but the outermost, the number of each rank's group; empty with one
    level.   latencies: in rounds, by level; `latency` is the least, or if empty the only one.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    latencies: tuple[int, ...] = ()

    @property
    def messages(self) -> _Messages:
        """For each round, (source, target, piece, level) of every message."""
        return _messages(self.ranks, self.count, self.latencies or (self.latency,), self.groups)

    @property
    def uneven(self) -> bool:  # noqa: D102
        return len(set(self.latencies)) > 1 and not _would_deadlock(self)

    @property
    def last(self) -> int:
        """The round in which the last message arrives; 0 without messages."""
        latencies = self.latencies or (self.latency,)
        numbered = enumerate(self.messages)
        return max((at + latencies[m[3]] for at, sent in numbered for m in sent), default=0)

    def delays(self) -> Ints:
        """For each message, by how many rounds its level's latency exceeds the least latency.

        All are 0 if ranks that receive in order of arrival would deadlock.
        """
        later = [(latency - self.latency) * self.uneven for latency in self.latencies] or [0]
        levels = [level for sent in self.messages for *_, level in sent]
        return np.array(later, np.int64)[levels]

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        tables = (np.array(sent, dtype=np.int64).reshape(-1, 4).T[:3] for sent in self.messages)
        return [(source, target, piece) for source, target, piece in tables]
