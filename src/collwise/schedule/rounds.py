"""Broadcasts in rounds, with at most one send of a rank per round; reversed, they are reduces."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from collwise.errors import BeyondLimits
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.program import Program
from collwise.schedule.rows import Rows
from collwise.system.integers import Ints

MAX_LATENCY = 64
"""The largest latency, in rounds, on at most MAX_LATENCY ranks; on more ranks, the largest latency
is the number of ranks."""


def highest(ranks: int) -> int:
    """The largest latency, in rounds, for which rounds can be made on this number of ranks."""
    return max(ranks, MAX_LATENCY)


class Round(NamedTuple):
    """What one rank does in a round of a broadcast.

    It sends piece number `sent` to rank `to`, and receives piece number `received` from rank
    `source`.  A number is None if there is no such message.
    """

    to: int
    sent: int | None
    """The number of the piece, or None."""
    source: int
    received: int | None


@dataclass(frozen=True)
class Rounds(ABC):
    """The rounds of a broadcast of `count` pieces from virtual rank 0.

    All ranks but rank 0 receive each piece once.   latency: a piece that is sent in round n can be
    sent on in round n + latency.
    Raises BeyondLimits if the latency exceeds `highest(ranks)`: most rounds would be empty.
    """

    ranks: int
    count: int
    latency: int

    def __post_init__(self) -> None:
        if self.latency > (most := highest(self.ranks)):
            asked = f"rounds for a latency of {self.latency:,} on {self.ranks:,} ranks"
            seen = "almost all rounds would be empty"
            raise BeyondLimits(asked, seen, f"give a latency of at most {most:,}")

    def of(self, rank: int) -> Iterator[Round]:
        """Yield the rounds of one virtual rank; this default selects them from those of all ranks.

        A round may have no message.  A round with several receives yields an entry for each.
        """
        rounds, source, target, piece, heard = self._table
        sent, received = dict[int, tuple[int, int]](), defaultdict[int, list[tuple[int, int]]](list)
        for row in np.flatnonzero(source == rank).tolist():
            sent[int(rounds[row])] = int(target[row]), int(piece[row])
        for row in np.flatnonzero(target == rank).tolist():
            received[int(heard[row])].append((int(source[row]), int(piece[row])))
        for number in range(int(heard.max(initial=-1)) + 1):
            first, *others = received.get(number, [(0, None)])
            yield Round(*sent.get(number, (0, None)), *first)
            for source_and_piece in others:  # receives of the same round, from other levels
                yield Round(0, None, *source_and_piece)

    @cached_property
    def _table(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """All messages, in columns: round, source, target, piece, and the round of the receive."""
        messages = self.every()
        number = np.repeat(np.arange(len(messages)), [len(target) for _, target, _ in messages])
        nothing = np.zeros((3, 0), np.int64)
        source, target, piece = map(np.concatenate, zip(nothing, *messages, strict=True))
        return number, source, target, piece, number + self.delays()

    def delays(self) -> Ints | int:
        """Rounds from a message's send to its receive in the lists: by message, or one number."""
        return 0

    @property
    def uneven(self) -> bool:
        """Whether `delays` may differ between messages that are sent in the same round."""
        return False

    @abstractmethod
    def every(self) -> list[tuple[Ints, Ints, Ints]]:
        """For each round, the sources, targets and piece numbers of all messages."""


