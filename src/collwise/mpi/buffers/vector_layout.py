"""Receive buffers with a part for every rank: counts and displacements, in any of mpi4py's forms.

Allgatherv names the elements of every rank and where they go; Allgather has equally many of each
rank, one after another.  By MPI's rules, only the bytes of every rank are equal on all ranks.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import index
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import elements_in, locate, simple_parts, unit_of
from collwise.mpi.buffers.memory import PREDEFINED, Memory, Unit

_ASKED = "a receive buffer with a part for every rank"


class VectorSpec(NamedTuple):
    """A receive buffer as it was passed; None for what was left out.

    Itself one of the forms that mpi4py takes.
    """

    data: Any
    counts: Any
    displacements: Any
    datatype: "MPI.Datatype | str | None"


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
    """The buffer of an Allgather: its count is that of one rank."""
    data, given, first, datatype = simple_parts(spec)
    if given is None:
        if type(spec) is np.ndarray:
            elements = spec.size
        else:
            _, _, length, known = locate(data, datatype, writable=True)
            elements = elements_in(length, first, unit_of(data, known).extent)
        given, left = divmod(elements, ranks)
        if left:
            raise ValueError(f"message: the elements are no multiple of {ranks} ranks")
    if given < 0:
        raise ValueError(f"message: negative count {given}")
    displacements = [first + rank * given for rank in range(ranks)] if first else None
    return VectorSpec(data, given, displacements, datatype)


def allgatherv_key(spec: Any) -> Hashable:
    """A cheap cache key that determines the bytes of every rank; None for unusual forms.

    It has the type and the counts; the bytes of a whole array, if there are no counts.
    """
    if type(spec) is np.ndarray:
        return spec.dtype, spec.nbytes, None
    if type(spec) is not list and type(spec) is not tuple:
        return None
    if len(spec) == 2 and type(spec[1]) is list and type(spec[0]) is np.ndarray:
        return spec[0].dtype, tuple(spec[1])  # the usual form, the fast way
    if not 2 <= len(spec) <= 4:
        return None
    data, counts, _, datatype = allgatherv_spec(spec)
    return _key(data, counts, datatype, None)


def allgather_key(spec: Any) -> Hashable:
    """The same for an Allgather; equal to no key of an Allgatherv."""
    if type(spec) is np.ndarray:
        return spec.dtype, spec.nbytes, "Allgather"
    if type(spec) is list or type(spec) is tuple:
        if len(spec) == 2 and isinstance(spec[1], MPI.Datatype | str):
            return _key(spec[0], None, spec[1], "Allgather")
        if len(spec) == 3 and isinstance(spec[1], int | np.integer):
            return _key(spec[0], ("Allgather", int(spec[1])), spec[2], "Allgather")
    return None


def _key(data: Any, counts: Any, datatype: Any, method: str | None) -> Hashable:
    """The type and the counts, or the type, the bytes of a whole array and the method.

    A predefined type is in the key by its handle; a user's only by its size, in a tuple, since its
    handle may come to mean another type.  The size does not say how many fill an array.
    """
    kind: Hashable = datatype
    if datatype is None and type(data) is np.ndarray:
        kind = data.dtype
    elif isinstance(datatype, MPI.Datatype):
        handle = datatype.handle
        known = handle in PREDEFINED or datatype.is_predefined
        kind = handle if known else (datatype.Get_size(),)
    if counts is None:
        whole = type(data) is np.ndarray and type(kind) is not tuple
        return (kind, data.nbytes, method) if whole else None
    return None if kind is None else (kind, _as_key(counts))


def _as_key(numbers: Any) -> Hashable:
    """Numbers as part of a key; equal numbers may have several keys."""
    if type(numbers) is list:
        return tuple(numbers)
    if type(numbers) is np.ndarray:
        return numbers.dtype, numbers.tobytes()
    return numbers if numbers is None or isinstance(numbers, int | tuple) else tuple(numbers)


class Form(NamedTuple):
    """How one of MPI's methods takes its receive buffer: `read` it, and its cache `key`."""

    read: Callable[[Any, int], VectorSpec]
    key: Callable[[Any], Any]

    def layout_key(self, spec: Any) -> Hashable:
        """A key that determines the whole layout, for predefined types; otherwise None."""
        key = self.key(spec)
        if key is None or type(key[0]) is tuple:
            return None
        gathers = self.read is allgatherv_spec
        return key, _as_key(allgatherv_spec(spec).displacements) if gathers else None


