"""Contributions of many sources in pieces, in the rounds of a broadcast from each.

In the rounds of `rounds.py` all ranks send by the same distance, whoever the root is.  So the
broadcasts of all sources can be made at once: what a rank sends in a round is one message, with a
piece of every source that has one on its way there [Traeff2022].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collwise.schedule.messages import Rows
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rounds import Rounds
from collwise.system.integers import Ints


@dataclass(frozen=True)
class AllRounds(Program):
    """The rounds of a broadcast, for all sources at once; every contribution has as many pieces.

    Lengths of pieces differ by a byte at most; empty ones are left out.
    """

    problem: Problem
    rounds: Rounds

    def is_alike(self) -> bool:  # noqa: D102
        return self.problem.all_give_alike

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

    def rows(self, *, combines: bool = False) -> Rows:
        """A list has a round's send, then its receipt."""
        rounds, ranks = self.messages(of_one=self.is_alike()), self.problem.ranks
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
        return Rows(*map(np.concatenate, zip(*parts, strict=True)))

    def messages(self, *, of_one: bool) -> list[tuple[int, Ints, Ints]]:
        """By round: how far it goes, the bytes that every rank sends, and what it waits for.

        That is the latest round in which a rank received what it sends, −1 for its own only.
        of_one: rank 0's only, of which the others are copies.   Bytes beyond int64 are objects.
        """
        p, count = self.problem.ranks, self.rounds.count
        lengths = np.array([s.nbytes for s in self.problem.sources], dtype=object)
        if self.problem.nbytes * (count + 1) < 1 << 62:
            lengths = lengths.astype(np.int64)
        ends = np.multiply.outer(np.arange(count + 1), lengths) // count
        bytes_of = np.vstack([np.zeros_like(ends[:1]), np.diff(ends, axis=0)])  # first: no piece
        columns = np.arange(len(lengths))
        starts = np.array([s.rank for s in self.problem.sources], dtype=np.int64)
        virtual = np.subtract.outer(np.arange(1 if of_one else p), starts) % p
        came = np.full((p, count), -1)  # by virtual rank and piece: in which round
        every, rounds = self.rounds.every(), []
        for number, (source, target, piece) in enumerate(every):
            sent, waits = np.full(p, -1), np.full(p, -1)
            sent[source], waits[source] = piece, came[source, piece]
            came[target, piece] = number
            sizes = bytes_of[sent[virtual] + 1, columns]
            latest = np.where(sizes > 0, waits[virtual], -1).max(axis=1)
            step = int(target[0] - source[0]) % p if len(source) else 0
            rounds.append((step, sizes.sum(axis=1), latest))
        return rounds
