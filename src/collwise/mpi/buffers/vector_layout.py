"""Receive buffers with a part for every rank: counts and displacements, in any of mpi4py's forms.

An Allgatherv has counts and displacements by rank; an Allgather has equally many elements from each
rank, one after another.  MPI requires only the bytes of every rank to be equal on all ranks.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import (
    Buffer,
    Place,
    Span,
    checked_index,
    elements_in,
    locate,
    simple_parts,
    span_of,
)
from collwise.mpi.buffers.memory import PREDEFINED, ElementType, Memory

_ASKED = "a receive buffer with a part for every rank"


class VectorSpec(NamedTuple):
    """A receive buffer as passed, in a form that mpi4py takes; None for what was left out."""

    data: Any
    counts: Any
    displacements: Any
    datatype: Any

    def locate(self) -> Place:
        """Where its memory is."""
        return locate(self.data, self.datatype, self.counts is not None, writable=True)


def allgatherv_spec(spec: Any, ranks: int = 0) -> VectorSpec:
    """The buffer of an Allgatherv.  As in mpi4py, only a tuple is (counts, displacements)."""
    if not isinstance(spec, list | tuple):
        return VectorSpec(spec, None, None, None)
    if not 2 <= len(spec) <= 4:
        raise ValueError("message: expecting 2 to 4 items")
    data, counts, *rest = spec
    datatype = rest[-1] if rest else None
    if len(spec) == 2 and isinstance(counts, MPI.Datatype | str):
        counts, datatype = None, counts
    displacements = rest[0] if len(spec) == 4 else None
    if len(spec) < 4 and isinstance(counts, tuple):
        counts, displacements = counts
    return VectorSpec(data, counts, displacements, datatype)


def allgather_spec(spec: Any, ranks: int) -> VectorSpec:
    """The buffer of an Allgather, whose count is that of one rank."""
    count = Buffer(spec, writable=True, parts=ranks).count // ranks
    data, _, first, datatype = simple_parts(spec)
    displacements = [first + rank * count for rank in range(ranks)] if first else None
    return VectorSpec(data, count, displacements, datatype)


SPECS: Mapping[str, Callable[[Any, int], VectorSpec]] = {
    "Allgather": allgather_spec,
    "Allgatherv": allgatherv_spec,
}
"""By MPI's method, the function that reads its receive buffer, for so many ranks."""


def vector_key(method: str, spec: Any) -> Hashable:
    """A cheap cache key that determines the layout of a receive buffer; None for unusual forms.

    Of an array, the key has the type and the number of bytes; of everything else, the value.  A
    user's types have no key, since their handles may be reused for other types.
    """
    if type(spec) is np.ndarray:
        return method, spec.dtype, spec.nbytes
    if (type(spec) is not list and type(spec) is not tuple) or len(spec) < 2:
        return None
    data, *rest = spec
    key = [_as_key(part) for part in rest]
    if None in key:
        return None
    if type(data) is np.ndarray:
        return method, data.dtype, data.nbytes, *key
    complete = len(rest) > 1 and isinstance(rest[-1], MPI.Datatype | str)
    return (method, id(type(data)), *key) if complete else None


def _as_key(part: Any) -> Hashable:
    """A type, counts or displacements as part of a key; equal ones may have several keys."""
    if type(part) is list:
        return tuple(part)
    if isinstance(part, MPI.Datatype):
        known = part.handle in PREDEFINED or part.is_predefined
        return ("type", part.handle) if known else None
    if isinstance(part, tuple):  # (counts, displacements), where a list has counts by rank
        parts = [_as_key(one) for one in part]
        return None if None in parts else ("tuple", *parts)
    if type(part) is np.ndarray:
        return part.dtype, part.tobytes()
    return part if isinstance(part, int | str | np.integer) else None


def lengths_of(spec: VectorSpec, ranks: int) -> tuple[int, ...]:
    """Bytes by rank.  Raises as mpi4py does, and InvalidArgument for negative counts."""
    _, _, length, unit = spec.locate()
    return tuple(count * unit.size for count in _counts(spec.counts, ranks, length, unit))


def contribution(sendbuf: Any, rank: int, lengths: Sequence[int]) -> Buffer:
    """A rank's send buffer; raises unless it has the bytes of the receive buffer."""
    buffer = Buffer(sendbuf, writable=False)
    if buffer.nbytes != lengths[rank]:
        raise InvalidArgument(
            f"{lengths[rank]} bytes from rank {rank}, as its receive buffer says",
            f"its send buffer has {buffer.nbytes}",
            "correct the count of the send buffer, or the counts of the receive buffer",
        )
    return buffer


def _counts(spec: Any, ranks: int, length: int, unit: ElementType) -> list[int]:
    """Elements by rank; without counts, divided evenly, the first ranks getting the remainder."""
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
    """A number for each rank.   times: by rank, what a single number is multiplied by."""
    if not hasattr(spec, "__len__"):
        one = checked_index(spec)
        return [one * time for time in times]
    numbers = [checked_index(number) for number in spec]
    if len(numbers) != len(times):
        raise ValueError(f"expecting {len(times)} items, got {len(numbers)}")
    return numbers


@dataclass(frozen=True, eq=False)
class VectorLayout:
    """Where every rank's part is, relative to the buffer's address.

    lengths: bytes by rank.   starts: by rank that has any, where its part begins, in bytes from
    the address.
    """

    unit: ElementType
    lengths: tuple[int, ...]
    starts: Mapping[int, int]

    @staticmethod
    def of(
        counts: Sequence[int], displacements: Iterable[int], unit: ElementType
    ) -> "VectorLayout":
        """The layout for counts and displacements, in elements.

        Raises InvalidArgument where two parts overlap.  For types with gaps, overlap is detected
        per element only.
        """
        taken = [
            (first, first + count, rank)
            for rank, (first, count) in enumerate(zip(displacements, counts, strict=True))
            if count
        ]
        starts = {rank: first * unit.extent for first, _, rank in taken}
        taken.sort()
        for (_, end, rank), (first, _, other) in pairwise(taken):
            if end > first:
                raise InvalidArgument(
                    _ASKED,
                    f"the parts of ranks {min(rank, other)} and {max(rank, other)} overlap: both"
                    f" have element {first}",
                    "give displacements at least as far apart as the counts",
                )
        return VectorLayout(unit, tuple(count * unit.size for count in counts), starts)


class VectorBuffer(NamedTuple):
    """A receive buffer in memory.   keep: what must stay alive while requests use it."""

    keep: Any
    address: int
    layout: VectorLayout

    @property
    def memory(self) -> Memory:
        """Its memory, as a slot's."""
        return Memory(self.address, self.layout.unit, self.layout.starts)

    def spans(self) -> dict[int, Span]:
        """Memory that belongs to each rank's part, by rank that has any."""
        unit, lengths = self.layout.unit, self.layout.lengths
        starts = self.layout.starts.items()
        return {rank: span_of(self.address + at, lengths[rank], unit) for rank, at in starts}

    @staticmethod
    def read(spec: VectorSpec, ranks: int) -> "VectorBuffer":
        """Read where every rank's part is.

        Raises as mpi4py does, and InvalidArgument for parts that overlap.
        """
        _, counts, displacements, _ = spec
        keep, address, length, unit = spec.locate()
        numbers = _counts(counts, ranks, length, unit)
        starts = list(accumulate(numbers[:-1], initial=0))
        if displacements is not None:
            starts = _numbers(displacements, range(ranks))
        return VectorBuffer(keep, address, VectorLayout.of(numbers, starts, unit))
