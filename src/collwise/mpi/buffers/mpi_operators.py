"""MPI's operators by the names of `schedule.operators`, and how they combine two blocks.

Blocks are combined by `MPI_Reduce_local`, or by a ufunc where that gives the same bits.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.mpi.buffers.memory import Action, ElementType, Memory
from collwise.schedule.operators import OPERATORS as KNOWN
from collwise.schedule.operators import Kind

_WIDE, _INTEGERS = "iIlLqQ", "bBhHiIlLqQ"
_LETTERS = {(np.dtype(code).kind, np.dtype(code).itemsize): code for code in "bhiqBHIQ"}
_EXACT: Mapping[Kind, str] = {"arithmetic": _INTEGERS, "bitwise": _INTEGERS, "logical": "?"}

OPERATORS: Mapping[str, MPI.Op] = MappingProxyType(
    {name: getattr(MPI, name.upper()) for name, known in KNOWN.items() if known.kind != "user"}
)
"""The predefined operators, by the names that planning uses."""
_NAMES = {op.handle: name for name, op in OPERATORS.items()}
_FITTING: dict[tuple[int, int], bool] = {}


def exact_types(name: str) -> str:
    """NumPy's codes of the types for which the ufunc gives the same bits as `MPI_Reduce_local`.

    Tested on MPICH and Open MPI.  No floating type is among them: of two NaNs the libraries keep
    the right operand's bits, and NumPy keeps the left's or the right's, depending on the position.
    """
    if name == "sum":  # where Open MPI vectorises, one- and two-byte integers saturate
        return _WIDE
    return "" if KNOWN[name].ufunc is None else _EXACT[KNOWN[name].kind]


def planning_name(op: MPI.Op) -> str:
    """The name that planning uses for an operator; a user's is named by whether it commutes."""
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
    """Whether an operator fits a type; if not, the library's own call raises.

    Equal on all ranks.  A user's operator is assumed to fit.
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

    ufunc: NumPy's, if it can be used on this memory.   loop: the name of the compiled engine's own
    loop; blank if there is none.   user_type: the user's own type, where the elements have a
    duplicate of it.  A user's operator gets the user's own, unless it was freed.
    """

    op: MPI.Op
    ufunc: np.ufunc | None
    dtype: np.dtype[Any]
    loop: tuple[str, str] = ("", " ")
    user_type: MPI.Datatype | None = None

    @property
    def separate_output(self) -> bool:
        """Whether the result may go to a third place; `MPI_Reduce_local` overwrites the right."""
        return self.ufunc is not None or bool(self.loop[0])

    @staticmethod
    def of(
        op: MPI.Op,
        unit: ElementType,
        memory: Iterable[Memory],
        has_loop: Callable[[str, str], bool] | None = None,
    ) -> "BoundOperator":
        """The operator for a type.

        memory: of the slots; a user's may not be aligned for a ufunc.   has_loop: of the compiled
        engine, whether it has a loop for an operator and an element; None if Python combines.
        """
        name, datatype = _NAMES.get(op.handle), unit.datatype
        if name is not None and datatype.is_predefined and datatype.typechar in exact_types(name):
            dtype = np.dtype(datatype.typechar)
            if has_loop is not None:
                loop = name, "?" if dtype.kind == "b" else _LETTERS[dtype.kind, dtype.itemsize]
                if has_loop(*loop):
                    return BoundOperator(op, None, dtype, loop)
            elif all(m.aligned(dtype) for m in memory):
                return BoundOperator(op, KNOWN[name].ufunc, dtype)
        return BoundOperator(op, None, np.dtype("V1"))

    def act(self, left: Any, right: Any, into: Any) -> Action:
        """A call that combines two buffers into a third, which without a ufunc is the right one."""
        if self.user_type is not None:
            return partial(self._reduce_user_type, left, right, self.user_type)
        if self.ufunc is None:
            return partial(self.op.Reduce_local, left, right)
        one, other, out = (np.frombuffer(spec[0], self.dtype) for spec in (left, right, into))
        return partial(self.ufunc, one, other, out=out)

    def _reduce_user_type(self, left: Any, right: Any, datatype: MPI.Datatype) -> None:
        if datatype != MPI.DATATYPE_NULL:
            left, right = ((*spec[:2], datatype) for spec in (left, right))
        self.op.Reduce_local(left, right)
