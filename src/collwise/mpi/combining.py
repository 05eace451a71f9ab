"""Combining two pieces of vectors on one rank: `Reduce_local`, or a ufunc with the same bits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.mpi.combiner import OPERATORS
from collwise.mpi.memory import Act, Memory, Unit, copying, merged
from collwise.schedule.operations import Block, Combine, Copy, Operation, Slot

_WIDE = "iIlLqQ"
_NARROW = "bBhH"

UFUNCS: Mapping[int, tuple[np.ufunc, str]] = MappingProxyType(
    {
        # Open MPI adds one- and two-byte integers with saturation, and only where it vectorises.
        MPI.SUM.handle: (np.add, _WIDE),
        MPI.PROD.handle: (np.multiply, _NARROW + _WIDE),
        MPI.MAX.handle: (np.maximum, _NARROW + _WIDE),
        MPI.MIN.handle: (np.minimum, _NARROW + _WIDE),
        MPI.BAND.handle: (np.bitwise_and, _NARROW + _WIDE),
        MPI.BOR.handle: (np.bitwise_or, _NARROW + _WIDE),
        MPI.BXOR.handle: (np.bitwise_xor, _NARROW + _WIDE),
        MPI.LAND.handle: (np.logical_and, "?"),
        MPI.LOR.handle: (np.logical_or, "?"),
        MPI.LXOR.handle: (np.logical_xor, "?"),
    }
)
"""By operator: a ufunc, and NumPy's codes of the types for which it gives the bits of
`Reduce_local` (tested on MPICH and Open MPI).  None are floating: of two NaNs the libraries keep
the right one's bits, and NumPy keeps one or the other, depending on the position."""

_NAMES: Mapping[int, str] = MappingProxyType(
    {
        **{op.handle: name for name, op in OPERATORS.items()},
        MPI.MINLOC.handle: "minloc",
        MPI.MAXLOC.handle: "maxloc",
    }
)


def planning_name(op: MPI.Op) -> str:
    """What planning calls an operator; it knows of a user's whether it commutes."""
    if (name := _NAMES.get(op.handle)) is not None:
        return name
    return "commutative" if op.Is_commutative() else "noncommutative"


def planning_type(datatype: MPI.Datatype) -> str:
    """What planning calls the type of elements: NumPy's name, void of their size where none fits.

    Equal on all ranks, whichever of MPI's names for a type they use.
    """
    if datatype.is_predefined:
        code = datatype.typechar.replace("c", "b")  # characters are combined as small integers
        if code not in "VSU":
            return np.dtype(code).name
    return f"V{datatype.Get_size()}"


def servable(op: MPI.Op, datatype: MPI.Datatype) -> bool:
    """Whether we can combine such elements; if not, the library's own call says what is wrong.

    Equal on all ranks.  A user's operator is believed to fit; it is not called.
    """
    if datatype == MPI.PACKED:  # memory whose elements nobody tells us
        return False
    if not op.is_predefined:
        return datatype.Get_size() > 0 and datatype.Get_extent()[1] > 0
    if op.handle not in _NAMES or not datatype.is_predefined:
        return False
    pair = op.handle, datatype.handle
    if pair not in _SERVABLE:
        one, other = (np.zeros(64, np.uint8) for _ in range(2))
        try:
            op.Reduce_local([one, 1, datatype], [other, 1, datatype])
        except MPI.Exception:
            _SERVABLE[pair] = False
        else:
            _SERVABLE[pair] = True
    return _SERVABLE[pair]


_SERVABLE: dict[tuple[int, int], bool] = {}


class Operator(NamedTuple):
    """An operator on elements of a type, and its ufunc where there is one."""

    op: MPI.Op
    datatype: MPI.Datatype
    ufunc: np.ufunc | None
    dtype: np.dtype[Any]
    unit: Unit

    @staticmethod
    def of(op: MPI.Op, datatype: MPI.Datatype, memory: Iterable[Memory]) -> "Operator":
        """The operator for a type, on the user's memory; see `servable`."""
        ufunc, codes = UFUNCS.get(op.handle, (None, ""))
        code = datatype.typechar if datatype.is_predefined else "V"
        known = code in codes and all(m.aligned(np.dtype(code)) for m in memory)
        dtype = np.dtype(code if known else "V1")
        return Operator(op, datatype, ufunc if known else None, dtype, Unit.of(datatype))

    def combining(
        self, op: Combine, slots: Mapping[int, Memory], comm: MPI.Intracomm, tag: int
    ) -> list[Act]:
        """Acts that combine; comm, tag: see `copying`."""
        left, right, into = slots[op.left], slots[op.right], slots[op.into]
        blocks = merged(op.blocks)
        if self.ufunc is not None:
            arrays = ([m.array(block, self.dtype) for m in (left, right, into)] for block in blocks)
            return [partial(self.ufunc, one, other, out=out) for one, other, out in arrays]
        combine = self._reduce_local(left, right, blocks)
        if op.into != op.right:
            assert op.right >= Slot.SCRATCH, "who has no ufunc copies first"
            combine += copying(right, into, blocks, comm, tag)
        return combine

    def _reduce_local(self, left: Memory, right: Memory, blocks: Sequence[Block]) -> list[Act]:
        """The right operand becomes the result: `MPI_Reduce_local` has it on the right, too."""
        return [
            partial(self.op.Reduce_local, left.spec(block), right.spec(block)) for block in blocks
        ]


def copying_first(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The list as `MPI_Reduce_local` can do it: it overwrites its right operand.

    A right operand that has to last is copied to where the result will be; that waits for nothing,
    so it is done while messages are on their way.
    """
    for op in operations:
        lasts = isinstance(op, Combine) and op.right != op.into and op.right < Slot.SCRATCH
        if isinstance(op, Combine) and lasts:
            yield Copy(op.right, op.into, op.blocks)
            yield op._replace(right=op.into)
        else:
            yield op
