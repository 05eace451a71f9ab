"""Building blocks of programs that only send and receive: broadcast, scatter, allgather.

Each program gives the operations of one rank (`operations`) or all messages (`columns`).
"""

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.program import Program
from collwise.schedule.rows import Columns, Rows
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
        """All messages; each waits until its sender has received the same segment."""
        sent, count = self.columns(), self.tree.size - 1
        waits = sent.source > 0
        ends = np.zeros(len(sent) + 1, np.int64)
        np.cumsum(waits, out=ends[1:])
        segment = np.arange(len(sent)) // max(count, 1)
        return Rows(
            sent.source,
            sent.target,
            sent.place_at_source,
            sent.place_at_target,
            sent.length,
            ends,
            (segment * count + sent.source - 1)[waits],
        )

    def columns(self) -> Columns:  # noqa: D102
        parent, place = self.tree.edges()
        child = np.arange(1, self.tree.size, dtype=np.int64)
        turn = np.bincount(parent, minlength=self.tree.size)  # [rank]: operations per segment
        turn[1:] += 1
        at_source = place + (parent > 0)
        return Columns.stack(
            [
                Columns(
                    parent,
                    child,
                    at_source + s * turn[parent],
                    s * turn[child],
                    np.full_like(child, piece.offset),
                    np.full_like(child, piece.length),
                )
                for s, piece in enumerate(pieces(self.nbytes, self.segment))
            ]
        )


@dataclass(frozen=True)
class Scatter(Program):
    """Scatter down a tree: rank v receives the pieces of its subtree, v … v + span(v) − 1, at once.

    It sends each child the pieces of that child's subtree.

    span(v): number of ranks in the subtree of v, as in `SplitTree.span`.
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

    def columns(self) -> Columns:  # noqa: D102
        parent, place = self.tree.edges()
        child = np.arange(1, self.tree.size, dtype=np.int64)
        start = np.minimum(child * self.piece, self.nbytes)
        stop = np.minimum((child + self.tree.spans()[1:]) * self.piece, self.nbytes)
        full = stop > start
        # A rank sends to its highest child first, and only the highest ranks get no bytes.  So its
        # children without bytes come first.
        skipped = np.bincount(parent[~full], minlength=self.tree.size)
        at_source = place - skipped[parent] + (parent > 0)
        zeros = np.zeros_like(child)
        rows = (parent, child, at_source, zeros, start, stop - start)
        return Columns(*(column[full] for column in rows))


class Step(NamedTuple):
    """One step of a `Collect`: each rank u gets pieces u + start … u + stop − 1 from u + distance.

    Ranks and pieces count modulo the number of ranks.
    """

    distance: int
    start: int
    stop: int


class Steps(Sized, Iterable[Step], Protocol):
    """The steps of a `Collect`, computed on iteration: there may be as many steps as ranks."""


@dataclass(frozen=True)
class Collect(Program):
    """Allgather after a scatter over `tree`; no rank receives a piece that it already has.

    piece: bytes of a piece.  Piece numbers count modulo the number of ranks, so a message has one
    or two blocks.
    """

    tree: SplitTree
    nbytes: int
    piece: int
    steps: Steps

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, own_span = self.tree.size, self.tree.span(rank)
        kind = np.int64 if (2 * p + 1) * max(self.piece, 1) < 1 << 63 else object
        steps: Any = Step(*np.fromiter(chain.from_iterable(self.steps), kind).reshape(-1, 3).T)
        to, source = (((rank + by) % p).tolist() for by in (-steps.distance, steps.distance))
        spans = {peer: self.tree.span(peer) for peer in set(to)}
        peer_spans = np.array([spans[peer] for peer in to], kind)
        ranges = [
            *self._ranges(np.array(to, kind), peer_spans, steps),
            *self._ranges(np.array(rank, kind), own_span, steps),
        ]
        columns = [column.tolist() for both in ranges for column in both]
        operations: list[Operation] = []
        # Each step has the offset and length of two ranges to send, then of two ranges to receive.
        for peer, sender, at, sent, low, more, here, came, first, rest in zip(
            to, source, *columns, strict=True
        ):
            if sent or more:
                operations.append(Send(peer, _blocks(at, sent, low, more)))
            if came or rest:
                operations.append(Recv(sender, _blocks(here, came, first, rest)))
        return operations

    def _ranges(self, rank: Ints, span: Any, step: Any) -> list[tuple[Ints, Ints]]:
        """The two byte ranges (offset, length) that `rank` receives in a step; a length may be 0.

        span: how many pieces `rank` has from the scatter.   Any of the arguments may hold arrays:
        all ranks with one step, or all steps with one rank, or with a rank for each step.
        """
        p, n = self.tree.size, self.nbytes
        start = rank + np.maximum(step.start, span)
        stop = np.maximum(rank + step.stop, start)
        ranges = []
        for low, high in (
            (np.minimum(start, p), np.minimum(stop, p)),
            (np.maximum(start - p, 0), np.maximum(stop - p, 0)),
        ):
            offset = np.minimum(low * self.piece, n)
            ranges.append((offset, np.minimum(high * self.piece, n) - offset))
        return ranges

    def received(self, span: Ints, step: Step) -> list[tuple[Ints, Ints]]:
        """The two byte ranges that every rank receives in a step, as arrays (offset, length).

        span: for each rank, how many pieces it has from the scatter.
        """
        return self._ranges(np.arange(self.tree.size), span, step)

    def columns(self) -> Columns:  # noqa: D102
        p, span = self.tree.size, self.tree.spans()
        target = np.arange(p, dtype=np.int64)
        place = np.zeros(p, dtype=np.int64)
        parts = list[Columns]()
        for step in self.steps:
            source = (target + step.distance) % p
            ranges = self.received(span, step)
            gets = sum(length for _, length in ranges) > 0
            at_source = place[source]
            place[source] += gets
            at_target = place.copy()
            place += gets
            for offset, length in ranges:
                rows = (source, target, at_source, at_target, offset, length)
                parts.append(Columns(*(column[length > 0] for column in rows)))
        return Columns.stack(parts)


def _blocks(first: int, length: int, wrapped: int, rest: int) -> tuple[Block, ...]:
    """The blocks of the byte ranges (first, length) and (wrapped, rest); an empty range has none.

    At least one of them is not empty.
    """
    if not rest:
        return (Block(0, first, length),)
    last = Block(0, wrapped, rest)
    return (Block(0, first, length), last) if length else (last,)
