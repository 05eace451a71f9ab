"""Buffers as mpi4py takes them: where they begin, how many elements of which type."""

from typing import Any

from mpi4py import MPI

from collwise.mpi.memory import BYTES, Memory, Unit


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
                datatype = MPI.Datatype.fromcode(_format(data))
        if datatype is None:
            raise TypeError("message: a datatype is needed where there is no buffer")
        self.datatype: MPI.Datatype = datatype
        self.unit = Unit.of(datatype)
        _, size, extent, self.contiguous = self.unit
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
        if length is not None and self.contiguous and displacement * extent + self.nbytes > length:
            raise ValueError(
                f"message: buffer length {length} is less than the"
                f" {displacement * extent + self.nbytes} bytes that count and displacement need"
            )

    @property
    def elements(self) -> Memory:
        """Its memory in elements."""
        return Memory(self.address, self.unit)

    @property
    def bytes(self) -> Memory:
        """Its memory in bytes; for contiguous ones."""
        return Memory(self.address, BYTES)

    def packed(self) -> "Buffer":
        """Scratch for the buffer's bytes in the order in which they are sent."""
        return Buffer(bytearray(self.nbytes), writable=True)


def _format(data: Any) -> str:
    """The code of a buffer's elements; bytes, if it does not say (memory of a device)."""
    try:
        return memoryview(data).format
    except TypeError:
        return "B"


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
