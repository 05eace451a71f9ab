"""What a schedule is: plain data that says who sends what to whom in which order, never when.

A schedule is a `Problem` (what is promised) and a `Program` (what every rank does).  A program
speaks of *virtual* ranks, in which the root is 0; `Schedule` translates.  The list of one rank is
made on demand, without building anything of the size of the communicator; `columns()` evaluates the
same definition for all ranks at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidArgument, UnknownName

Ints: TypeAlias = NDArray[np.int64]


class Slot(IntEnum):
    """Where a block lives on a rank: the user's input or output, or scratch, numbered on."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


def scratch(number: int) -> int:
    """The slot of a rank's scratch space `number` >= 0."""
    return Slot.SCRATCH + number


class Block(NamedTuple):
    """A piece of the data: bytes [offset, offset + length) of what `owner` gave.

    In a collective that combines, all ranks give vectors that fit on one another: there `owner` is
    the root, and the block is that piece of everybody's vector.
    """

    owner: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.offset + self.length


class Send(NamedTuple):
    """Send the blocks, in this order, as one message."""

    peer: int
    blocks: tuple[Block, ...]
    slot: int = Slot.OUTPUT


class Recv(NamedTuple):
    """Receive the blocks, in this order, as one message, where nothing has been before."""

    peer: int
    blocks: tuple[Block, ...]
    slot: int = Slot.OUTPUT


class Combine(NamedTuple):
    """Combine the blocks of two slots, left operand first, into a third or one of the two.

    A right operand in scratch is used up.  `into` is no input; it is `left` only if `right` is
    scratch (as `MPI_Reduce_local` overwrites its right operand).
    """

    left: int
    right: int
    into: int
    blocks: tuple[Block, ...]


class Copy(NamedTuple):
    """Copy the blocks from one slot into another."""

    source: int
    into: int
    blocks: tuple[Block, ...]


Message: TypeAlias = Send | Recv
Local: TypeAlias = Combine | Copy
Operation: TypeAlias = Message | Local


def size_of(operation: Operation) -> int:
    """Bytes that an operation sends, receives, combines or copies."""
    return sum(block.length for block in operation.blocks)


def reads(operation: Operation) -> tuple[int, ...]:
    """The slots whose blocks an operation reads."""
    match operation:
        case Send():
            return (operation.slot,)
        case Combine():
            return (operation.left, operation.right)
        case Copy():
            return (operation.source,)
        case Recv():
            return ()


def writes(operation: Operation) -> int | None:
    """The slot whose blocks an operation writes, None for a send."""
    match operation:
        case Recv():
            return operation.slot
        case Combine() | Copy():
            return operation.into
        case Send():
            return None


def spoils(operation: Operation) -> tuple[int, ...]:
    """The slots in which an operation changes what was there."""
    match operation:
        case Combine():
            used_up = operation.right >= Slot.SCRATCH and operation.right != operation.into
            return (operation.into, operation.right) if used_up else (operation.into,)
        case Recv():
            return (operation.slot,)
        case Copy():
            return (operation.into,)
        case Send():
            return ()


Order: TypeAlias = Literal["any", "same", "rank"]
"""How contributions are combined: in any order, in one that is the same on all ranks (they end with
the same bits), or, beyond that, in the order of the ranks (for operators that do not commute)."""
ORDERS: tuple[Order, ...] = ("any", "same", "rank")
"""The weakest first: who keeps one of them keeps those before it."""


def keeps(kept: Order, asked: Order) -> bool:
    """Whether one order is as good as another that is asked for, or raise UnknownName for none."""
    return ORDERS.index(kept) >= ORDERS.index(_known(asked))


def _known(order: Order) -> Order:
    if order not in ORDERS:
        raise UnknownName.of("order", str(order), ORDERS)
    return order


COMBINING = ("reduce", "allreduce")
"""Collectives that combine everybody's vectors."""
ROOTLESS = ("allreduce",)
"""Collectives after which all ranks are alike; virtual rank 0 is rank 0."""


