"""Building stones of programs that combine: spans of the vector, alone, up a tree.

Positions are bytes of everybody's vector; a cut never falls inside an element.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from collwise.schedule.data import (
    Block,
    Columns,
    Combine,
    Copy,
    Operation,
    Problem,
    Program,
    Recv,
    Send,
    Slot,
    scratch,
    tabulate,
)
from collwise.schedule.programs import pieces
from collwise.schedule.trees import Tree


class Span(NamedTuple):
    """Bytes [start, stop) of the vector."""

    start: int
    stop: int

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The bytes as an operation names them; none if there are none."""
        return (Block(0, self.start, self.stop - self.start),) if self.stop > self.start else ()

    def parts(self, count: int, item: int) -> list["Span"]:
        """`count` parts of whole elements, as equal as can be, the larger ones spread evenly."""
        items = (self.stop - self.start) // item
        cuts = [self.start - (-items * part // count) * item for part in range(count + 1)]
        return [Span(low, high) for low, high in pairwise(cuts)]


class ByRank(Program):
    """A program whose columns are made rank by rank, in O(messages)."""

    problem: Problem

    def columns(self) -> Columns:  # noqa: D102
        return tabulate([self.operations(rank) for rank in range(self.problem.ranks)])


@dataclass(frozen=True)
class Alone(ByRank):
    """One rank's own contribution is the result."""

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        whole = Span(0, self.problem.nbytes).blocks
        return [Copy(Slot.INPUT, Slot.OUTPUT, whole)] if whole else []


@dataclass(frozen=True)
class UpTree(Program):
    """Everybody's vectors are combined up the tree, in the order of the ranks, by segments.

    The time-reverse of `DownTree`: who was served last is heard first.  In a tree of intervals
    (`SplitTree`) that rank leads the next ones, so what comes in is always the right operand.
    """

    tree: Tree
    nbytes: int
    segment: int

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        parent, _, children = self.tree.family(rank)
        operations: list[Operation] = []
        for piece in pieces(self.nbytes, self.segment):
            value: int = Slot.INPUT
            for number, child in enumerate(reversed(children)):
                last = rank == 0 and number == len(children) - 1
                slot = Slot.OUTPUT if last else scratch(number)
                operations.append(Recv(child, (piece,), slot))
                operations.append(Combine(value, slot, slot, (piece,)))
                value = slot
            if rank:
                operations.append(Send(parent, (piece,), value))
        return operations

    def columns(self) -> Columns:  # noqa: D102
        parent, place = self.tree.edges()
        child = np.arange(1, self.tree.size, dtype=np.int64)
        heard = 2 * np.bincount(parent, minlength=self.tree.size)  # receive and combine
        turn = heard + (np.arange(self.tree.size) > 0)  # operations per segment
        return Columns.stack(
            [
                Columns(
                    child,
                    parent,
                    heard[child] + s * turn[child],
                    heard[parent] - 2 * (place + 1) + s * turn[parent],
                    np.full_like(child, piece.offset),
                    np.full_like(child, piece.length),
                )
                for s, piece in enumerate(pieces(self.nbytes, self.segment))
            ]
            or [Columns(*(np.zeros(0, dtype=np.int64) for _ in range(6)))]
        )