@dataclass(frozen=True)
class DownRounds(Program):
    """A broadcast of `pieces` in `rounds`: in each round, a rank sends before it receives."""

    rounds: Rounds
    pieces: tuple[Block, ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations: list[Operation] = []
        for to, sent, source, received in self.rounds.of(rank):
            if sent is not None:
                operations.append(Send(to, (self.pieces[sent],)))
            if received is not None:
                operations.append(Recv(source, (self.pieces[received],)))
        return operations

    def rows(self, *, combines: bool) -> Rows | None:
        """A row for each message; None if a rank may receive two messages in a round."""
        if self.rounds.uneven:
            return None
        length = np.array([piece.length for piece in self.pieces], dtype=np.int64)
        place, heard = np.zeros((2, self.rounds.ranks), dtype=np.int64)
        brought = np.zeros((self.rounds.ranks, len(self.pieces)), np.int64)
        parts = [[place[:0]] * 6]
        for source, target, piece in self.rounds.every():
            if len(np.unique(target)) < len(target):
                return None  # a rank receives twice in a round: only lists say in which order
            at_source, after = place[source], brought[source, piece]
            place[source] += 1
            parts.append([source, target, at_source, place[target], length[piece], after])
            place[target] += 1
            heard[target] += 1
            brought[target, piece] = heard[target]
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class UpRounds(Program):
    """A reduce to virtual rank 0 by a broadcast's rounds in reverse; it ignores rank order."""

    rounds: Rounds
    pieces: tuple[Block, ...]

    def rows(self, *, combines: bool) -> Rows | None:
        """All messages, and combines if `combines`; None if a rank may receive twice in a round."""
        messages = self.rounds.every()
        if self.rounds.uneven or any(len(np.unique(t)) < len(t) for _, t, _ in messages):
            return None  # a rank receives twice in a round: only lists say in which order
        if not messages or not self.pieces:
            return Rows.counted(*(np.zeros(0, np.int64) for _ in range(6)))
        number = np.repeat(np.arange(len(messages)), [len(target) for _, target, _ in messages])
        to, by, piece = (np.concatenate(column) for column in zip(*messages, strict=True))
        # All receives, each with its combine; then all sends.
        rank = np.concatenate((to, by))
        late = np.concatenate((-number, -number - self.rounds.latency))
        sends = np.repeat([0, 1], len(by))
        order = np.lexsort((sends, late, rank))
        begins = np.searchsorted(rank[order], np.arange(self.rounds.ranks))[rank]
        place, heard = (np.zeros_like(rank) for _ in range(2))
        for column, weight in ((place, 2 - sends), (heard, (1 + combines) * (1 - sends))):
            before = np.cumsum(weight[order]) - weight[order]
            column[order] = before - before[begins[order]]
        behind = np.zeros((self.rounds.ranks, len(self.pieces)), np.int64)
        np.maximum.at(behind, (to, piece), heard[: len(to)] + 1 + combines)
        length = np.array([block.length for block in self.pieces], dtype=np.int64)[piece]
        at_target, at_source = place[: len(to)], place[len(to) :]
        rows = [[by, to, at_source, at_target, length, behind[by, piece]]]
        if combines:
            rows.append([to, to, at_target + 1, at_target + 1, length, heard[: len(to)] + 1])
        return Rows.counted(*map(np.concatenate, zip(*rows, strict=True)))

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        rounds = [*self.rounds.of(rank)]
        left = Counter(turn.sent for turn in rounds)  # [piece]: number of receives that are left
        values: dict[int, int] = {}  # [piece]: slot of its value, if not the input
        operations: list[Operation] = []
        # In reverse, a rank returns a piece once all ranks to which it would send it have done so.
        sends = [(number + self.rounds.latency, 1, number) for number in range(len(rounds))]
        receives = [(number, 0, number) for number in range(len(rounds))]
        for _, sends_it, number in sorted(sends + receives, key=lambda e: (-e[0], e[1])):
            to, sent, source, received = rounds[number]
            if sends_it and received is not None:
                value = values.get(received, int(Slot.INPUT))
                operations.append(Send(source, (self.pieces[received],), value))
            if not sends_it and sent is not None:
                piece, value = (self.pieces[sent],), values.get(sent, int(Slot.INPUT))
                into = Slot.OUTPUT if not rank and left[sent] == 1 else scratch(left[sent])
                operations.append(Recv(to, piece, into))
                operations.append(Combine(value, into, into, piece))
                values[sent] = into
                left[sent] -= 1
        return operations
