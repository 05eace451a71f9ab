"""Building blocks of programs that only send and receive: broadcast, scatter, allgather.

Each program gives the operations of one rank (`operations`); most also give all messages (`rows`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.program import Program
from collwise.schedule.rows import Rows
from collwise.schedule.trees import SplitTree, Tree
from collwise.system.integers import Ints


def pieces(nbytes: int, length: int | None) -> list[Block]:
    """The root's `nbytes` bytes as blocks of `length` bytes; no blocks for 0 bytes.

    length: at least 1; None for one block.   The last block may be shorter.
    """
    length = length or max(nbytes, 1)
    return [Block(0, start, min(length, nbytes - start)) for start in range(0, nbytes, length)]


@dataclass(frozen=True)
class DownTree(Program):
    """Pipelined broadcast: segments go from the root down the tree, one after another."""

    tree: Tree
    nbytes: int
    segment: int | None = None
    """Bytes in a segment, at least 1; None if the vector is sent whole."""

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        parent, _, children = self.tree.family(rank)
        operations: list[Operation] = []
        for piece in pieces(self.nbytes, self.segment):
            if rank:
                operations.append(Recv(parent, (piece,)))
            operations.extend(Send(child, (piece,)) for child in children)
        return operations

    def rows(self, *, combines: bool) -> Rows:
        """All messages; each waits until its sender, if not the root, has received the segment."""
        parent, place = self.tree.edges()
        lengths = np.array([piece.length for piece in pieces(self.nbytes, self.segment)], np.int64)
        turn = np.bincount(parent, minlength=self.tree.size)  # [rank]: operations per segment
        turn[1:] += 1
        segment = np.arange(len(lengths))[:, np.newaxis]
        needs = (segment * len(parent) + parent - 1)[:, parent > 0].ravel()
        source = np.tile(parent, len(lengths))
        return Rows(
            source,
            np.tile(np.arange(1, self.tree.size), len(lengths)),
            (place + (parent > 0) + segment * turn[parent]).ravel(),
            (segment * turn[1:]).ravel(),
            np.repeat(lengths, len(parent)),
            np.append(0, np.cumsum(source > 0)),
            needs,
        )


@dataclass(frozen=True)
class Scatter(Program):
    """Scatter down a tree: rank v > 0 receives its subtree's pieces in one message from its parent.

    Rank v sends each child the pieces of that child's subtree.  The subtree of v is the ranks
    v … v + span(v) − 1.
    """

    tree: SplitTree
    nbytes: int
    piece: int
    """Bytes per rank; the last ranks' pieces may be shorter or empty."""

    def _block(self, rank: int) -> Block:
        start = min(rank * self.piece, self.nbytes)
        stop = min((rank + self.tree.span(rank)) * self.piece, self.nbytes)
        return Block(0, start, stop - start)

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        parent, _, children = self.tree.family(rank)
        operations: list[Operation] = []
        if rank and self._block(rank).length:
            operations.append(Recv(parent, (self._block(rank),)))
        for child in children:
            if (block := self._block(child)).length:
                operations.append(Send(child, (block,)))
        return operations


