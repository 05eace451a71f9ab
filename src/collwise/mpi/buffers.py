"""Buffers as mpi4py takes them, and pieces of them as messages.

A whole message keeps the user's count and type.  A piece is bytes: at an address, where the type is
contiguous; in scratch that is packed before and unpacked after, where it is not.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.schedule.data import Block


class Buffer:
    """A user's buffer: `[data, count, type]` in any of mpi4py's forms.

    nbytes: bytes in it, equal on all ranks by MPI's rules.   contiguous: its bytes lie in memory in
    the order in which they are sent.
    """

    def __init__(self, spec: Any, *, writable: bool) -> None:
        data, count, displacement, datatype = _parts(spec)
        self.spec = spec
        self.keep: list[Any] = [data]  # what must live as long as requests point into it
        if data is None or data is MPI.BOTTOM:
            self.address, length = 0, None
        else:
            memory = MPI.buffer.frombuffer(data, readonly=not writable)
            self.keep.append(memory)
            self.address, length = memory.address, memory.nbytes
            if datatype is None:
                datatype = MPI.Datatype.fromcode(memory.format or "B")
        if datatype is None:
            raise TypeError("message: a datatype is needed where there is no buffer")
        self.datatype: MPI.Datatype = datatype
        size = datatype.Get_size()
        _, extent = datatype.Get_extent()
        if count is None:
            if length is None:
                raise TypeError("message: a count is needed where there is no buffer")
            available = length - displacement * extent
            if extent and available % extent:
                raise ValueError(
                    f"message: buffer length {length} is not a multiple of the datatype's"
                    f" extent {extent}"
                )
            count = available // extent if extent else 0
        if count < 0:
            raise ValueError(f"message: negative count {count}")
        self.count: int = count
        self.nbytes: int = count * size
        self.address += displacement * extent
        self.contiguous = _in_order(datatype)
        if length is not None and self.contiguous and displacement * extent + self.nbytes > length:
            raise ValueError(
                f"message: buffer length {length} is less than the"
                f" {displacement * extent + self.nbytes} bytes that count and displacement need"
            )

    def message(self, blocks: Sequence[Block], scratch: "Buffer | None" = None) -> "Message":
        """The blocks (byte ranges of this buffer, or of its packed copy) as one message."""
        first = blocks[0]
        if len(blocks) == 1 and first.length == self.nbytes and scratch is None:
            return Message(self.spec)
        base = (scratch or self).address
        low, high = min(b.offset for b in blocks), max(b.end for b in blocks)
        memory = MPI.buffer.fromaddress(base + low, high - low)
        if len(blocks) == 1:
            return Message([memory, first.length, MPI.BYTE])
        joined = MPI.BYTE.Create_hindexed(
            [b.length for b in blocks], [b.offset - low for b in blocks]
        ).Commit()
        return Message([memory, 1, joined], joined)

    def packed(self) -> "Buffer":
        """Scratch for the buffer's bytes in the order in which they are sent."""
        return Buffer(bytearray(self.nbytes), writable=True)


class Message(NamedTuple):
    """What mpi4py sends or receives, and the derived type to free after the last use."""

    spec: Any
    derived: MPI.Datatype | None = None


def copy(source: Buffer, target: Buffer, comm: MPI.Intracomm, tag: int) -> None:
    """Pack or unpack: from one layout to the other, one of them packed bytes."""
    me = comm.Get_rank()
    plain = source.contiguous
    sent = [source.spec, source.nbytes, MPI.PACKED] if plain else source.spec
    received = target.spec if plain else [target.spec, target.nbytes, MPI.PACKED]
    comm.Sendrecv(sent, me, tag, received, me, tag)


def _parts(spec: Any) -> tuple[Any, int | None, int, MPI.Datatype | None]:
    """Data, count, displacement and type of the forms that mpi4py takes."""
    data, count, displacement, datatype = spec, None, 0, None
    if isinstance(spec, list | tuple):
        if not 1 <= len(spec) <= 4:
            raise ValueError(f"message: expecting 1 to 4 items, got {len(spec)}")
        data, *rest = spec
        if rest and isinstance(rest[-1], MPI.Datatype | str):
            datatype = rest.pop()
        if len(rest) == 1 and isinstance(rest[0], list | tuple):
            rest = list(rest[0])
        if rest:
            count = rest.pop(0)
        if rest:
            displacement = rest.pop(0) or 0
        if rest:
            raise ValueError(f"message: cannot read {spec!r}")
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    return data, None if count is None else int(count), int(displacement), datatype


def _in_order(datatype: MPI.Datatype) -> bool:
    """Whether count elements of this type are consecutive bytes, in the order they are sent."""
    lower, extent = datatype.Get_extent()
    if lower or extent != datatype.Get_size():
        return False
    if datatype.is_predefined:
        return True
    of, combiner, _ = datatype.decode()
    return combiner in ("DUP", "CONTIGUOUS") and _in_order(of)
