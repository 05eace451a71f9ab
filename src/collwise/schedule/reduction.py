"""Building blocks of programs that combine: parts of a vector, a single rank, a reduce up a tree.

Positions are byte offsets in the vector of every rank.  Parts and segments have whole elements.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from collwise.schedule.data_movement import pieces
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Class, Rows, around_a_circle
from collwise.schedule.trees import Tree

Blocks: TypeAlias = tuple[Block, ...]


def span(start: int, stop: int) -> Blocks:
    """The blocks for bytes [start, stop) of the vector; empty if there are no bytes."""
    return (Block(0, start, stop - start),) if stop > start else ()


def equal_parts(block: Block, count: int, itemsize: int) -> list[Blocks]:
    """The block cut into `count` nearly equal parts of whole elements.

    If the parts differ in length, the longer ones are evenly spread.   itemsize: bytes of an
    element.
    """
    return [run_of_parts(block, part, 1, count, itemsize) for part in range(count)]


def run_of_parts(block: Block, first: int, number: int, count: int, itemsize: int) -> Blocks:
    """The bytes of `number` consecutive parts of `block`, from part `first` on, modulo `count`.

    `equal_parts(block, count, itemsize)` gives the parts one by one.
    """
    items = block.length // itemsize

    def cut(part: int) -> int:
        return block.offset + -(-items * part // count) * itemsize

    first %= count
    if (stop := first + number) <= count:
        return span(cut(first), cut(stop))
    return span(cut(first), cut(count)) + span(cut(0), cut(stop - count))


@dataclass(frozen=True)
class SingleRank(Program):
    """The program of a single rank: its own input is the result."""

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        vector = self.problem.vector
        return [Copy(Slot.INPUT, Slot.OUTPUT, vector)] if vector else []


@dataclass(frozen=True)
class Circular(Program):
    """A program that sends p nearly equal blocks of the vector around a circle of all ranks."""

    problem: Problem

    @property
    def unit(self) -> int:
        """All blocks are equally long if the vector's length is a multiple of this many bytes."""
        return self.problem.itemsize * self.problem.ranks

    def classes(self) -> list[Class] | None:
        """One class of all ranks, if all blocks are equally long; else None."""
        return None if self.problem.nbytes % self.unit else [around_a_circle(self.problem.ranks)]


def receive_and_combine(
    children: Iterable[int], piece: Block, result: int | None = None, *, mirrored: bool = False
) -> tuple[list[Operation], int]:
    """Receive a piece from each child in turn, and combine it with this rank's piece.

    Returns the operations, and the slot of the combined piece: the input if there is no child.
    result: the slot into which the last combine writes; None for a scratch slot.   mirrored:
    whether a received piece is the left operand; otherwise it is the right one.
    """
    operations: list[Operation] = []
    value: int = Slot.INPUT
    senders = list(children)
    for number, child in enumerate(senders):
        received = into = scratch(number + 1)
        if mirrored:
            into = scratch(0)
        if result is not None and number == len(senders) - 1:
            received, into = received if mirrored else result, result
        left, right = (received, value) if mirrored else (value, received)
        operations.append(Recv(child, (piece,), received))
        operations.append(Combine(left, right, into, (piece,)))
        value = into
    return operations, value


@dataclass(frozen=True)
class UpTree(Program):
    """A reduce: vectors are combined up the tree, segment by segment.

    A rank receives first from its last child, and a received vector is always the right operand.
    In a `SplitTree` the last child's subtree is the next ranks, so this combines in rank order.
    segment: bytes in a segment; None if vectors are sent whole.
    """

    tree: Tree
    nbytes: int
    segment: int | None = None

    def is_whole(self) -> bool:
        """Whether every vector is sent as one message; False for 0 bytes."""
        return 0 < self.nbytes <= (self.segment or self.nbytes)

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        parent, _, children = self.tree.family(rank)
        operations: list[Operation] = []
        for piece in pieces(self.nbytes, self.segment):
            received, value = receive_and_combine(
                reversed(children), piece, None if rank else Slot.OUTPUT
            )
            operations += received
            if rank:
                operations.append(Send(parent, (piece,), value))
        return operations

    def rows(self, *, combines: bool) -> Rows:
        """All messages, and combines if `combines`; a send waits for receives listed before it."""
        parent, place = self.tree.edges()
        lengths = np.array([piece.length for piece in pieces(self.nbytes, self.segment)], np.int64)
        segment = np.repeat(np.arange(len(lengths)), len(parent))
        source, target = (
            np.tile(ends, len(lengths)) for ends in (np.arange(1, self.tree.size), parent)
        )
        heard = np.bincount(parent, minlength=self.tree.size)  # [rank]: receives per segment
        turn = 2 * heard + (np.arange(self.tree.size) > 0)  # [rank]: operations per segment
        number = np.tile(
            heard[parent] - 1 - place, len(lengths)
        )  # index among the target's receives
        at_source = segment * turn[source] + 2 * heard[source]
        at_target = segment * turn[target] + 2 * number
        nbytes = np.repeat(lengths, len(parent))
        before = (1 + combines) * (segment + 1) * heard[source]
        rows = [[source, target, at_source, at_target, nbytes, before]]
        if combines:
            before = 2 * (segment * heard[target] + number) + 1
            rows.append([target, target, at_target + 1, at_target + 1, nbytes, before])
        return Rows.counted(*map(np.concatenate, zip(*rows, strict=True)))
