"""Buffers as mpi4py takes them: where they begin, how many elements of which type."""

from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.mpi.memory import BYTES, Memory, Unit


class Buffer:
    """A user's buffer: `[data, count, type]` in any of mpi4py's forms.

    nbytes: bytes in it, equal on all ranks by MPI's rules.   contiguous: its bytes lie in memory in
    the order in which they are sent.   datatype: `MPI.PACKED` where nobody says what its elements
    are, which can be moved, and no predefined operator combines it.
    """

    def __init__(self, spec: Any, *, writable: bool) -> None:
        data, count, displacement, datatype = simple_parts(spec)
        self.spec = spec
        self.keep, self.address, length, known = _found(data, datatype, writable=writable)
        if known is None and (count is not None or displacement):
            raise _untyped(data)
        self.datatype = MPI.PACKED if known is None else known
        self.unit = Unit.of(self.datatype)
        _, size, extent, self.contiguous = self.unit
        if count is None:
            count = elements_in(length, displacement, extent)
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


def origin(
    data: Any, datatype: MPI.Datatype | str | None, *, writable: bool
) -> tuple[list[Any], int, int | None, MPI.Datatype]:
    """What must live as long as requests point into a buffer, its address, its bytes, its type.

    The bytes are None where nobody knows (`MPI.BOTTOM`).  Raises as mpi4py does, and TypeError
    where nobody says what the elements are.
    """
    keep, address, length, known = _found(data, datatype, writable=writable)
    if known is None:
        raise _untyped(data)
    return keep, address, length, known


def _found(
    data: Any, datatype: MPI.Datatype | str | None, *, writable: bool
) -> tuple[list[Any], int, int | None, MPI.Datatype | None]:
    """The same; no type where nobody says what the elements are."""
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    if data is None or data is MPI.BOTTOM:
        if datatype is None:
            raise TypeError("message: a datatype is needed where there is no buffer")
        return [data], 0, None, datatype
    memory = MPI.buffer.frombuffer(data, readonly=not writable)
    if datatype is None and (code := _format(data)) is not None:
        datatype = MPI.Datatype.fromcode(code)
    return [data, memory], memory.address, memory.nbytes, datatype


def elements_in(length: int | None, displacement: int, extent: int) -> int:
    """How many elements of some extent fill a buffer of so many bytes, from a displacement on."""
    if length is None:
        raise TypeError("message: a count is needed where there is no buffer")
    available = length - displacement * extent
    if extent and available % extent:
        raise ValueError(
            f"message: buffer length {length} is not a multiple of the datatype's extent {extent}"
        )
    return available // extent if extent else 0


def _format(data: Any) -> str | None:
    """The code of a buffer's elements; None where we cannot find out (memory of a device)."""
    try:
        return memoryview(data).format
    except TypeError:
        pass
    try:
        array: Any = np.from_dlpack(data)
        return memoryview(array).format
    except Exception:  # other memory, or elements that NumPy has not: each says so in its way
        return None


def _untyped(data: Any) -> TypeError:
    return TypeError(f"message: a datatype is needed for the elements of a {type(data).__name__}")


def simple_parts(spec: Any) -> tuple[Any, int | None, int, MPI.Datatype | str | None]:
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
    return data, None if count is None else int(count), int(displacement), datatype
