"""What a schedule is: plain data that says who sends what to whom in which order, never when.

A schedule is a `Problem` (what is promised) and a `Program` (what every rank does).  A program
speaks of *virtual* ranks, in which the root is 0; `Schedule` translates.  The list of one rank is
made on demand, without building anything of the size of the communicator; `columns()` evaluates the
same definition for all ranks at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from collwise.errors import BeyondLimits
from collwise.schedule.dependencies import dependencies, matching, rows_of_lists
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.rows import (
    Class,
    Columns,
    Rows,
    matched,
    of_classes,
    of_columns,
    of_lists,
)
from collwise.system.integers import Ints, checked_integer

FEW = 24
"""Ranks below which lists are as quick as columns of all ranks."""
LARGEST_IN_COLUMNS = 1 << 61
"""Bytes of a problem: beyond that, what is computed in int64 on the way might not fit."""
_BEYOND = "columns of a schedule", "it may have offsets beyond 2^63", "plan for fewer bytes"


class Program(ABC):
    """What every virtual rank does; the root is virtual rank 0.  Empty messages are left out."""

    needs_posted_receives: ClassVar[bool] = False
    """Whether ranks would wait in a circle if a rank posted its receives one after another."""

    @abstractmethod
    def operations(self, rank: int) -> list[Operation]:
        """The ordered list of one virtual rank, peers virtual, owners virtual."""

    def columns(self) -> Columns | None:
        """All messages at once, where that is quicker than going through the lists; or None.

        Only of programs that do nothing but send and receive, in the output.
        """
        return None

    def rows(self, *, combines: bool) -> Rows | None:
        """All that happens at ports, where that is quicker than going through the lists; or None.

        combines: whether combines take time.   Ranks receive in the order of their lists.
        """
        return None

    def classes(self) -> list[Class] | None:
        """Ranks that do alike, each relative to its own place; None if every rank is its own."""
        return None

    def is_alike(self) -> bool:
        """Whether all ranks do alike, so that one stands for all."""
        classes = self.classes()
        return classes is not None and len(classes) == 1

    def every(self, ranks: int) -> list[list[Operation]]:
        """The lists of all virtual ranks."""
        return [self.operations(rank) for rank in range(ranks)]


@dataclass(frozen=True)
class Schedule:
    """A problem and the program that solves it; `algorithm` is a label for people."""

    problem: Problem
    program: Program
    algorithm: str = ""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.problem.ranks

    def rank(self, rank: int) -> tuple[Operation, ...]:
        """The operations of one rank, in order: O(log p) times segments for most algorithms."""
        if type(rank) is not int or not 0 <= rank < self.ranks:
            asked = f"the schedule of a rank, of {self.ranks}"
            rank = checked_integer(rank, asked, "rank", 0, self.ranks - 1)
        return self._renumbered(self.program.operations((rank - self.problem.root) % self.ranks))

    def _renumbered(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """The operations of a virtual rank, with peers and owners as the user's."""
        p, root = self.ranks, self.problem.root
        if not root:
            return tuple(operations)
        before: tuple[Block, ...] = ()  # most blocks occur several times in a row
        blocks = before
        renumbered: list[Operation] = []
        for op in operations:
            if op.blocks != before:
                before = op.blocks
                own = [Block((owner + root) % p, at, length) for owner, at, length in before]
                blocks = tuple(own)
            if isinstance(op, Send):
                renumbered.append(Send((op.peer + root) % p, blocks, op.slot))
            elif isinstance(op, Recv):
                renumbered.append(Recv((op.peer + root) % p, blocks, op.slot))
            else:
                renumbered.append(op._replace(blocks=blocks))
        return tuple(renumbered)

    def columns(self) -> Columns:
        """The whole schedule, a row for every transfer (and block), ranks as the user's."""
        if self.problem.nbytes > LARGEST_IN_COLUMNS:
            raise BeyondLimits(*_BEYOND)
        columns = self.program.columns()
        if columns is None:
            columns = tabulate(self.program.every(self.ranks), self.problem.begins)
        root = self.problem.root
        return replace(
            columns,
            source=(columns.source + root) % self.ranks,
            target=(columns.target + root) % self.ranks,
        )

    @cached_property
    def lists(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations of every rank; for checking and drawing, O(p log p)."""
        lists = list(map(self._renumbered, self.program.every(self.ranks)))
        first = self.ranks - self.problem.root
        return tuple(lists[first:] + lists[:first])

    @cached_property
    def dependencies(self) -> tuple[list[tuple[int, ...]], ...]:
        """Per rank and operation: the earlier operations whose data it reads."""
        return tuple(map(dependencies, self.lists))

    def rows(self, *, combines: bool, in_order: bool = True) -> Rows:
        """All that happens at ports, ranks as the user's.

        combines: whether combines take time.   in_order: whether ranks receive in the order of
        their lists.
        """
        program, ranks, root = self.program, self.ranks, self.problem.root
        rows, combines, in_order = None, combines is True, in_order is True
        if in_order and ranks >= FEW and self.problem.nbytes <= LARGEST_IN_COLUMNS:
            rows = program.rows(combines=combines)
            if rows is None and (columns := program.columns()) is not None:
                rows = of_columns(columns, ranks)
            if rows is None and (classes := program.classes()) is not None:
                rows = of_classes(classes, program.operations, combines=combines)
        if rows is None:
            return of_lists(self.lists, combines=combines, in_order=in_order)
        return rows.renamed(lambda virtual: (virtual + root) % ranks) if root else rows

    def sampled(self) -> dict[int, Sequence[Operation]]:
        """The lists of a few virtual ranks."""
        few = {0, 1 % self.ranks, self.ranks // 2, self.ranks - 1}
        return {rank: self.program.operations(rank) for rank in sorted(few)}

    def about_messages(self) -> int:
        """About how many messages there are, by the lists of a few ranks."""
        lengths = sorted(map(len, self.sampled().values()))
        return lengths[len(lengths) // 2] * self.ranks // 2

    def makes_rows(self, *, in_order: bool) -> bool:
        """Whether `rows` are made of arrays, and not of every rank's list."""
        kind = type(self.program)
        known = kind.rows is not Program.rows or kind.columns is not Program.columns
        return in_order is True and (known or self.program.classes() is not None)

    def representative_rows(self, *, combines: bool) -> tuple[Rows, Ints | None]:
        """The same of one rank that stands for all, and by rank its number, 0.

        For machines on which only ranks' own ports count: the k-th message that a rank sends is the
        k-th that another one receives at the same time.   None: every rank for itself.
        """
        if not self.program.is_alike():
            return self.rows(combines=combines), None
        own = [self.program.operations(0)]
        listed = rows_of_lists(own, combines=combines is True, last_only=True)
        rows = matched(listed._replace(peer=np.zeros_like(listed.peer)))
        return rows, np.zeros(self.ranks, np.int64)


@dataclass(frozen=True)
class Written(Program):
    """A program written out by hand, rank by rank."""

    lists: tuple[tuple[Operation, ...], ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self.lists[rank])


def tabulate(
    lists: Sequence[Sequence[Operation]], starts: Mapping[int, int] | None = None
) -> Columns:
    """The slow, obvious way from lists to columns: match the k-th send with the k-th receive.

    starts: where each owner's data begins among everybody's; nothing if there is one owner only.
    """
    begins = starts or {}
    rows = []
    for (rank, step), (peer, at_target) in matching(lists).items():
        for block in lists[rank][step].blocks:
            offset = begins.get(block.owner, 0) + block.offset
            rows.append((rank, peer, step, at_target, offset, block.length))
    try:
        table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    except OverflowError:
        raise BeyondLimits(*_BEYOND) from None
    return Columns(*(table[:, i].copy() for i in range(6)))
