"""Allgatherv in pieces: broadcast rounds that run for all sources at once.

In the rounds used here, all ranks send over the same distance, whichever rank is the root.  So the
broadcasts of all sources can share messages: in each round a rank sends one message, with one piece
of every source whose broadcast makes this rank send in that round [Traeff2022].
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
    """Allgatherv in which all sources broadcast at once, each in `rounds.count` pieces.

    The pieces of one contribution differ in length by at most one byte; empty pieces are left out.
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
        """The blocks of one message: piece number `pieces[i]` of the i-th source.

        None stands for no piece of this source.  Empty pieces are left out.
        """
        blocks = []
        for (owner, nbytes), piece in zip(self.problem.sources, pieces, strict=True):
            if piece is not None:
                begin, end = (nbytes * at // self.rounds.count for at in (piece, piece + 1))
                if end > begin:
                    blocks.append(Block(owner, begin, end - begin))
        return tuple(blocks)

    def rows(self, *, combines: bool) -> Rows:
        """The messages of all ranks as rows.

        In each round, a rank's list has the send before the receive.
        """
        rounds, ranks = self.messages(of_one=self.problem.all_give_alike), self.problem.ranks
        all_ranks, place = np.arange(ranks, dtype=np.int64), np.zeros(ranks, np.int64)
        heard = np.zeros((len(rounds) + 1, ranks), np.int64)  # [round, rank]: receives before it
        parts = [[place[:0]] * 6]
        for number, (step, nbytes, latest) in enumerate(rounds):
            sends, target = np.broadcast_to(nbytes > 0, ranks), (all_ranks + step) % ranks
            hears = np.roll(sends, step)
            sent = place + sends
            after = heard[np.broadcast_to(latest + 1, ranks), all_ranks]
            columns = all_ranks, target, place, sent[target], np.broadcast_to(nbytes, ranks), after
            parts.append([column[sends] for column in columns])
            place = sent + hears
            heard[number + 1] = heard[number] + hears
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def _sources(self) -> tuple[Ints, Ints]:
        """For each source, in two arrays: its rank, and the index of its bytes in `_lengths`."""
        number = {nbytes: at for at, nbytes in enumerate(self._lengths)}
        rows = [(source.rank, number[source.nbytes]) for source in self.problem.sources]
        starts, which = np.array(rows, np.int64).reshape(-1, 2).T
        return starts, which

    @property
    def _lengths(self) -> list[int]:
        """The distinct sizes of contributions in bytes, ascending."""
        return sorted({source.nbytes for source in self.problem.sources})

    @property
    def _bytes_of(self) -> Ints:
        """Bytes of a piece: table[index of the contribution's size in `_lengths`, piece + 1].

        Column 0 stands for no piece and is 0.
        """
        count, lengths = self.rounds.count, np.array(self._lengths, dtype=object)
        if self.problem.nbytes * (count + 1) < 1 << 62:
            lengths = lengths.astype(np.int64)
        ends = np.multiply.outer(lengths, np.arange(count + 1)) // count
        return np.hstack([np.zeros_like(ends[:, :1]), np.diff(ends, axis=1)])

    def messages(self, *, of_one: bool) -> list[tuple[int, Ints, Ints]]:
        """For each round: the distance to the receivers, and two arrays with an entry per sender.

        The first array has the bytes of the sender's message.  The second has the latest round in
        which the sender received any of these bytes: the message waits for it; −1 for none.  Bytes
        beyond int64 are Python integers.   of_one: whether rank 0, whose sizes and rounds are those
        of every rank, is the only sender with entries.
        """
        p, (starts, which), bytes_of = self.problem.ranks, self._sources, self._bytes_of
        ranks = 1 if of_one else p
        # For source −r, rank 0 sends what rank r sends for source 0.
        owners = slice(1 if of_one else None)
        came = np.full((p, self.rounds.count), -1)  # round of receipt by [virtual rank, piece]
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
