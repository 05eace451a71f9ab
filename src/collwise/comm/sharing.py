"""`Comm.share`: one copy of a large array on each node, read by all ranks of the node."""

import logging
import mmap
from math import prod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from mpi4py import MPI

from collwise.comm.family import Inheritable
from collwise.errors import InvalidArgument
from collwise.mpi.runtime.agreement import everywhere, on_root
from collwise.mpi.runtime.node_memory import map_together
from collwise.mpi.runtime.world import describe

log = logging.getLogger("collwise")
_PIECE = 1 << 30
"""Most bytes of one broadcast between nodes, since Open MPI 5 counts bytes in a C int."""


class SharedArray(np.ndarray[Any, Any]):
    """A read-only array in memory that the ranks of a node share.  Arithmetic makes plain arrays.

    The memory is given back when no view of it is left on any rank of the node.  A `with` statement
    empties the array at its end; views that were made of the array keep the memory.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        nothing: Any = 1, (0,), np.dtype("V1"), False, b""
        self.__setstate__(nothing)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        result = np.asarray(array)
        return result[()] if return_scalar else result


class _Layout(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * prod(self.shape)


def shared_array(comm: Inheritable, array: Any, root: int) -> SharedArray:
    """The array that `comm.share(array, root)` returns.  Collective."""
    plain = MPI.Intracomm(comm)
    layout = on_root(plain, lambda: _layout(array), root=root)
    nodes = (getattr(comm, "_world", None) or describe(plain)).nodes
    makers = {node: rank for rank, node in reversed([*enumerate(nodes)])} | {nodes[root]: root}
    mapped = map_together(plain, nodes, makers, max(layout.nbytes, 1))
    problems, memory = mapped.problems, mapped.readers
    content: Any = mapped.writers
    if problems:
        log.warning("share: each rank has a copy of its own: %s", "; ".join(problems.values()))

    def filled() -> None:
        nonlocal memory, content
        if nodes[plain.Get_rank()] in problems:
            memory = content = mmap.mmap(-1, max(layout.nbytes, 1))
        if plain.Get_rank() == root:
            np.copyto(_view(layout, content), array)

    everywhere(plain, filled)
    # On a node whose ranks share no memory, each rank has a copy.
    fillers = [r for r, node in enumerate(nodes) if r == makers[node] or node in problems]
    if len(fillers) > 1:
        mine = plain.Get_rank() in fillers
        between = comm.Split(0 if mine else MPI.UNDEFINED, key=plain.Get_rank() != root)
        if mine:
            data = memoryview(content)[: layout.nbytes]
            for start in range(0, layout.nbytes, _PIECE):
                between.Bcast([data[start : start + _PIECE], MPI.BYTE], root=0)
            between.Free()
    view = everywhere(plain, lambda: _view(layout, memory))  # when all have filled theirs
    view.flags.writeable = False
    return view[...].view(SharedArray)  # its base owns the memory; the new array does not


def _layout(array: Any) -> _Layout:
    known = np.asarray(array)
    if known.dtype.hasobject:
        raise InvalidArgument(
            "share an array",
            f"its elements are Python objects ({known.dtype})",
            "give elements of bytes, such as numbers, or use bcast",
        )
    fortran = known.flags.f_contiguous and not known.flags.c_contiguous
    return _Layout(known.dtype, known.shape, "F" if fortran else "C")


def _view(layout: _Layout, content: mmap.mmap | None) -> SharedArray:
    return SharedArray(layout.shape, layout.dtype, buffer=content, order=layout.order)