FORMS: Mapping[str, Form] = {
    "Allgather": Form(allgather_spec, allgather_key),
    "Allgatherv": Form(allgatherv_spec, allgatherv_key),
}


def lengths_of(spec: VectorSpec, ranks: int) -> tuple[int, ...]:
    """Bytes by rank.  Raises as mpi4py does, and InvalidArgument for negative counts."""
    _, _, length, known = locate(spec.data, spec.datatype, writable=True)
    unit = unit_of(spec.data, known)
    return tuple(count * unit.size for count in _counts(spec.counts, ranks, length, unit.extent))


def _counts(given: Any, ranks: int, length: int | None, extent: int) -> list[int]:
    """Elements by rank; without counts, divided evenly, and the first ranks get what is left."""
    if given is None:
        each, left = divmod(elements_in(length, 0, extent), ranks)
        return [each + (rank < left) for rank in range(ranks)]
    counts = _numbers(given, [1] * ranks)
    if min(counts) < 0:
        rank = next(rank for rank, count in enumerate(counts) if count < 0)
        seen = f"the count of rank {rank} is {counts[rank]}"
        raise InvalidArgument(_ASKED, seen, "give counts of at least 0")
    return counts


def _numbers(given: Any, times: Sequence[int]) -> list[int]:
    """One number for each rank; a single number stands for these multiples of it."""
    try:
        length = len(given)
    except TypeError:
        one = index(given)
        return [one * time for time in times]
    if length != len(times):
        raise ValueError(f"expecting {len(times)} items, got {length}")
    return [index(number) for number in given]


@dataclass(frozen=True, eq=False)
class VectorLayout:
    """Where every rank's part lies, whatever the buffer's address.

    lengths: bytes by rank.   starts: by rank that has any, where its part begins, in bytes from
    the address.   low, high: the range of memory in use, in bytes from the address.
    """

    unit: Unit
    lengths: tuple[int, ...]
    starts: Mapping[int, int]
    low: int
    high: int

    @staticmethod
    def of(counts: Sequence[int], displacements: Iterable[int], unit: Unit) -> "VectorLayout":
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
        lengths = tuple(count * unit.size for count in counts)
        if not taken:
            return VectorLayout(unit, lengths, starts, 0, 0)
        lower, span = (0, unit.extent) if unit.contiguous else unit.datatype.Get_true_extent()
        low, high = taken[0][0] * unit.extent, (taken[-1][1] - 1) * unit.extent
        return VectorLayout(unit, lengths, starts, low + lower, high + lower + span)

    def fit(self, length: int | None) -> None:
        """Raise InvalidArgument if it reaches beyond a buffer of so many bytes.

        Before the buffer there may be more of the user's: MPI knows negative displacements.
        """
        if length is not None and self.high > length:
            raise InvalidArgument(
                _ASKED,
                f"it has {length} bytes, and the parts are in bytes {self.low} to {self.high}",
                "correct counts, displacements and type, or give a longer buffer",
            )


class VectorBuffer(NamedTuple):
    """A receive buffer in memory.   keep: what must live as long as requests use it."""

    keep: Any
    address: int
    layout: VectorLayout

    @property
    def memory(self) -> Memory:
        """It as the memory of a slot."""
        return Memory(self.address, self.layout.unit, self.layout.starts)

    @staticmethod
    def read(spec: VectorSpec, ranks: int) -> "VectorBuffer":
        """Find out where every rank's part lies.

        Raises as mpi4py does, and InvalidArgument for parts that overlap or reach beyond the end.
        """
        data, counts, displacements, datatype = spec
        keep, address, length, known = locate(data, datatype, writable=True)
        unit = unit_of(data, known)
        numbers = _counts(counts, ranks, length, unit.extent)
        starts = list(accumulate(numbers[:-1], initial=0))
        if displacements is not None:
            starts = _numbers(displacements, range(ranks))
        layout = VectorLayout.of(numbers, starts, unit)
        layout.fit(length)
        return VectorBuffer(keep, address, layout)
