"""Where the bytes of a schedule's slots lie, and pieces of them as messages.

A position is in bytes of *packed* data, equal on all ranks.  Memory is cut in whole units: bytes
where they lie in the order in which they are sent, else elements of the user's type, holes and all.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.schedule.operations import Block, Operation, Slot, clobbers, reads

Act: TypeAlias = Callable[[], Any]
Allocate: TypeAlias = Callable[[int], NDArray[np.uint8]]
_ALIGNMENT = 64
LONG = 1024
"""Bytes from which on a ufunc copies as fast as memcpy does: some processors take 10 times as long
for the string instructions that memcpy uses for kilobytes."""
KEPT = 1 << 30
"""A scratch slot that no schedule uses: the input where the output comes to lie in its place."""


class Message(NamedTuple):
    """What mpi4py sends or receives, and the derived type to free after the last use."""

    spec: Any
    derived: MPI.Datatype | None = None


_PREDEFINED: "dict[int, Unit]" = {}
_NOWHERE = bytearray(1)


class Unit(NamedTuple):
    """What memory is cut in: packed bytes of one and its extent in memory, in bytes.

    plain: its bytes lie in the order in which they are sent, without holes.
    """

    datatype: MPI.Datatype
    size: int
    extent: int
    plain: bool

    @staticmethod
    def of(datatype: MPI.Datatype) -> "Unit":
        """The elements of a type.

        Raises MPI.Exception for one that was never committed: before anything is sent of it, not
        half-way through a collective.
        """
        if (known := _PREDEFINED.get(datatype.handle)) is not None:
            return known
        size, (_, extent) = datatype.Get_size(), datatype.Get_extent()
        unit = Unit(datatype, size, extent, bytes_in_order(datatype))
        if datatype.is_predefined:
            _PREDEFINED[datatype.handle] = unit
        elif extent:  # mpi4py divides by it
            datatype.Pack(b"", _NOWHERE, 0, MPI.COMM_SELF)
        return unit

    def span(self, nbytes: int) -> int:
        """Bytes of memory that so many packed bytes take."""
        return nbytes // self.size * self.extent


def type_key(datatype: Any) -> Hashable:
    """What tells a type from all others of other sizes; quick.

    A predefined one, or a code, it tells from all others.  (A handle of the user's may come to mean
    another type.)
    """
    if type(datatype) is str:
        return datatype
    handle: int = datatype.handle
    if handle in _PREDEFINED or datatype.is_predefined:
        return handle
    return (datatype.Get_size(),)


def bytes_in_order(datatype: MPI.Datatype) -> bool:
    """Whether count elements of this type are consecutive bytes, in the order they are sent."""
    lower, extent = datatype.Get_extent()
    if lower or extent != datatype.Get_size():
        return False
    if datatype.is_predefined:
        return True
    of, combiner, _ = datatype.decode()
    return combiner in ("DUP", "CONTIGUOUS") and bytes_in_order(of)


BYTES = Unit(MPI.BYTE, 1, 1, True)


@dataclass(frozen=True)
class Memory:
    """Memory in which position 0 is, or would be, at `address`."""

    address: int
    unit: Unit = BYTES

    def start(self, block: Block) -> int:
        """The address of a block."""
        return self.address + self.unit.span(block.offset)

    def spec(self, block: Block) -> list[Any]:
        """A block as mpi4py takes buffers: memory, count, type."""
        return self._spec(self.start(block), block.length)

    def pieces(self, blocks: Sequence[Block]) -> list[tuple[int, int]]:
        """Address and packed bytes of the blocks, in this order, neighbours in memory joined."""
        found: list[tuple[int, int]] = []
        for block in blocks:
            start, length = self.start(block), block.length
            if found and found[-1][0] + self.unit.span(found[-1][1]) == start:
                start, before = found.pop()
                length += before
            if length:
                found.append((start, length))
        return found

    def message(self, blocks: Sequence[Block]) -> Message:
        """The blocks, in this order, as one message."""
        pieces = self.pieces(blocks)
        if len(pieces) == 1:
            return Message(self._spec(*pieces[0]))
        low, span, derived = indexed(pieces, self.unit)
        return Message([MPI.buffer.fromaddress(low, span), 1, derived], derived)

    def _spec(self, start: int, length: int) -> list[Any]:
        unit = self.unit
        memory = MPI.buffer.fromaddress(start, unit.span(length))
        return [memory, length // unit.size, unit.datatype]

    def array(self, block: Block, dtype: np.dtype[Any]) -> NDArray[Any]:
        """A block as a NumPy array; for plain units."""
        return np.frombuffer(self.spec(block)[0], dtype)

    def in_words(self, block: Block) -> bool:
        """Whether a block of plain units is whole words of 8 bytes."""
        return self.start(block) % 8 == 0 and block.length % 8 == 0

    def aligned(self, dtype: np.dtype[Any]) -> bool:
        """Whether its elements lie where NumPy takes them as they are."""
        return self.address % dtype.alignment == 0


@dataclass(frozen=True)
class Gathered(Memory):
    """Memory in which everybody's contribution has a place of its own.

    places: by owner, where its contribution begins, in bytes from `address`.
    """

    places: Mapping[int, int] = field(default_factory=dict)

    def start(self, block: Block) -> int:  # noqa: D102
        return self.address + self.places[block.owner] + self.unit.span(block.offset)


def indexed(pieces: Sequence[tuple[int, int]], unit: Unit) -> tuple[int, int, MPI.Datatype]:
    """One type for pieces at addresses: where it begins, how much memory it spans, itself."""
    low = min(start for start, _ in pieces)
    high = max(start + unit.span(length) for start, length in pieces)
    derived = unit.datatype.Create_hindexed(
        [length // unit.size for _, length in pieces], [start - low for start, _ in pieces]
    )
    return low, high - low, derived.Commit()


def merged(blocks: Iterable[Block]) -> list[Block]:
    """The blocks with neighbours joined, in the same order, without empty ones."""
    joined: list[Block] = []
    for block in blocks:
        if joined and (joined[-1].owner, joined[-1].end) == (block.owner, block.offset):
            before = joined.pop()
            block = before._replace(length=before.length + block.length)
        if block.length:
            joined.append(block)
    return joined


class Arena:
    """Scratch that blocking calls share, one after another; it grows and is kept."""

    def __init__(self) -> None:
        self._kept = np.empty(0, np.uint8)

    def allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """At least so many bytes, aligned; the same ones each time."""
        if len(self._kept) < nbytes:
            self._kept = allocate(nbytes)
        return self._kept


def allocate(nbytes: int) -> NDArray[np.uint8]:
    """Bytes of memory, aligned for every element."""
    raw = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + nbytes]


class Scratch:
    """Which ranges of which scratch slots a list touches, and how they lie in one allocation."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._ranges: dict[int, tuple[int, int]] = {}
        for op in operations:
            for slot in {*reads(op), *clobbers(op)}:
                if slot >= Slot.SCRATCH:
                    for block in op.blocks:
                        low, high = self._ranges.get(slot, (block.offset, block.end))
                        self._ranges[slot] = min(low, block.offset), max(high, block.end)

    def place(self, unit: Unit, allocate: Allocate) -> tuple[dict[int, Memory], NDArray[np.uint8]]:
        """The memory of every slot, and what must live as long."""
        lower, true_extent = unit.datatype.Get_true_extent()
        starts, total = {}, 0
        for slot, (low, high) in self._ranges.items():
            starts[slot] = total - lower - unit.span(low)
            needed = unit.span(high - low) + max(0, true_extent - unit.extent)
            total += -(-needed // _ALIGNMENT) * _ALIGNMENT
        memory = allocate(total)
        base = memory.ctypes.data
        return {slot: Memory(base + start, unit) for slot, start in starts.items()}, memory


def copying(
    source: Memory, target: Memory, blocks: Iterable[Block], comm: MPI.Intracomm, tag: int
) -> list[Act]:
    """Acts that copy the blocks from one memory to another.

    comm, tag: where elements with holes may travel from a rank to itself.
    """
    acts: list[Act] = []
    me = comm.Get_rank()
    for block in merged(blocks):
        sent, received = source.spec(block), target.spec(block)
        if not (source.unit.plain and target.unit.plain):
            acts.append(partial(comm.Sendrecv, sent, me, tag, received, me, tag))
        elif block.length >= LONG and source.in_words(block) and target.in_words(block):
            word = np.dtype(np.uint64)
            acts.append(partial(np.positive, source.array(block, word), target.array(block, word)))
        else:
            into = memoryview(received[0])
            acts.append(partial(into.__setitem__, slice(None), memoryview(sent[0])))
    return acts


def in_turn(acts: Sequence[Act]) -> Act:
    """One call that does them all."""
    if len(acts) == 1:
        return acts[0]
    if len(acts) == 2:
        first, second = acts

        def both() -> None:
            first()
            second()

        return both

    def every() -> None:
        for act in acts:
            act()

    return every
