"""MPI's operators by the names of `schedule.operators`, and how they combine two blocks.

Blocks are combined by `MPI_Reduce_local`, or by a loop in C where that gives the same bits.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import ElementType
from collwise.schedule.operators import OPERATORS as KNOWN
from collwise.schedule.operators import Kind

_WIDE, _INTEGERS, _REAL = "iIlLqQ", "bBhHiIlLqQ", "fd"
_LETTERS = {(np.dtype(code).kind, np.dtype(code).itemsize): code for code in "bhiqBHIQfd"}
_EXACT: Mapping[Kind, str] = {"arithmetic": _INTEGERS, "bitwise": _INTEGERS, "logical": "?"}

OPERATORS: Mapping[str, MPI.Op] = MappingProxyType(
    {name: getattr(MPI, name.upper()) for name, known in KNOWN.items() if known.kind != "user"}
)
"""The predefined operators of reductions, by the names that planning uses."""
_NAMES = {op.handle: name for name, op in OPERATORS.items()}
_FITTING: dict[tuple[int, int], bool] = {}


def exact_types(name: str) -> str:
    """NumPy's codes of the types for which a loop in C gives the same bits as `MPI_Reduce_local`.

    Tested on MPICH and Open MPI.  Sums and products of real numbers are compared once more when a
    process first needs them (`mpi/engine/own_loops.py`).  Minima and maxima of reals are left
    out, since libraries differ if one operand is NaN.
    """
    if name == "sum":  # where Open MPI vectorises, one- and two-byte integers saturate
        return _WIDE + _REAL
    if name == "prod":
        return _INTEGERS + _REAL
    return "" if KNOWN[name].ufunc is None else _EXACT[KNOWN[name].kind]


def planning_name(op: MPI.Op) -> str:
    """Planning's name for an operator; a user's is "commutative" or "noncommutative"."""
    if (name := _NAMES.get(op.handle)) is not None:
        return name
    return "commutative" if op.Is_commutative() else "noncommutative"


def planning_type(datatype: MPI.Datatype) -> str:
    """Planning's name for a type: NumPy's, or "V" and the size in bytes if NumPy has none.

    Equal on all ranks, whichever of MPI's names for the type they use.
    """
    if datatype.is_predefined:
        code = datatype.typechar.replace("c", "b")  # characters are combined as small integers
        if code not in "VSU":
            return np.dtype(code).name
    return f"V{datatype.Get_size()}"


def can_combine(op: MPI.Op, datatype: MPI.Datatype) -> bool:
    """Whether an operator fits a type; if not, the library's own call serves or raises.

    Equal on all ranks.  A user's operator fits every type of positive size and extent.
    """
    if not op.is_predefined:
        return datatype.Get_size() > 0 and datatype.Get_extent()[1] > 0
    if op.handle not in _NAMES or not datatype.is_predefined:
        return False
    pair = op.handle, datatype.handle
    if pair not in _FITTING:
        one, other = (np.zeros(64, np.uint8) for _ in range(2))
        try:
            op.Reduce_local([one, 1, datatype], [other, 1, datatype])
        except MPI.Exception:
            _FITTING[pair] = False
        else:
            _FITTING[pair] = True
    return _FITTING[pair]


class BoundOperator(NamedTuple):
    """An operator on elements of a type.

    loop: the operator and the type of the compiled engine's loop; blank if it has none.
    user_type: the type that the user passed, if the elements have a duplicate of it.  A user's
    operator gets `user_type`, or the duplicate once the user has freed `user_type`.
    """

    op: MPI.Op
    loop: tuple[str, str] = ("", " ")
    user_type: MPI.Datatype | None = None

    @property
    def separate_output(self) -> bool:
        """Whether a third buffer may take the result; `MPI_Reduce_local` overwrites an operand."""
        return bool(self.loop[0])

    @staticmethod
    def of(
        op: MPI.Op, unit: ElementType, has_loop: Callable[[str, str], bool] | None = None
    ) -> "BoundOperator":
        """The operator for elements of a type.

        has_loop: says whether the compiled engine has a loop for an operator and a type
        (`own_loops.has_loop`); None if Python combines.
        """
        name, datatype = _NAMES.get(op.handle), unit.datatype
        if name is None or has_loop is None or not datatype.is_predefined:
            return BoundOperator(op)
        if datatype.typechar not in exact_types(name):
            return BoundOperator(op)
        dtype = np.dtype(datatype.typechar)
        loop = name, "?" if dtype.kind == "b" else _LETTERS[dtype.kind, dtype.itemsize]
        return BoundOperator(op, loop) if has_loop(*loop) else BoundOperator(op)

    def combine(self, left: Any, right: Any) -> None:
        """Combine two buffers, as mpi4py takes them, into the right one."""
        if self.user_type is not None and self.user_type != MPI.DATATYPE_NULL:
            left, right = ((*spec[:2], self.user_type) for spec in (left, right))
        self.op.Reduce_local(left, right)
