"""A user's buffer, as mpi4py takes it: where it begins, and how many elements of which type.

Where a buffer cannot be read, mpi4py's own exceptions are raised: `UNREADABLE`.
"""

from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import PACKED, Memory, Unit

UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, BufferError, MPI.Exception)
"""What mpi4py raises for a buffer that it cannot read.  It raises the same if it is asked next."""


class Buffer:
    """A user's buffer: `[data, count, type]` in any of mpi4py's forms.

    nbytes: bytes in it, equal on all ranks by MPI's rules.   unit: its elements.  Where nothing
    says what they are, they are of type `MPI.PACKED`, which can be sent and not combined.
    """

    __slots__ = ("address", "count", "keep", "nbytes", "unit")

    def __init__(self, spec: Any, *, writable: bool) -> None:
        if type(spec) is np.ndarray:
            dtype = spec.dtype
            if dtype.isnative and (unit := _NATIVE.get(dtype.char)) is not None:
                memory = MPI.buffer.frombuffer(spec, readonly=not writable)
                self.keep: Any = (spec, memory)
                self.address, self.nbytes, self.unit = memory.address, memory.nbytes, unit
                self.count = spec.size
                return
        data, count, displacement, datatype = simple_parts(spec)
        self.keep, self.address, length, known = locate(data, datatype, writable=writable)
        whole = count is None and not displacement
        self.unit = PACKED if known is None and whole else unit_of(data, known)
        if type(spec) is np.ndarray and spec.dtype.isnative and spec.dtype.char in _SIMPLE:
            _NATIVE[spec.dtype.char] = self.unit
        _, size, extent, contiguous = self.unit
        if count is None:
            count = elements_in(length, displacement, extent)
        if count < 0:
            raise ValueError(f"message: negative count {count}")
        self.count = count
        self.nbytes = count * size
        self.address += displacement * extent
        if length is not None and contiguous and displacement * extent + self.nbytes > length:
            raise ValueError(
                f"message: buffer length {length} is less than the"
                f" {displacement * extent + self.nbytes} bytes that count and displacement need"
            )

    @property
    def memory(self) -> Memory:
        """Its memory, in elements."""
        return Memory(self.address, self.unit)


_SIMPLE = frozenset("?bBhHiIlLqQfdgFDG")
_NATIVE: dict[str, Unit] = {}
"""By NumPy's code, elements that arrays were found to have (MPI may start after this import)."""


def locate(
    data: Any, datatype: MPI.Datatype | str | None, *, writable: bool
) -> tuple[Any, int, int | None, MPI.Datatype | None]:
    """What must live as long as requests use a buffer, its address, its bytes, its type.

    The bytes are None where nothing says how many there are (`MPI.BOTTOM`), the type where nothing
    says what the elements are.
    """
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    if data is None or data is MPI.BOTTOM:
        if datatype is None:
            raise TypeError("message: a datatype is needed where there is no buffer")
        return data, 0, None, datatype
    memory = MPI.buffer.frombuffer(data, readonly=not writable)
    if datatype is None and (code := _format(data)) is not None:
        datatype = MPI.Datatype.fromcode(code)
    return (data, memory), memory.address, memory.nbytes, datatype


def unit_of(data: Any, datatype: MPI.Datatype | None) -> Unit:
    """The elements of a buffer; raises TypeError where nothing says what they are."""
    if datatype is None:
        name = type(data).__name__
        raise TypeError(f"message: a datatype is needed for the elements of a {name}")
    return Unit.of(datatype)


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
    """The code of a buffer's elements; None where it cannot be found out (memory of a device)."""
    try:
        return memoryview(data).format
    except TypeError:
        pass
    try:
        array: Any = np.from_dlpack(data)
        return memoryview(array).format
    except (*UNREADABLE, RuntimeError):  # no DLPack, other memory, elements that NumPy has not
        return None


def is_in_place(sendbuf: Any) -> bool:
    """Whether the input lies where the output will be; mpi4py takes None for it, too."""
    return sendbuf is MPI.IN_PLACE or sendbuf is None


def combined_buffers(
    sendbuf: Any, recvbuf: Any, *, has_output: bool
) -> tuple[Buffer, Buffer | None]:
    """What a collective that combines sends and receives; one buffer if it is in place."""
    received = Buffer(recvbuf, writable=True) if has_output else None
    if received is not None and is_in_place(sendbuf):
        return received, received
    return Buffer(sendbuf, writable=False), received


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
