"""Where the bytes of a schedule's slots (its buffers) are, and how their blocks become messages.

An offset in a schedule counts bytes of *packed* data, equal on all ranks.  Memory is measured in
whole units.  A unit is a byte if the bytes are in the order in which they are sent, otherwise an
element of the user's type, with its gaps.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.schedule.operations import Block, Operation, Slot, blocks_in, clobbers, reads

_ALIGNMENT = 64
USER = 1 << 30
"""A slot that no schedule uses: the user's output buffer, if the slot OUTPUT is in scratch."""
USER_INPUT = USER + 1
"""A slot that no schedule uses: the user's input buffer, if the slot INPUT is in scratch."""
_NOWHERE = bytearray(1)
_fromaddress = MPI.buffer.fromaddress
allocate = MPI.buffer.allocate
"""Allocates bytes of memory, aligned for every type of element."""


class ElementType(NamedTuple):
    """The unit in which memory is measured: a byte, or an element of the user's type.

    size: bytes that are sent.   extent: bytes from one unit to the next in memory.   contiguous:
    whether the bytes are in the order in which they are sent, without gaps, in memory of the host.
    on_host: whether the host can access the memory; otherwise only MPI can.
    """

    datatype: MPI.Datatype
    size: int
    extent: int
    contiguous: bool
    on_host: bool = True

    @staticmethod
    def of(datatype: MPI.Datatype) -> "ElementType":
        """The unit for elements of an MPI type.

        Raises MPI.Exception for a type that was never committed: here, rather than in the middle
        of a collective.  MPI.DATATYPE_NULL has elements without bytes; MPI gets such calls.
        """
        if datatype == MPI.DATATYPE_NULL:
            return ElementType(datatype, 0, 0, contiguous=False)
        size, (_, extent) = datatype.Get_size(), datatype.Get_extent()
        unit = ElementType(datatype, size, extent, _bytes_in_order(datatype))
        if extent and not datatype.is_predefined:  # mpi4py divides by it
            datatype.Pack(b"", _NOWHERE, 0, MPI.COMM_SELF)
        return unit

    def span(self, nbytes: int) -> int:
        """Bytes of memory that `nbytes` packed bytes take."""
        return nbytes // self.size * self.extent


def _bytes_in_order(datatype: MPI.Datatype) -> bool:
    """Whether elements of this type surely are consecutive bytes, in the order of sending."""
    lower, extent = datatype.Get_extent()
    if lower or extent != datatype.Get_size():
        return False
    if datatype.is_predefined:
        return True
    if datatype.combiner not in (MPI.COMBINER_DUP, MPI.COMBINER_CONTIGUOUS):
        return False
    of = datatype.decode()[0]
    in_order = _bytes_in_order(of)
    if not of.is_predefined:
        of.Free()  # decoding made another handle of it
    return in_order


IN_SCRATCH = {USER: Slot.OUTPUT, USER_INPUT: Slot.INPUT}
"""For each slot of a user's buffer, the schedule's slot that is in scratch instead."""
BYTES = ElementType(MPI.BYTE, 1, 1, True)
PACKED = ElementType(MPI.PACKED, 1, 1, True)


class Region(NamedTuple):
    """A part of a slot's memory, relative to the slot's address.

    offset, span: the region's beginning and length, in bytes of memory.   elements: how many of
    `datatype` it has.   derived: whether collwise made `datatype`, to be freed after the last use.
    """

    offset: int
    span: int
    elements: int
    datatype: MPI.Datatype
    derived: bool = False

    @property
    def end(self) -> int:
        """The offset one past the region's last byte."""
        return self.offset + self.span


