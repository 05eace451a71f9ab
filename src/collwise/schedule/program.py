"""Schedules: plain data that says who sends what to whom in which order, never when.

A schedule is a `Problem` (which collective, on how many ranks and bytes) and a `Program` (what
every rank does).  A program uses *virtual* ranks, in which the root is 0; `Schedule` translates
them.  One rank's list of operations is built on demand, in most programs without data for every
rank; `rows()` gives the messages of all ranks at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from collwise.schedule.dependencies import LARGEST_OFFSET, dependencies, rows_of_lists
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.rows import Class, Rows, matched, of_classes, of_lists
from collwise.system.integers import Ints, checked_integer

FEW = 24
"""Number of ranks below which rows are made from operation lists: arrays are not faster."""


class Program(ABC):
    """The operations of every rank, by virtual rank: (rank − root) modulo p, 0 for the root.

    A program has no empty messages.
    """

    needs_posted_receives: ClassVar[bool] = False
    """Whether the program can deadlock unless every rank posts all its receives before it sends."""

    @abstractmethod
    def operations(self, rank: int) -> list[Operation]:
        """The operations of one virtual rank, in order; peers and block owners are virtual too."""

    def rows(self, *, combines: bool) -> Rows | None:
        """All messages and combines as rows, if that is faster than building the lists; else None.

        combines: whether combines take time; only then are they rows.   The rows assume that ranks
        receive in the order of their lists.
        """
        return None

    def makes_rows(self) -> bool:
        """Whether the rows of all ranks are made faster than by building one list after another."""
        return type(self).rows is not Program.rows or self.classes() is not None

    def classes(self) -> list[Class] | None:
        """Classes of ranks whose lists are equal up to renumbered peers; None if none are known."""
        return None

    def is_alike(self) -> bool:
        """Whether all ranks' operation lists are known to be equal up to renumbered peers.

        False if `classes` knows no classes.
        """
        classes = self.classes()
        return classes is not None and len(classes) == 1

    def every(self, ranks: int) -> list[list[Operation]]:
        """The operation lists of all virtual ranks."""
        return [self.operations(rank) for rank in range(ranks)]


@dataclass(frozen=True)
class Schedule:
    """A problem and the program that solves it; `algorithm` is a name to show to users."""

    problem: Problem
    program: Program
    algorithm: str = ""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.problem.ranks

    def rank(self, rank: int) -> tuple[Operation, ...]:
        """The operations of one rank, in order.

        Most algorithms take O(log p) time for each segment.  Raises InvalidArgument if there is no
        such rank.
        """
        if type(rank) is not int or not 0 <= rank < self.ranks:
            asked = f"the schedule of a rank, of {self.ranks}"
            rank = checked_integer(rank, asked, "rank", 0, self.ranks - 1)
        return self._in_user_ranks(self.program.operations((rank - self.problem.root) % self.ranks))

    def _in_user_ranks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """A virtual rank's operations with the user's ranks as peers and owners."""
        p, root = self.ranks, self.problem.root
        if not root:
            return tuple(operations)
        before: tuple[Block, ...] = ()  # consecutive operations often have equal blocks
        blocks = before
        renumbered: list[Operation] = []
        for op in operations:
            if op.blocks != before:
                before = op.blocks
                shifted = [Block((owner + root) % p, at, length) for owner, at, length in before]
                blocks = tuple(shifted)
            if isinstance(op, Send):
                renumbered.append(Send((op.peer + root) % p, blocks, op.slot))
            elif isinstance(op, Recv):
                renumbered.append(Recv((op.peer + root) % p, blocks, op.slot))
            else:
                renumbered.append(op._replace(blocks=blocks))
        return tuple(renumbered)

    @cached_property
    def lists(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations of every rank, for checking and drawing.

        Most algorithms take O(p log p) time for each segment.
        """
        lists = list(map(self._in_user_ranks, self.program.every(self.ranks)))
        first = self.ranks - self.problem.root
        return tuple(lists[first:] + lists[:first])

    @cached_property
    def dependencies(self) -> tuple[list[tuple[int, ...]], ...]:
        """For each operation of each rank, the positions of those that last wrote what it reads."""
        return tuple(map(dependencies, self.lists))

    def rows(self, *, combines: bool, in_order: bool = True) -> Rows:
        """All messages and combines as rows, in the user's ranks.

        combines: whether combines take time; only then are they rows.   in_order: whether ranks
        receive in the order of their lists.
        """
        program, ranks, root = self.program, self.ranks, self.problem.root
        rows, combines, in_order = None, combines is True, in_order is True
        if in_order and ranks >= FEW and self.problem.nbytes <= LARGEST_OFFSET:
            rows = program.rows(combines=combines)
            if rows is None and (classes := program.classes()) is not None:
                rows = of_classes(classes, program.operations, combines=combines)
        if rows is None:
            return of_lists(self.lists, combines=combines, in_order=in_order)
        return rows.renamed(lambda virtual: (virtual + root) % ranks) if root else rows

    @cached_property
    def sampled(self) -> dict[int, Sequence[Operation]]:
        """Maps a few virtual ranks to their operation lists."""
        few = {0, 1 % self.ranks, self.ranks // 2, self.ranks - 1}
        return {rank: self.program.operations(rank) for rank in sorted(few)}

    def about_messages(self) -> int:
        """Estimated number of messages, from the lists of a few ranks."""
        lengths = sorted(map(len, self.sampled.values()))
        return lengths[len(lengths) // 2] * self.ranks // 2

    def representative_rows(self, *, combines: bool) -> tuple[Rows, Ints | None]:
        """Rows that stand for those of all ranks, and an array with each rank's representative.

        If the lists of all ranks are known to be equal up to renumbered peers, the rows are those
        of rank 0, every peer is 0, and the array is all zeros.  Otherwise the rows are those of all
        ranks, and None is returned in place of the array.
        combines: whether combines take time.
        Times of rank 0's rows are exact on machines where only ranks' own ports delay messages.
        """
        if not self.program.is_alike():
            return self.rows(combines=combines), None
        own = [self.program.operations(0)]
        listed = rows_of_lists(own, combines=combines is True, last_only=True)
        rows = matched(listed._replace(peer=np.zeros_like(listed.peer)))
        return rows, np.zeros(self.ranks, np.int64)


@dataclass(frozen=True)
class Written(Program):
    """A program given as each virtual rank's operations."""

    lists: tuple[tuple[Operation, ...], ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self.lists[rank])
