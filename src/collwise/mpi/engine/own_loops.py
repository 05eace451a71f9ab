"""Which operators the engine applies by its own loops: those that give the library's bits."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import ElementType
from collwise.mpi.buffers.mpi_operators import OPERATORS, BoundOperator
from collwise.mpi.engine.loading import COMPILED

_REAL = "fd"
"""NumPy's codes of types whose loops are compared with the library's at the first use.

The sum of two NaNs has the bits of either, depending on how the library was compiled.
"""
_SPECIAL = 0.0, -0.0, 1.5, -2.25, np.inf, -np.inf
_NANS = {
    "f": (0x7FC00001, 0xFFC00002, 0x7F800003),
    "d": (0x7FF8 << 48 | 1, 0xFFF8 << 48 | 2, 0x7FF << 52 | 3),
}


def needs_no_helper(elements: tuple[str, str, int] | None, form: str) -> bool:
    """Whether a plan within shared memory never calls MPI while the program does something else.

    elements: (operator, element type, bytes); None if nothing is combined.   form: the call's.
    """
    return form == "blocking" or elements is None or combines_alone(*elements[:2])


def combines_alone(op: str, dtype: str) -> bool:
    """Whether a loop in C combines elements of `dtype` by `op`, so that no combine calls MPI."""
    code = np.dtype(dtype).char
    datatype = MPI.Datatype.fromcode(code)
    if op not in OPERATORS or datatype == MPI.DATATYPE_NULL:
        return False
    return BoundOperator.of(OPERATORS[op], ElementType.of(datatype), has_loop).separate_output


def has_loop(operation: str, element: str) -> bool:
    """Whether a loop in C for an operator's name and a type's code gives the library's bits."""
    if COMPILED is None or not COMPILED.has_loop(operation, element):
        return False
    return element not in _REAL or _alike(operation, element)


@cache
def _alike(operation: str, element: str) -> bool:
    """Whether the loop and `MPI_Reduce_local` make the same bits of all pairs of special values.

    Libraries may keep one NaN in whole registers and the other in the elements that are left, so
    two NaNs meet in vectors of every length up to four of the widest registers, too.
    """
    dtype = np.dtype(element)
    nans = np.array(_NANS[element], f"u{dtype.itemsize}").view(dtype)
    special = np.concatenate([np.array(_SPECIAL, dtype), nans])
    pairs = np.array([*product(range(len(special)), repeat=2)] * 3)  # each in several lanes
    vectors = [(special[pairs[:, 0]], special[pairs[:, 1]])]
    vectors += [(np.resize(nans[:1], n), np.resize(nans[1:2], n)) for n in range(1, 66)]
    return all(_alike_on(operation, left, right) for left, right in vectors)


def _alike_on(operation: str, left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    assert COMPILED is not None
    element, op = left.dtype.char, OPERATORS[operation]
    datatype = MPI.Datatype.fromcode(element)
    into, count, end = np.zeros_like(left), len(left), (0, 0, operation, element)
    combine = COMPILED.COMBINE, 0, 0, (0, 0), (1, 0), (2, 0), count, datatype.handle, *end
    program = COMPILED.Program(
        MPI.COMM_SELF.handle, op.handle, 0, 0, 3, (), (), (combine,), 0, None
    )
    for slot, array in enumerate((left, right, into)):
        program.set_address(slot, array.ctypes.data)
    program.run()
    op.Reduce_local([left, datatype], [right, datatype])
    return bool(into.tobytes() == right.tobytes())
