"""A user's buffer, as mpi4py takes it: where it begins, and how many elements of which type.

Every form of buffer that mpi4py accepts is accepted here, and a form that mpi4py refuses raises the
same type of error.  If some forms were left to mpi4py, a rank that uses such a form would call the
library while the other ranks run a plan.
"""

import ctypes
import sys
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import ElementType, Memory

_LARGEST = 2**63 - 1
Span: TypeAlias = tuple[int, int]
"""The address of the first byte of memory, and the address after the last byte."""


class Buffer:
    """A user's buffer: `[data, count, type]` in any of mpi4py's forms.

    parts: how many blocks the buffer has; the user's count is for one block.   nbytes: the bytes of
    its data without gaps.   count: the elements of all blocks.   unit: the element type.
    """

    __slots__ = ("address", "count", "keep", "nbytes", "unit")

    def __init__(self, spec: Any, *, writable: bool, parts: int = 1) -> None:
        if type(spec) is np.ndarray and spec.size % parts == 0 and spec.dtype in _PLAIN:
            memory, self.unit = memory_of(spec, writable=writable), _PLAIN[spec.dtype]
            self.keep: Any = (spec, memory)
            self.address, self.nbytes, self.count = memory.address, memory.nbytes, spec.size
            return
        data, number, first, datatype = parts_of(spec)
        self.keep, address, length, unit = locate(data, datatype, writable=writable)
        displacement = _index("displacement", 0 if first is None else first)
        offset = displacement * unit.extent
        if displacement and not 0 < offset <= length:
            raise ValueError(f"message: displacement {displacement} out of bounds")
        if number is not None:
            count = _index("count", number) * parts
        else:
            count = elements_in(length - offset, unit)
            if count % parts:
                raise ValueError(f"message: {count} elements are no multiple of {parts} blocks")
        if count and not address:
            _check_absolute(data, count, unit)
        if type(spec) is np.ndarray and len(_PLAIN) < _MOST_PLAIN:
            _PLAIN[spec.dtype] = unit
        self.unit, self.count, self.nbytes = unit, count, count * unit.size
        self.address = address + offset

    @property
    def memory(self) -> Memory:
        """The buffer's memory, in units of its elements."""
        return Memory(self.address, self.unit)

    @property
    def span(self) -> Span:
        """The buffer's bytes; the first byte alone if the elements may have gaps."""
        return span_of(self.address, self.nbytes, self.unit)


_PLAIN: dict[np.dtype[Any], ElementType] = {}
"""For each dtype of NumPy arrays that were read before, the type of their elements."""
_MOST_PLAIN = 64


class Place(NamedTuple):
    """Where a buffer's memory is.   keep: what must stay alive while requests use it.

    address, length: its address and size in bytes; both 0 for `MPI.BOTTOM` and None.   unit: the
    type of its elements.
    """

    keep: Any
    address: int
    length: int
    unit: ElementType


def locate(data: Any, datatype: Any, *, writable: bool) -> Place:
    """Where the memory of a buffer is.

    datatype: None to take the type from the format of `data`.
    """
    if data is None or data is MPI.BOTTOM:
        return Place(data, 0, 0, ElementType.of(_known_type(datatype)))
    memory = memory_of(data, writable=writable)
    known = _known_type(_native(_format(data, memory)) if datatype is None else datatype)
    unit = ElementType.of(known)
    if type(data) is not np.ndarray:
        try:
            memory[:0]
        except BufferError:  # memory of a device
            unit = unit._replace(contiguous=False, on_host=False)
    return Place((data, memory), memory.address, memory.nbytes, unit)


def memory_of(data: Any, *, writable: bool) -> MPI.buffer:
    """The memory of an object that is contiguous in C or Fortran order."""
    try:
        return MPI.buffer.frombuffer(data, readonly=not writable)
    except Exception:
        try:
            view = memoryview(data)
        except Exception:
            view = memoryview(b"")
        if view.c_contiguous or not view.f_contiguous:
            raise
    return MPI.buffer.frombuffer(np.asarray(view).T, readonly=not writable)


def check_apart(one: Span, other: Span) -> None:
    """Raise MPI.Exception, class ERR_BUFFER, if a send buffer overlaps the receive buffer."""
    if max(one[0], other[0]) < min(one[1], other[1]):
        raise MPI.Exception(MPI.ERR_BUFFER)


def span_of(address: int, nbytes: int, unit: ElementType) -> Span:
    """The memory of elements: all bytes, or the first byte alone if there may be gaps."""
    if unit.contiguous or not nbytes:
        return address, address + nbytes
    first = address + unit.datatype.Get_true_extent()[0]
    return first, first + 1


def elements_in(length: int, unit: ElementType) -> int:
    """How many elements fill `length` bytes; raises ValueError unless a whole number does."""
    if not length:
        return 0
    if unit.extent <= 0 or length % unit.extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {length} is not a multiple of datatype"
            f" extent {unit.extent}"
        )
    return length // unit.extent


