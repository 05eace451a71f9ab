"""Which engine serves in this process, and why: Python's if chosen, or if C's cannot serve.

The extension is not compiled for an MPI library.  At run time it gets what mpi4py knows: the width
of handles, where they are in its objects, and where MPI's functions are.  If anything is not as
expected, the Python engine serves.
"""

import ctypes
import gc
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.errors import UnknownName
from collwise.mpi.buffers.mpi_operators import OPERATORS

ENVIRONMENT = "COLLWISE_ENGINE"
"""The environment variable that chooses a rank's engine; ranks may use different engines."""
ENGINES = ("compiled", "python")
_FORMATS = {**{code: code for code in "?bBhHiIlLqQfdg"}, "F": "Zf", "D": "Zd", "G": "Zg"}


class Serving(NamedTuple):
    """The engine in use.   module: the extension; None for Python.   why: the reason for Python.

    wrong: the error if COLLWISE_ENGINE names no known engine.  All ranks raise it at their next
    collective: a rank that raised it at import would leave the others waiting.
    """

    module: ModuleType | None
    why: str
    wrong: UnknownName | None = None

    @property
    def name(self) -> str:
        """The engine's name, as a value of `COLLWISE_ENGINE`."""
        return "python" if self.module is None else "compiled"


class _Unusable(Exception):
    """Raised where the extension cannot serve, with the reason."""


def _load() -> Serving:
    wanted = os.environ.get(ENVIRONMENT, "")
    if wanted and wanted not in ENGINES:
        wrong = UnknownName.of("engine", wanted, ENGINES)
        return Serving(None, str(wrong), wrong)
    if wanted == "python":
        return Serving(None, f"{ENVIRONMENT}=python")
    try:
        return Serving(_extension(), "")
    except _Unusable as problem:
        if wanted:
            print(f"collwise: no compiled engine, Python serves: {problem}", file=sys.stderr)
        return Serving(None, str(problem))


def _extension() -> ModuleType:
    """The extension, connected to the MPI library of this process."""
    spec = find_spec("collwise.mpi.engine._engine")
    if spec is not None and spec.origin and _cut_off(spec.origin):
        raise _Unusable(f"{spec.origin} is incomplete: install collwise anew")
    try:
        import collwise.mpi.engine._engine as _engine
    except ImportError as problem:
        seen = "is not built" if spec is None else "cannot be loaded here"
        raise _Unusable(f"it {seen} ({_line(problem)})") from None
    try:
        width, offset = _handles()
        status_size = MPI._sizeof(MPI.Status)
        constants = MPI.ERR_TRUNCATE, MPI.ERR_NO_MEM, MPI.PROC_NULL, MPI.BYTE.handle
        if missing := _engine.connect(MPI.__file__, width, status_size, *constants):
            raise _Unusable(f"the MPI library has no {', '.join(missing)}")
        _engine.describe(
            MPI.Exception,
            MPI.IN_PLACE,
            int(MPI.IN_PLACE),
            MPI.Request,
            MPI.Prequest,
            _held(),
            MPI.INFO_NULL.handle,
            MPI.DATATYPE_NULL,
            MPI.ERR_OTHER,
            _count_at(),
            offset,
            MPI.Datatype,
            MPI.Op,
            list(_types()),
            [op.handle for op in OPERATORS.values()],
            np.ndarray,
            list(_dtypes()),
        )
    except (AttributeError, OSError, TypeError, ValueError, MPI.Exception) as problem:
        raise _Unusable(f"it does not fit this mpi4py ({_line(problem)})") from None
    return _engine


def _handles() -> tuple[int, int]:
    """The size of an MPI handle, and its offset in mpi4py's objects, both in bytes."""
    objects = (MPI.COMM_WORLD, MPI.COMM_SELF, MPI.BYTE, MPI.SUM, MPI.Request())
    widths = {MPI._sizeof(one) for one in objects}
    offsets = {MPI._addressof(one) - id(one) for one in objects}
    if len(widths) != 1 or not widths <= {4, 8}:
        raise _Unusable(f"handles have {sorted(widths)} bytes, and only 4 or 8 are supported")
    if len(offsets) != 1 or not 0 < max(offsets) < 256:
        raise _Unusable("mpi4py keeps handles in several places")
    return widths.pop(), offsets.pop()


def _held() -> int:
    """The byte offset, in an mpi4py request, of the object that it keeps alive; -1 if unknown."""
    request = MPI.COMM_SELF.Irecv(bytearray(1), MPI.PROC_NULL)
    held = {id(one) for one in gc.get_referents(request)}
    words = (ctypes.c_ssize_t * (MPI.Request.__basicsize__ // 8)).from_address(id(request))
    places = [8 * place for place, word in enumerate(words) if place > 1 and word in held]
    request.Wait()
    return places[0] if len(held) == len(places) == 1 else -1


def _count_at() -> int:
    """The byte offset, in a status, of the word with its number of bytes; -1 if unknown."""
    status, places = MPI.Status(), set(range(0, MPI._sizeof(MPI.Status), 4))
    for nbytes in (0x1234567, 0x7654321):
        status.Set_elements(MPI.BYTE, nbytes)
        memory = ctypes.string_at(MPI._addressof(status), MPI._sizeof(status))
        places &= {4 * n for n, word in enumerate(memoryview(memory).cast("I")) if word == nbytes}
    return places.pop() if len(places) == 1 else -1


def _types() -> Iterator[tuple[int, int, str]]:
    """Predefined types without gaps: handle, bytes of an element, and its buffer format or ""."""
    formats = {}
    for code, written in _FORMATS.items():
        datatype = MPI.Datatype.fromcode(code)
        if datatype != MPI.DATATYPE_NULL:
            formats[written] = datatype
    named = {
        one.handle: one
        for one in vars(MPI).values()
        if isinstance(one, MPI.Datatype) and one not in (MPI.DATATYPE_NULL, MPI.PACKED)
    }
    for written, datatype in [*formats.items(), *(("", one) for one in named.values())]:
        try:
            size, (lower, extent) = datatype.Get_size(), datatype.Get_extent()
        except MPI.Exception:  # mpi4py's wheel names types that an older library does not know
            continue
        if datatype.is_predefined and size and (lower, extent) == (0, size):
            yield datatype.handle, size, written


def _dtypes() -> Iterator[tuple[object, int, int]]:
    """NumPy's native types: the dtype, and the handle and the bytes of MPI's type for it."""
    for code in _FORMATS:
        datatype, dtype = MPI.Datatype.fromcode(code), np.dtype(code)
        if datatype != MPI.DATATYPE_NULL and datatype.Get_size() == dtype.itemsize:
            yield dtype, datatype.handle, dtype.itemsize


def _cut_off(path: str) -> bool:
    """Whether the end of an ELF file is missing: a process that used it would crash."""
    with suppress(OSError, struct.error), Path(path).open("rb") as file:
        magic, table, entry, entries = struct.unpack("<4s36xQ10xHH", file.read(62))
        is_elf: bool = magic == b"\x7fELF"
        return is_elf and Path(path).stat().st_size < table + entry * entries
    return False


def _line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]


SERVING = _load()
COMPILED = SERVING.module
"""The extension; None for the Python engine."""
