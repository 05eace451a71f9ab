"""Receive buffers with a part for every rank: counts and displacements, in any of mpi4py's forms.

An Allgatherv has counts and displacements by rank; an Allgather has equally many elements from each
rank, one after another.  MPI wants all ranks to give a rank's part the same number of bytes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import (
    Buffer,
    Place,
    Span,
    checked_index,
    elements_in,
    locate,
    parts_of,
    span_of,
)
from collwise.mpi.buffers.memory import ElementType, Memory

_ASKED = "a receive buffer with a part for every rank"


class VectorSpec(NamedTuple):
    """A receive buffer as passed, in a form that mpi4py takes; None for what was left out."""

    data: Any
    counts: Any
    displacements: Any
    datatype: Any

    def locate(self) -> Place:
        """Where the buffer's memory is."""
        return locate(self.data, self.datatype, writable=True)


def allgatherv_spec(spec: Any, ranks: int = 0) -> VectorSpec:
    """Read the receive buffer of an Allgatherv; as in mpi4py, (counts, displs) must be a tuple."""
    return VectorSpec(*parts_of(spec, tuple))


def allgather_spec(spec: Any, ranks: int) -> VectorSpec:
    """Read the receive buffer of an Allgather; its count is that of the elements from one rank."""
    count = Buffer(spec, writable=True, parts=ranks).count // ranks
    data, _, first, datatype = parts_of(spec)
    displacements = [first + rank * count for rank in range(ranks)] if first else None
    return VectorSpec(data, count, displacements, datatype)


SPECS: Mapping[str, Callable[[Any, int], VectorSpec]] = {
    "Allgather": allgather_spec,
    "Allgatherv": allgatherv_spec,
}
"""By MPI method, the function that reads its receive buffer, given the number of ranks."""


def lengths_of(spec: VectorSpec, ranks: int) -> tuple[int, ...]:
    """The bytes of each rank's part.  Raises InvalidArgument for negative counts."""
    _, _, length, unit = spec.locate()
    return tuple(count * unit.size for count in _counts(spec.counts, ranks, length, unit))


def contribution(sendbuf: Any, rank: int, lengths: Sequence[int]) -> Buffer:
    """A rank's send buffer; raises InvalidArgument unless its data has lengths[rank] bytes."""
    buffer = Buffer(sendbuf, writable=False)
    if buffer.count and buffer.unit.datatype == MPI.DATATYPE_NULL:
        raise MPI.Exception(MPI.ERR_TYPE)
    if buffer.nbytes != lengths[rank]:
        raise InvalidArgument(
            f"{lengths[rank]} bytes from rank {rank}, as its receive buffer says",
            f"its send buffer has {buffer.nbytes}",
            "correct the count of the send buffer, or the counts of the receive buffer",
        )
    return buffer


def _counts(spec: Any, ranks: int, length: int, unit: ElementType) -> list[int]:
    """Each rank's number of elements; if `spec` is None, nearly equal shares, larger ones first."""
    if spec is None:
        each, left = divmod(elements_in(length, unit), ranks)
        return [each + (rank < left) for rank in range(ranks)]
    counts = _numbers(spec, [1] * ranks)
    if min(counts) < 0:
        rank = next(rank for rank, count in enumerate(counts) if count < 0)
        seen = f"the count of rank {rank} is {counts[rank]}"
        raise InvalidArgument(_ASKED, seen, "give counts of at least 0")
    return counts


def _numbers(spec: Any, times: Sequence[int]) -> list[int]:
    """One number per rank: the numbers in `spec`, or the number `spec` times each of `times`."""
    if not hasattr(spec, "__len__") or getattr(spec, "shape", None) == ():
        one = checked_index(spec)
        return [one * time for time in times]
    numbers = [checked_index(number) for number in spec]
    if len(numbers) != len(times):
        raise ValueError(f"expecting {len(times)} items, got {len(numbers)}")
    return numbers


def _check_apart(counts: Sequence[int], displacements: Iterable[int]) -> None:
    """Raise InvalidArgument where the parts of two ranks overlap.

    For types with gaps, overlap is detected per element only.
    """
    parts = zip(displacements, counts, range(len(counts)), strict=True)
    taken = sorted((first, first + count, rank) for first, count, rank in parts if count)
    for (_, end, rank), (first, _, other) in pairwise(taken):
        if end > first:
            raise InvalidArgument(
                _ASKED,
                f"the parts of ranks {min(rank, other)} and {max(rank, other)} overlap: both"
                f" have element {first}",
                "give displacements at least as far apart as the counts",
            )


class VectorBuffer(NamedTuple):
    """A receive buffer in memory.

    keep: what must stay alive while requests use it.   lengths: bytes by rank.   starts: for each
    rank with data, the bytes from `address` to its part.
    """

    keep: Any
    address: int
    unit: ElementType
    lengths: tuple[int, ...]
    starts: Mapping[int, int]

    @property
    def memory(self) -> Memory:
        """The buffer's memory, as a slot's memory."""
        return Memory(self.address, self.unit, self.starts)

    def spans(self) -> dict[int, Span]:
        """The memory of each part with data, by rank; its first byte alone if there may be gaps."""
        unit, lengths = self.unit, self.lengths
        starts = self.starts.items()
        return {rank: span_of(self.address + at, lengths[rank], unit) for rank, at in starts}

    @staticmethod
    def read(spec: VectorSpec, ranks: int) -> "VectorBuffer":
        """Read where every rank's part is.

        Raises mpi4py's errors, and InvalidArgument for negative counts or parts that overlap.
        """
        _, counts, displacements, _ = spec
        keep, address, length, unit = spec.locate()
        numbers = _counts(counts, ranks, length, unit)
        firsts = list(accumulate(numbers[:-1], initial=0))
        if displacements is not None:
            firsts = _numbers(displacements, range(ranks))
        _check_apart(numbers, firsts)
        lengths = tuple([count * unit.size for count in numbers])
        starts = {rank: firsts[rank] * unit.extent for rank in range(ranks) if numbers[rank]}
        return VectorBuffer(keep, address, unit, lengths, starts)
