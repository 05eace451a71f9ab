"""MPI's operators: their names in plans, NumPy's ufuncs for them, and how two blocks are combined.

Blocks are combined by `MPI_Reduce_local`, or by a ufunc where that gives the same bits.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import Act, Memory, Unit


class Predefined(NamedTuple):
    """A predefined operator.

    ufunc: what it is in NumPy.   exact: NumPy's codes of the types for which that gives the bits of
    `MPI_Reduce_local` (tested on MPICH and Open MPI).  None are floating: of two NaNs the libraries
    keep the right operand's bits, and NumPy keeps one or the other, depending on the position.
    """

    op: MPI.Op
    ufunc: np.ufunc
    exact: str


_WIDE = "iIlLqQ"
_INTEGERS = "bBhH" + _WIDE

OPERATORS: Mapping[str, Predefined] = MappingProxyType(
    {
        # Open MPI adds one- and two-byte integers with saturation, and only where it vectorises.
        "sum": Predefined(MPI.SUM, np.add, _WIDE),
        "prod": Predefined(MPI.PROD, np.multiply, _INTEGERS),
        "max": Predefined(MPI.MAX, np.maximum, _INTEGERS),
        "min": Predefined(MPI.MIN, np.minimum, _INTEGERS),
        "land": Predefined(MPI.LAND, np.logical_and, "?"),
        "lor": Predefined(MPI.LOR, np.logical_or, "?"),
        "lxor": Predefined(MPI.LXOR, np.logical_xor, "?"),
        "band": Predefined(MPI.BAND, np.bitwise_and, _INTEGERS),
        "bor": Predefined(MPI.BOR, np.bitwise_or, _INTEGERS),
        "bxor": Predefined(MPI.BXOR, np.bitwise_xor, _INTEGERS),
    }
)
"""The predefined operators that NumPy has, too, by the names that planning uses."""
_BY_HANDLE = {known.op.handle: known for known in OPERATORS.values()}
_NAMES = {
    **{known.op.handle: name for name, known in OPERATORS.items()},
    MPI.MINLOC.handle: "minloc",
    MPI.MAXLOC.handle: "maxloc",
}
_FITTING: dict[tuple[int, int], bool] = {}


def planning_name(op: MPI.Op) -> str:
    """The name that planning uses for an operator; of a user's it knows whether it commutes."""
    if (name := _NAMES.get(op.handle)) is not None:
        return name
    return "commutative" if op.Is_commutative() else "noncommutative"


def planning_type(datatype: MPI.Datatype) -> str:
    """The name that planning uses for a type: NumPy's, or void of its size where NumPy has none.

    Equal on all ranks, whichever of MPI's names for the type they use.
    """
    if datatype.is_predefined:
        code = datatype.typechar.replace("c", "b")  # characters are combined as small integers
        if code not in "VSU":
            return np.dtype(code).name
    return f"V{datatype.Get_size()}"


def can_combine(op: MPI.Op, datatype: MPI.Datatype) -> bool:
    """Whether an operator fits a type; if not, the library's own call says what is wrong.

    Equal on all ranks.  A user's operator is believed to fit; it is not called.
    """
    if datatype == MPI.PACKED:  # elements of a type that we cannot find out
        return False
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


class Operator(NamedTuple):
    """An operator on elements of a type; with its ufunc, if that can be used on this memory."""

    op: MPI.Op
    unit: Unit
    ufunc: np.ufunc | None
    dtype: np.dtype[Any]

    @staticmethod
    def of(op: MPI.Op, unit: Unit, memory: Iterable[Memory]) -> "Operator":
        """The operator for a type.   memory: the user's, which may not be aligned for a ufunc."""
        known, datatype = _BY_HANDLE.get(op.handle), unit.datatype
        if known is not None and datatype.is_predefined and datatype.typechar in known.exact:
            dtype = np.dtype(datatype.typechar)
            if all(m.aligned(dtype) for m in memory):
                return Operator(op, unit, known.ufunc, dtype)
        return Operator(op, unit, None, np.dtype("V1"))

    def act(self, left: Any, right: Any, into: Any) -> Act:
        """An act that combines two buffers into a third; without a ufunc, into the right one."""
        if self.ufunc is None:
            return partial(self.op.Reduce_local, left, right)
        one, other, out = (np.frombuffer(spec[0], self.dtype) for spec in (left, right, into))
        return partial(self.ufunc, one, other, out=out)