class Memory:
    """The memory of a slot (a buffer of a schedule); its origin, `address`, may lie outside it.

    starts: for each rank, the bytes from `address` to the rank's data; None if all are 0.
    The address may change from call to call; regions stay the same.
    """

    __slots__ = ("address", "starts", "unit")

    def __init__(
        self, address: int, unit: ElementType = BYTES, starts: Mapping[int, int] | None = None
    ) -> None:
        self.address, self.unit, self.starts = address, unit, starts

    def regions(self, blocks: Iterable[Block]) -> list[Region]:
        """Where blocks are, in this order; adjoining blocks are joined, empty blocks left out."""
        datatype, size, extent, *_ = self.unit
        joined: list[Region] = []
        for block in blocks:
            if elements := block.length // size:
                start = block.offset // size * extent
                if self.starts is not None:
                    start += self.starts[block.owner]
                if joined and joined[-1].end == start:
                    start, _, before, _, _ = joined.pop()
                    elements += before
                joined.append(Region(start, elements * extent, elements, datatype))
        return joined

    def message(self, blocks: Iterable[Block]) -> Region:
        """The region of a message of blocks, in order; of a derived type unless they adjoin."""
        regions = self.regions(blocks)
        if len(regions) == 1:
            return regions[0]
        low, high = min(r.offset for r in regions), max(r.end for r in regions)
        datatype = self.unit.datatype.Create_hindexed(
            [r.elements for r in regions], [r.offset - low for r in regions]
        )
        return Region(low, high - low, 1, datatype.Commit(), derived=True)

    def at(self, region: Region) -> Any:
        """A region as a buffer that mpi4py takes."""
        offset, span, elements, datatype, _ = region
        address = self.address + offset
        return [_fromaddress(address, max(span, 0)) if address else MPI.BOTTOM, elements, datatype]


def repack(comm: MPI.Intracomm, source: Any, target: Any) -> None:
    """Copy elements with gaps by Pack and Unpack: MPICH 5.0 refuses some self-sends."""
    (memory, elements, datatype), (into, _, into_type) = source, target
    between = bytearray(datatype.Pack_size(elements, comm))
    end = datatype.Pack(memory, between, 0, comm)
    into_type.Unpack(memoryview(between)[:end], 0, into, comm)


class SharedScratch:
    """Scratch memory for blocking calls on a communicator, of which one runs at a time."""

    def __init__(self) -> None:
        self.memory = allocate(0)

    def at_least(self, nbytes: int) -> int:
        """The address of `nbytes` bytes, valid until more are asked for."""
        if len(self.memory) < nbytes:
            # Twice as many, so that the old pieces that plans still hold add up to no more.
            self.memory = allocate(max(nbytes, 2 * len(self.memory)))
        return self.memory.address


class ScratchLayout:
    """Where the scratch slots of a list of operations are in one piece of memory.

    more: other slots to place in scratch.   nbytes: the size of that memory.
    begins: the position in a slot where each rank's data begins; None if all begin at 0.
    """

    def __init__(
        self,
        operations: Iterable[Operation],
        unit: ElementType,
        more: Sequence[int] = (),
        begins: Mapping[int, int] | None = None,
    ) -> None:
        ranges: dict[int, tuple[int, int]] = {}
        for op in operations:
            for slot in {*reads(op), *clobbers(op)}:
                if slot in more or Slot.SCRATCH <= slot < USER:
                    for block in blocks_in(op, slot):
                        begin = 0 if begins is None else begins[block.owner]
                        first, end = block.offset + begin, block.end + begin
                        low, high = ranges.get(slot, (first, end))
                        ranges[slot] = min(low, first), max(high, end)
        self._starts: dict[int, int] = {}
        self.nbytes = 0
        if ranges:
            lower, true_extent = unit.datatype.Get_true_extent()
        for slot, (low, high) in ranges.items():
            self._starts[slot] = self.nbytes - lower - unit.span(low)
            needed = unit.span(high - low) + max(0, true_extent - unit.extent)
            self.nbytes += -(-needed // _ALIGNMENT) * _ALIGNMENT

    def placed_at(self, address: int) -> dict[int, int]:
        """The address of position 0 of each slot in scratch, if the memory begins at `address`."""
        return {slot: address + start for slot, start in self._starts.items()}