@dataclass(frozen=True)
class ScatterCollect(Scatter):
    """A scatter, then an allgather in which no rank receives a piece that it already has.

    In a step, each rank u gets pieces u + start … u + stop − 1 from rank u + distance, except
    the pieces that u has.  Numbers are modulo the number of ranks: a message has one or two blocks.
    starts: the start of each step, 1 in the first; a step stops where the next one starts, the last
    at p.   ring: whether all distances are 1; otherwise a step's distance is its start.
    """

    starts: Sequence[int]
    ring: bool

    def steps(self, kind: type = np.int64) -> tuple[Ints, Ints, Ints]:
        """The distance, start and stop of every step, in three arrays of the dtype `kind`."""
        starts: Ints = np.fromiter(self.starts, kind)
        distances = np.ones_like(starts) if self.ring else starts
        return distances, starts, np.append(starts, self.tree.size)[1:]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, own_span = self.tree.size, self.tree.span(rank)
        kind = np.int64 if (2 * p + 1) * max(self.piece, 1) < 1 << 63 else object
        distances, *bounds = self.steps(kind)
        to, source = (((rank + by) % p).tolist() for by in (-distances, distances))
        spans = {peer: self.tree.span(peer) for peer in set(to)}
        peer_spans = np.array([spans[peer] for peer in to], kind)
        ranges = [
            *self._ranges(np.array(to, kind), peer_spans, *bounds),
            *self._ranges(np.array(rank, kind), own_span, *bounds),
        ]
        columns = [column.tolist() for both in ranges for column in both]
        operations = super().operations(rank)
        # Each step has the offset and length of two ranges to send, then of two ranges to receive.
        for peer, sender, at, sent, low, more, here, came, first, rest in zip(
            to, source, *columns, strict=True
        ):
            if sent or more:
                operations.append(Send(peer, _blocks(at, sent, low, more)))
            if came or rest:
                operations.append(Recv(sender, _blocks(here, came, first, rest)))
        return operations

    def _ranges(self, rank: Ints, span: Any, start: Any, stop: Any) -> list[tuple[Ints, Ints]]:
        """The two byte ranges (offset, length) that `rank` receives in a step; a length may be 0.

        span: how many pieces `rank` has from the scatter.   Arguments are single numbers, or arrays
        with an entry for each rank or for each step.
        """
        p, n = self.tree.size, self.nbytes
        start = rank + np.maximum(start, span)
        stop = np.maximum(rank + stop, start)
        ranges = []
        for low, high in (
            (np.minimum(start, p), np.minimum(stop, p)),
            (np.maximum(start - p, 0), np.maximum(stop - p, 0)),
        ):
            offset = np.minimum(low * self.piece, n)
            ranges.append((offset, np.minimum(high * self.piece, n) - offset))
        return ranges

    def rows(self, *, combines: bool) -> Rows:
        """All messages; each waits for the last receive, if any, that brings one of its pieces."""
        p, span, (parent, turn) = self.tree.size, self.tree.spans(), self.tree.edges()
        rank = np.arange(p, dtype=np.int64)
        own = [np.minimum(bound * self.piece, self.nbytes) for bound in (rank, rank + span)]
        length = (own[1] - own[0])[1:]
        full = length > 0
        # A rank sends to its highest child first, and only the highest ranks get no bytes.  So its
        # children without bytes come first.
        skipped = np.bincount(parent[~full], minlength=p)
        heard = np.append(False, full).astype(np.int64)
        at_source = turn - skipped[parent] + (parent > 0)
        scatter = parent, rank[1:], at_source, np.zeros(p - 1, np.int64), length, heard[parent]
        parts = [[column[full] for column in scatter]]
        place = heard + np.bincount(parent[full], minlength=p)
        steps = self.steps()
        nonempty = -(-self.nbytes // self.piece)
        heard_before = np.zeros(
            (len(self.starts) + 1, p), np.int64
        )  # [step, rank]: receives before it
        heard_before[0] = heard
        for number, (distance, start, stop) in enumerate(np.transpose(steps).tolist()):
            source = (rank + distance) % p
            (_, first), (_, wrapped) = self._ranges(rank, span, start, stop)
            nbytes = first + wrapped
            gets = nbytes > 0
            at_source = place[source]
            place[source] += gets
            # The last piece of the message that has bytes, relative to the source's number:
            end = stop - distance - 1
            last = end - np.maximum((source + end) % p - nonempty + 1, 0)
            latest = np.where(
                last < span[source], 0, np.searchsorted(steps[2], last, side="right") + 1
            )
            after = heard_before[latest, source]
            parts.append([c[gets] for c in (source, rank, at_source, place, nbytes, after)])
            place = place + gets
            heard_before[number + 1] = heard_before[number] + gets
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))


def _blocks(first: int, length: int, wrapped: int, rest: int) -> tuple[Block, ...]:
    """The blocks of the byte ranges (first, length) and (wrapped, rest); an empty range has none.

    At least one of the two ranges is not empty.
    """
    if not rest:
        return (Block(0, first, length),)
    last = Block(0, wrapped, rest)
    return (Block(0, first, length), last) if length else (last,)
