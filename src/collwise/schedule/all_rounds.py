"""Allgatherv in pieces: broadcast rounds that run for all sources at once.

In the rounds used here, all ranks send over the same distance, whichever rank is the root.  So the
broadcasts of all sources can share messages: per round a rank sends at most one, with one piece
of every source whose broadcast makes this rank send in that round [Traeff2022].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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
        ranks = self.problem.ranks
        virtual = [(rank - source.rank) % ranks for source in self.problem.sources]
        operations: list[Operation] = []
        for step, sent, received in self._pieces:
            if blocks := self._blocks(sent[virtual].tolist()):
                operations.append(Send((rank + step) % ranks, blocks))
            if blocks := self._blocks(received[virtual].tolist()):
                operations.append(Recv((rank - step) % ranks, blocks))
        return operations

    @cached_property
    def _pieces(self) -> list[tuple[int, Ints, Ints]]:
        """For each round: the distance to receivers, and pieces that virtual ranks send and get.

        Both arrays have an entry per virtual rank: a piece's number, or −1 for none.
        """
        rounds = []
        for source, target, piece in self.rounds.every():
            sent, received = np.full((2, self.problem.ranks), -1)
            sent[source] = received[target] = piece
            step = int(target[0] - source[0]) if len(source) else 0
            rounds.append((step, sent, received))
        return rounds

    def _blocks(self, pieces: Sequence[int]) -> tuple[Block, ...]:
        """The blocks of one message: piece number `pieces[i]` of the i-th source.

        −1 stands for no piece of this source.  Empty pieces are left out.
        """
        some = [cut[piece] for cut, piece in zip(self._cut, pieces, strict=True) if piece >= 0]
        return tuple([block for block in some if block.length])

    @cached_property
    def _cut(self) -> list[list[Block]]:
        """The pieces of each source's contribution."""
        cut, count = [], self.rounds.count
        for owner, nbytes in self.problem.sources:
            ends = [nbytes * number // count for number in range(count + 1)]
            cut.append([Block(owner, begin, end - begin) for begin, end in pairwise(ends)])
        return cut

    def rows(self, *, combines: bool) -> Rows | None:
        """All messages as rows; None if all ranks contribute equally: then `classes` is enough.

        In each round, a rank's list has the send before the receive.
        """
        if self.problem.all_give_alike:
            return None
        rounds, ranks = self._messages(), self.problem.ranks
        all_ranks, place = np.arange(ranks, dtype=np.int64), np.zeros(ranks, np.int64)
        heard = np.zeros((len(rounds) + 1, ranks), np.int64)  # [round, rank]: receives before it
        parts = [[place[:0]] * 6]
        for number, (step, nbytes, latest) in enumerate(rounds):
            sends, target = nbytes > 0, (all_ranks + step) % ranks
            hears = np.roll(sends, step)
            sent = place + sends
            after = heard[latest + 1, all_ranks]
            columns = all_ranks, target, place, sent[target], nbytes, after
            parts.append([column[sends] for column in columns])
            place = sent + hears
            heard[number + 1] = heard[number] + hears
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))

    def _messages(self) -> list[tuple[int, Ints, Ints]]:
        """For each round: the distance to the receivers, and two arrays with an entry per rank.

        The first array has the bytes of the rank's message.  The second has the latest round in
        which the rank received any of these bytes, for which the message waits; −1 for none.
        """
        p, count = self.problem.ranks, self.rounds.count
        starts, nbytes = np.array(self.problem.sources, np.int64).reshape(-1, 2).T
        lengths, which = np.unique(nbytes, return_inverse=True)
        whole, rest = np.divmod(lengths[:, np.newaxis], count)
        ends = whole * np.arange(count + 1) + rest * np.arange(count + 1) // count
        bytes_of = np.diff(ends, axis=1, prepend=0)  # [length, piece + 1]: 0 for no piece
        came = np.full((p, count), -1)  # round of receipt by [virtual rank, piece]
        rounds = []
        for number, (source, target, piece) in enumerate(self.rounds.every()):
            senders = np.add.outer(starts, source).ravel() % p
            carried = bytes_of[which[:, np.newaxis], piece + 1]
            waits = np.where(carried > 0, came[source, piece], -1).ravel()
            came[target, piece] = number
            sizes, latest = np.zeros(p, np.int64), np.full(p, -1)
            np.add.at(sizes, senders, carried.ravel())
            np.maximum.at(latest, senders, waits)
            rounds.append((self._pieces[number][0], sizes, latest))
        return rounds