def _known_type(datatype: Any) -> MPI.Datatype:
    if isinstance(datatype, MPI.Datatype):
        return datatype
    try:
        return MPI.Datatype.fromcode(datatype)
    except (TypeError, ValueError):
        raise KeyError(f"cannot map {datatype!r} to MPI datatype") from None


def _native(code: str) -> str:
    order = {"@": sys.byteorder, "<": "little", ">": "big"}.get(code[:1])
    if order is None:
        return code
    if order != sys.byteorder:
        raise BufferError(f"format string {code!r} with non-native byte order")
    return code[1:]


def _format(data: Any, memory: MPI.buffer) -> str:
    """The format code of a buffer's elements; "B", for bytes, if NumPy has no code."""
    try:
        return memoryview(data).format
    except TypeError:
        pass  # no buffer of Python's
    except ValueError as problem:  # mpi4py tries others, and raises this for dates
        raise BufferError(str(problem)) from None
    # mpi4py 4.0 keeps the object itself instead of its capsule.
    owner: Any = memory.obj if memory.obj is not data else getattr(data, "__dlpack__", object)()
    for name, start in ((b"dltensor_versioned", 32), (b"dltensor", 0)):
        if ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(owner), name):
            tensor = _capsule_pointer(owner, name) + start
            code, bits, lanes = np.frombuffer(ctypes.string_at(tensor + 20, 4), "B,B,H")[0]
            if (code, lanes) == (_FLOAT, 2):  # as mpi4py has it, a complex number
                code, bits, lanes = _COMPLEX, 2 * int(bits), 1
            kind = "iuf??c?"[code] if lanes == 1 and code < 7 else "?"
            typestr = "?" if code == 6 else f"{kind}{bits // 8}"
            break
    else:
        typestr = data.__cuda_array_interface__["typestr"]
    try:
        return memoryview(np.empty(0, typestr).data).format
    except (TypeError, ValueError):
        return "B"


_FLOAT, _COMPLEX = 2, 5
"""DLPack's codes of floating and complex types."""
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_size_t
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _check_absolute(data: Any, count: int, unit: ElementType) -> None:
    """Raise if data is None, or has no address and a type without absolute addresses."""
    if data is None:
        raise ValueError(f"message: buffer is None but count is {count}")
    if not unit.datatype.Get_true_extent()[0]:
        raise MPI.Exception(MPI.ERR_BUFFER)


def is_in_place(sendbuf: Any) -> bool:
    """Whether a send buffer means MPI.IN_PLACE; mpi4py takes None for that, too."""
    return sendbuf is MPI.IN_PLACE or sendbuf is None


def combined_buffers(
    sendbuf: Any, recvbuf: Any, *, has_output: bool, parts: int = 1
) -> tuple[Buffer, Buffer | None]:
    """The send and receive buffers of a collective that combines; one for both if in place.

    has_output: whether this rank gets a result; if not, the receive buffer is None.   parts: how
    many blocks the vector has: the number of ranks if each rank gets a block, otherwise 1.
    """
    if has_output and is_in_place(sendbuf):
        received = Buffer(recvbuf, writable=True, parts=parts)
        return received, received
    output = Buffer(recvbuf, writable=True) if has_output else None
    return Buffer(sendbuf, writable=False, parts=parts), output


def parts_of(spec: Any, pairs: Any = (list, tuple)) -> tuple[Any, Any, Any, Any]:
    """Split a buffer specification, in any of mpi4py's forms, into its four parts.

    Returns (data, count, displacement, type) as the user passed them; None for what is left out.
    pairs: the Python types that the pair (count, displacement) may have.
    """
    if not isinstance(spec, list | tuple):
        if spec is not MPI.BOTTOM and (spec is None or isinstance(spec, str | int)):
            raise TypeError("message: expecting buffer or list/tuple")
        return spec, None, None, None
    if not 2 <= len(spec) <= 4:
        raise ValueError("message: expecting 2 to 4 items")
    data, count, *rest = spec
    datatype = rest.pop() if rest else None
    displacement = rest.pop() if rest else None
    if len(spec) == 2 and isinstance(count, MPI.Datatype | str):
        count, datatype = None, count
    elif len(spec) < 4 and isinstance(count, pairs):
        count, displacement = count
    return data, count, displacement, datatype


def _index(name: str, value: Any) -> int:
    number = checked_index(value)
    if number < 0:
        raise ValueError(f"message: negative {name} {number}")
    return number


def checked_index(value: Any) -> int:
    """Return `value` as an integer; raises OverflowError beyond ±(2**63 - 1)."""
    number = index(value)
    if abs(number) > _LARGEST:
        raise OverflowError(f"message: {number} is too large")
    return number