@dataclass(frozen=True)
class Problem:
    """What a schedule promises: `collective` of nbytes >= 0 over `ranks` >= 1, from or to `root`.

    item: bytes of an element >= 1, of which nbytes is a multiple; nothing is cut inside one.
    order: for collectives that combine, the order in which they do.
    Raises InvalidArgument for a size or a root out of range.
    """

    collective: str
    ranks: int
    nbytes: int
    root: int = 0
    item: int = 1
    order: Order = "any"

    def __post_init__(self) -> None:
        for name, word, least in (
            ("ranks", "over", 1),
            ("nbytes", "of", 0),
            ("root", "from", 0),
            ("item", "of", 1),
        ):
            asked = f"{self.collective} {word} `{name}`"
            # As Python's own integer: NumPy's overflow, and cannot tell their bits.
            object.__setattr__(self, name, _whole(getattr(self, name), asked, name, least))
        if self.root >= self.ranks:
            raise InvalidArgument(
                f"{self.collective} from root {self.root}",
                f"there are {self.ranks} ranks",
                f"give a root from 0 to {self.ranks - 1}",
            )
        _known(self.order)
        if self.root and self.collective in ROOTLESS:
            raise InvalidArgument(
                f"{self.collective} with root {self.root}",
                "it has no root: all ranks get the result",
                "leave the root out",
            )
        if self.nbytes % self.item:
            raise InvalidArgument(
                f"{self.collective} of elements of {self.item} bytes",
                f"nbytes = {self.nbytes}, which is no multiple",
                "give the bytes of whole elements",
            )

    def __str__(self) -> str:
        where = {
            "broadcast": f"from rank {self.root} to {self.ranks} ranks",
            "reduce": f"from {self.ranks} ranks to rank {self.root}",
        }
        return (
            f"{self.collective} of {self.nbytes} bytes"
            f" {where.get(self.collective, f'on {self.ranks} ranks')}"
        )

    @property
    def whole(self) -> Block:
        """Everything the root has."""
        return Block(self.root, 0, self.nbytes)


def _whole(value: object, asked: str, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidArgument(asked, f"{name} = {value!r}", f"give an integer of at least {least}")
    return int(value)


@dataclass(frozen=True)
class Columns:
    """Every transfer of a schedule as one row of NumPy columns (int64), ranks as the user's.

    source, target: ranks.   place_at_source, place_at_target: position in that rank's list.
    offset, length: the transfer's block of the root's data; a transfer of several blocks has
    several rows with the same places.
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    offset: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def nbytes(self) -> int:
        """Memory the columns take."""
        return sum(c.nbytes for c in vars(self).values())

    def rows(self) -> list[tuple[int, ...]]:
        """All rows as tuples, sorted: equal for equal schedules."""
        return sorted(zip(*(c.tolist() for c in vars(self).values()), strict=True))

    @staticmethod
    def stack(parts: Sequence["Columns"]) -> "Columns":
        """The rows of all parts, one after another."""
        names = Columns.__dataclass_fields__
        return Columns(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))


class Program(ABC):
    """What every virtual rank does; the root is virtual rank 0.  Empty messages are left out."""

    @abstractmethod
    def operations(self, rank: int) -> list[Operation]:
        """The ordered list of one virtual rank, peers virtual, owners virtual."""

    @abstractmethod
    def columns(self) -> Columns:
        """The same for all ranks."""

    def lengths(self) -> Ints | None:
        """How many operations every rank has; None if the last of each is always a message."""
        return None


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
        if not 0 <= rank < self.ranks:
            raise InvalidArgument(
                f"the schedule of rank {rank}",
                f"there are {self.ranks} ranks",
                f"give a rank from 0 to {self.ranks - 1}",
            )
        p, root = self.ranks, self.problem.root
        operations = self.program.operations((rank - root) % p)
        if root == 0:
            return tuple(operations)

        def renumbered(op: Operation) -> Operation:
            blocks = tuple(b._replace(owner=(b.owner + root) % p) for b in op.blocks)
            if isinstance(op, Send | Recv):
                return op._replace(peer=(op.peer + root) % p, blocks=blocks)
            return op._replace(blocks=blocks)

        return tuple(map(renumbered, operations))

    def columns(self) -> Columns:
        """The whole schedule, a row for every transfer (and block), ranks as the user's."""
        columns = self.program.columns()
        if self.problem.root == 0:
            return columns
        return Columns(
            (columns.source + self.problem.root) % self.ranks,
            (columns.target + self.problem.root) % self.ranks,
            columns.place_at_source,
            columns.place_at_target,
            columns.offset,
            columns.length,
        )

    @cached_property
    def lists(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations of every rank; for checking and drawing, O(p log p)."""
        return tuple(self.rank(r) for r in range(self.ranks))


@dataclass(frozen=True)
class Written(Program):
    """A program written out by hand, rank by rank."""

    lists: tuple[tuple[Operation, ...], ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self.lists[rank])

    def columns(self) -> Columns:  # noqa: D102
        return tabulate(self.lists)


def tabulate(lists: Sequence[Sequence[Operation]]) -> Columns:
    """The slow, obvious way from lists to columns: match the k-th send with the k-th receive."""
    receives: dict[tuple[int, int], list[int]] = {}
    for rank, operations in enumerate(lists):
        for place, op in enumerate(operations):
            if isinstance(op, Recv):
                receives.setdefault((op.peer, rank), []).append(place)
    rows = []
    taken: dict[tuple[int, int], int] = {}
    for rank, operations in enumerate(lists):
        for place, op in enumerate(operations):
            if isinstance(op, Send):
                pair = (rank, op.peer)
                k = taken[pair] = taken.get(pair, -1) + 1
                at_target = receives[pair][k]
                for block in op.blocks:
                    rows.append((rank, op.peer, place, at_target, block.offset, block.length))
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    return Columns(*(table[:, i].copy() for i in range(6)))
