"""What a schedule is: plain data that says who sends what to whom in which order, never when.

A schedule is a `Problem` (what is promised) and a `Program` (what every rank does).  A program
speaks of *virtual* ranks, in which the root is 0; `Schedule` translates.  The list of one rank is
made on demand, without building anything of the size of the communicator; `columns()` evaluates the
same definition for all ranks at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from collwise.errors import BeyondLimits
from collwise.schedule.dependencies import dependencies, matching
from collwise.schedule.messages import Rows
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, size_of
from collwise.schedule.port_order import Event, port_order
from collwise.schedule.problem import Problem
from collwise.system.integers import Ints, checked_integer

LARGEST_IN_COLUMNS = 1 << 62
"""Bytes of a problem: beyond that, what is computed in int64 on the way might not fit."""
_BEYOND = "columns of a schedule", "it may have offsets beyond 2^63", "plan for fewer bytes"


@dataclass(frozen=True)
class Columns:
    """Every transfer of a schedule as one row of NumPy columns (int64), ranks as the user's.

    source, target: ranks.   place_at_source, place_at_target: position in that rank's list.
    offset, length: a block of the root's data (or of all the sources', one after another); a
    transfer of several blocks has several rows with the same places, where blocks that follow each
    other may be one.
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    offset: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.source)

    def rows(self) -> list[tuple[int, ...]]:
        """All rows as tuples, sorted, neighbours in one row: equal for equal schedules."""
        joined: list[tuple[int, ...]] = []
        for row in sorted(zip(*(c.tolist() for c in vars(self).values()), strict=True)):
            *places, offset, length = row
            *last, begin, before = joined[-1] if joined else (-1, 0, 0)
            if places == last and offset == begin + before:
                joined[-1] = (*last, begin, before + length)
            else:
                joined.append(row)
        return joined

    @staticmethod
    def stack(parts: Sequence["Columns"]) -> "Columns":
        """The rows of all parts, one after another."""
        names = Columns.__dataclass_fields__
        return Columns(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))


class Program(ABC):
    """What every virtual rank does; the root is virtual rank 0.  Empty messages are left out."""

    needs_posted_receives: ClassVar[bool] = False
    """Whether ranks would wait in a circle if a rank posted its receives one after another."""

    @abstractmethod
    def operations(self, rank: int) -> list[Operation]:
        """The ordered list of one virtual rank, peers virtual, owners virtual."""

    def outlines(self, ranks: Sequence[int]) -> list[list[Operation]]:
        """The lists of some virtual ranks, in which blocks may be others of as many bytes.

        They are for what asks with whom, and of how many bytes, but not of which.
        """
        return [self.operations(rank) for rank in ranks]

    def columns(self) -> Columns | None:
        """All messages at once, where that is quicker than going through the lists; or None."""
        return None

    def rows(self, *, combines: bool = False) -> Rows | None:
        """The same and what each waits for, where that is quicker than to follow the bytes.

        combines: whether combines take time, and are rows as well.
        """
        return None

    @property
    def timed_as(self) -> "Program":
        """A program with the same messages and combines, in other slots: itself, or simpler."""
        return self

    def is_alike(self) -> bool:
        """Whether all ranks do the same, each relative to its own place: one stands for all."""
        return False

    def one_for_all(self) -> list[Operation]:
        """Rank 0's list where all do alike, for its time: blocks may be others of the same bytes.

        So what lies at different places in memory, and is always sent and received together, can be
        one block.
        """
        return self.operations(0)

    def copies(self) -> Iterable[tuple[int, Ints]] | None:
        """Ranks of which each stands for others; None if none are known.

        With a table: a row for each of these, which has in some order the same ranks in relation to
        it, itself among them; the first row is that of the rank itself.
        """
        return None

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

    @cached_property
    def sizes(self) -> tuple[list[int], ...]:
        """Per rank and operation: its bytes."""
        return tuple([size_of(op) for op in operations] for operations in self.lists)

    @cached_property
    def lengths(self) -> tuple[frozenset[int], frozenset[int]]:
        """The lengths that occur in bytes, each once: of messages, and of combines."""
        messages: set[int] = set()
        combines: set[int] = set()
        for operations, sizes in zip(self.lists, self.sizes, strict=True):
            for op, nbytes in zip(operations, sizes, strict=True):
                if isinstance(op, Send | Recv):
                    messages.add(nbytes)
                elif isinstance(op, Combine):
                    combines.add(nbytes)
        return frozenset(messages), frozenset(combines)

    @cached_property
    def combining_order(self) -> list[Event] | None:
        """The order of all events where combines use ports; see `port_order`."""
        return port_order(self.lists, self.dependencies, combines_use_ports=True)

    @cached_property
    def order(self) -> list[Event] | None:
        """The order of all events where combines use no port; that of `combining_order` will do."""
        if self.combining_order is not None:
            return self.combining_order
        return port_order(self.lists, self.dependencies, combines_use_ports=False)


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
