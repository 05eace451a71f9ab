"""Reads what the arguments of a call pose: the problem that all of its ranks agree on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.comm.decision import OpAndType
from collwise.mpi.buffers.buffer import Buffer, combined_buffers
from collwise.mpi.buffers.mpi_operators import can_combine, planning_name, planning_type
from collwise.mpi.buffers.vector_layout import SPECS, lengths_of
from collwise.schedule.collectives import COLLECTIVES

BY_METHOD = {method: c for c in COLLECTIVES.values() for method in c.methods}
"""The collective of each MPI method that plans may serve."""


class Posed(NamedTuple):
    """The arguments of a call that MPI requires to be equal on all ranks, so all decide alike.

    nbytes: bytes of the problem, or a tuple with the bytes of each rank, as `Problem.of` takes it.
    elements: the operator and element type, if the collective combines.
    """

    collective: str
    nbytes: int | tuple[int, ...]
    root: int = 0
    elements: OpAndType | None = None


def posed_by(method: str, arguments: Sequence[Any], rank: int, ranks: int) -> Posed | None:
    """The problem that a call poses; None if the library has to serve or to refuse the call.

    Raises what mpi4py raises for buffers that it cannot read, and InvalidArgument for negative
    counts, which Open MPI would take.
    """
    collective = BY_METHOD[method]
    if collective.has_sources:
        lengths = lengths_of(SPECS[method](arguments[1], ranks), ranks)
        return Posed(collective.name, lengths) if any(lengths) else None
    root = arguments[-1] if collective.rooted else 0
    if isinstance(root, str | bytes) or not hasattr(type(root), "__int__"):
        return None
    root = int(root)  # as mpi4py does
    if not 0 <= root < ranks:
        return None
    if not collective.combines:
        nbytes = Buffer(arguments[0], writable=rank != root).nbytes
        return Posed(collective.name, nbytes, root) if nbytes else None
    sendbuf, recvbuf, op, *_ = arguments
    if not isinstance(op, MPI.Op) or op == MPI.OP_NULL:
        return None
    has_output, parts = collective.has_output(rank, root), collective.unit(ranks, 1)
    sent, received = combined_buffers(sendbuf, recvbuf, has_output=has_output, parts=parts)
    datatype = sent.unit.datatype
    if not sent.nbytes or not can_combine(op, datatype):
        return None
    if (
        received is not None
        and received is not sent
        and ((received.count * parts, received.unit.datatype) != (sent.count, datatype))
    ):
        return None
    elements = OpAndType(planning_name(op), planning_type(datatype), sent.unit.size)
    return Posed(collective.name, sent.nbytes, root, elements)
