"""Contributions of many sources in pieces, in the rounds of a broadcast from each.

In the rounds of `rounds.py` all ranks send by the same distance, whoever the root is.  So the
broadcasts of all sources can be made at once: what a rank sends in a round is one message, with a
piece of every source that has one on its way there [Traeff2022].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rounds import Rounds
from collwise.schedule.rows import Class, Rows, around_a_circle
from collwise.system.integers import Ints


@dataclass(frozen=True)
class AllRounds(Program):
    """The rounds of a broadcast, for all sources at once; every contribution has as many pieces.

    Lengths of pieces differ by a byte at most; empty ones are left out.
    """

    problem: Problem
    rounds: Rounds

    def classes(self) -> list[Class] | None:  # noqa: D102
        return [around_a_circle(self.problem.ranks)] if self.problem.all_give_alike else None

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        ranks, sources = self.problem.ranks, self.problem.sources
        operations: list[Operation] = []
        for turns in zip(*(self.rounds.of((rank - s.rank) % ranks) for s in sources), strict=True):
            sent = self._blocks([turn.sent for turn in turns])
            received = self._blocks([turn.received for turn in turns])
            if sent:
                operations.append(Send((turns[0].to + sources[0].rank) % ranks, sent))
            if received:
                operations.append(Recv((turns[0].source + sources[0].rank) % ranks, received))
        return operations

    def _blocks(self, pieces: Sequence[int | None]) -> tuple[Block, ...]:
        """One piece of each source, by number; nothing where that is None."""
        blocks = []
        for (owner, nbytes), piece in zip(self.problem.sources, pieces, strict=True):
            if piece is not None:
                begin, end = (nbytes * at // self.rounds.count for at in (piece, piece + 1))
                if end > begin:
                    blocks.append(Block(owner, begin, end - begin))
        return tuple(blocks)

    def rows(self, *, combines: bool) -> Rows:
        """A list has a round's send, then its receipt."""
        rounds, ranks = self.messages(of_one=self.problem.all_give_alike), self.problem.ranks
        every, place = np.arange(ranks, dtype=np.int64), np.zeros(ranks, np.int64)
        heard = np.zeros((len(rounds) + 1, ranks), np.int64)  # before each round
        parts = [[place[:0]] * 6]
        for number, (step, nbytes, latest) in enumerate(rounds):
            sends, target = np.broadcast_to(nbytes > 0, ranks), (every + step) % ranks
            hears = np.roll(sends, step)
            sent = place + sends
            after = heard[np.broadcast_to(latest + 1, ranks), every]
            columns = every, target, place, sent[target], np.broadcast_to(nbytes, ranks), after
            parts.append([column[sends] for column in columns])
            place = sent + hears
            heard[number + 1] = heard[number] + hears
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def _sources(self) -> tuple[Ints, Ints]:
        """The sources' ranks, and to which of `lengths` each belongs."""
        number = {nbytes: at for at, nbytes in enumerate(self._lengths)}
        rows = [(source.rank, number[source.nbytes]) for source in self.problem.sources]
        starts, which = np.array(rows, np.int64).reshape(-1, 2).T
        return starts, which

    @property
    def _lengths(self) -> list[int]:
        """The bytes of contributions, each once."""
        return sorted({source.nbytes for source in self.problem.sources})

    @property
    def _bytes_of(self) -> Ints:
        """For each of `lengths` the bytes of no piece, and of every piece."""
        count, lengths = self.rounds.count, np.array(self._lengths, dtype=object)
        if self.problem.nbytes * (count + 1) < 1 << 62:
            lengths = lengths.astype(np.int64)
        ends = np.multiply.outer(lengths, np.arange(count + 1)) // count
        return np.hstack([np.zeros_like(ends[:, :1]), np.diff(ends, axis=1)])

    def messages(self, *, of_one: bool) -> list[tuple[int, Ints, Ints]]:
        """By round: how far it goes, the bytes that every rank sends, and what it waits for.

        That is the latest round in which a rank received what it sends, −1 for its own only.
        of_one: rank 0's only, of which the others are copies.   Bytes beyond int64 are objects.
        """
        p, (starts, which), bytes_of = self.problem.ranks, self._sources, self._bytes_of
        ranks = 1 if of_one else p
        owners = slice(1 if of_one else None)  # others send to others what the first one sends here
        came = np.full((p, self.rounds.count), -1)  # by virtual rank and piece: in which round
        rounds = []
        for number, (source, target, piece) in enumerate(self.rounds.every()):
            senders = np.add.outer(starts[owners], source).ravel() % ranks
            carried = bytes_of[which[owners, np.newaxis], piece + 1]
            waits = np.where(carried > 0, came[source, piece], -1).ravel()
            came[target, piece] = number
            sizes, latest = np.zeros(ranks, carried.dtype), np.full(ranks, -1)
            np.add.at(sizes, senders, carried.ravel())
            np.maximum.at(latest, senders, waits)
            step = int(target[0] - source[0]) % p if len(source) else 0
            rounds.append((step, sizes, latest))
        return rounds
