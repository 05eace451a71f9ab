"""Receive buffers in pieces, one for every rank, in any of mpi4py's forms.

Allgatherv names the elements of every rank, and where they go; Allgather has equally many of each,
one after another.  Only the bytes of every rank are equal on all ranks, by MPI's rules.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers import elements_in, origin, simple_parts
from collwise.mpi.memory import Gathered, Unit, type_key

Parts: TypeAlias = tuple[Any, Any, Any, "MPI.Datatype | str | None"]
"""Data, counts, displacements and type as they were given, None for what was left out.  Itself one
of the forms."""
_LISTS = (list, tuple)
_TYPES = (MPI.Datatype, str)
_ASKED = "a receive buffer in pieces"
_MOST = 64
"""Layouts that are remembered."""


def vector_parts(spec: Any, ranks: int = 0) -> Parts:
    """The buffer of an Allgatherv.  As mpi4py has it, only a tuple is (counts, displacements)."""
    if not isinstance(spec, list | tuple):
        return spec, None, None, None
    displacements, datatype = None, None
    if len(spec) == 2:
        data, counts = spec
        if isinstance(counts, MPI.Datatype | str):
            return data, None, None, counts
        if isinstance(counts, tuple):
            counts, displacements = counts
    elif len(spec) == 3:
        data, counts, datatype = spec
        if isinstance(counts, tuple):
            counts, displacements = counts
    elif len(spec) == 4:
        data, counts, displacements, datatype = spec
    else:
        raise ValueError("message: expecting 2 to 4 items")
    return data, counts, displacements, datatype


def equal_parts(spec: Any, ranks: int) -> Parts:
    """The buffer of an Allgather: its count is that of one rank."""
    if type(spec) is np.ndarray:
        count, left = divmod(spec.size, ranks)
        data, first, datatype = spec, 0, None
    else:
        data, given, first, datatype = simple_parts(spec)
        count, left = given or 0, 0
        if given is None:
            _, _, length, known = origin(data, datatype, writable=True)
            count, left = divmod(elements_in(length, first, Unit.of(known).extent), ranks)
    if count < 0:
        raise ValueError(f"message: negative count {count}")
    if left:
        raise ValueError(f"message: the elements are no multiple of {ranks} ranks")
    where = [first + rank * count for rank in range(ranks)] if first else None
    return data, count, where, datatype


def vector_key(spec: Any) -> Hashable:
    """What says how many bytes of every rank an Allgatherv has: quick, to look up by.

    That is a type and the counts, or, where there are none, what `_evenly` has.
    Raises whatever it meets in forms that take longer, or make no sense.
    """
    if type(spec) is not list and type(spec) is not tuple:
        if type(spec) is np.ndarray:
            return spec.dtype, spec.nbytes, None
        raise LookupError
    parts, datatype = len(spec), None
    if parts == 2:
        data, counts = spec
        if type(counts) is list:  # the usual form
            return data.dtype, tuple(counts)
        if isinstance(counts, _TYPES):
            return _evenly(data, counts)
    elif parts == 3:
        data, counts, datatype = spec
    else:
        data, counts, _, datatype = spec
    if type(counts) is tuple and parts < 4:
        counts, _ = counts
    if type(counts) is list:
        counts = tuple(counts)
    elif counts is None:
        return _evenly(data, datatype)
    else:
        counts = _as_key(counts)
    return data.dtype if datatype is None else type_key(datatype), counts


def equal_key(spec: Any) -> Hashable:
    """The same for an Allgather, if it begins where its buffer does."""
    if type(spec) is np.ndarray:
        return spec.dtype, spec.nbytes, None
    if len(spec) == 2:
        return _evenly(*spec)
    _, count, datatype = spec
    return type_key(datatype), index(count)


def _evenly(data: Any, datatype: Any) -> Hashable:
    """The key of a whole array, of its own type or of a predefined one.

    A third entry, so that it equals no key with counts: bytes are none.
    """
    if type(data) is not np.ndarray:
        raise LookupError
    if datatype is None:
        return data.dtype, data.nbytes, None
    kind = type_key(datatype)
    if type(kind) is tuple:  # the size alone does not say how many there are
        raise LookupError
    return kind, data.nbytes, None


def places_key(spec: Any) -> Hashable:
    """What says where they go in a buffer that has such a key; None: one after another."""
    if not isinstance(spec, _LISTS):
        return None
    if len(spec) == 4:
        displacements = spec[2]
    elif type(spec[1]) is tuple:
        displacements = spec[1][1]
    else:
        return None
    return None if displacements is None else _as_key(displacements)


def lengths_of(parts: Parts, ranks: int) -> tuple[int, ...]:
    """Bytes by rank.  Raises as mpi4py does, and InvalidArgument for negative counts."""
    data, counts, _, datatype = parts
    _, _, length, known = origin(data, datatype, writable=True)
    size = known.Get_size()
    return tuple(count * size for count in _counts(counts, ranks, length, Unit.of(known).extent))


def _as_key(numbers: Any) -> Hashable:
    """Numbers as something to look up by; equal ones may have several keys."""
    if type(numbers) is list:
        return tuple(numbers)
    if type(numbers) is np.ndarray:
        return numbers.dtype, numbers.tobytes()
    if numbers is None or isinstance(numbers, int | tuple):
        return numbers
    return tuple(numbers)


def _counts(given: Any, ranks: int, length: int | None, extent: int) -> list[int]:
    """Without counts, elements are divided evenly; the first ranks get what is left."""
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
    """One number for each rank; a single one is taken so many times."""
    try:
        found = len(given)
    except TypeError:
        one = index(given)
        return [one * time for time in times]
    if found != len(times):
        raise ValueError(f"expecting {len(times)} items, got {found}")
    return [index(number) for number in given]


@dataclass(frozen=True)
class Places:
    """Where the pieces are, whatever the address: this can be kept.

    lengths: bytes by rank.   starts: by rank that has any, where its piece begins, in bytes from
    the buffer's address.   low, high: the bytes in use, from there.
    """

    lengths: tuple[int, ...]
    starts: Mapping[int, int]
    low: int
    high: int

    @staticmethod
    def of(
        counts: Sequence[int], displacements: Iterable[int], unit: Unit, true: tuple[int, int]
    ) -> "Places":
        """Of so many elements each.  true: the true lower bound and extent of one.

        Raises InvalidArgument where two pieces overlap.  Of elements with holes only those are
        found to that are in two pieces.
        """
        taken = [
            (first, first + count, rank)
            for rank, (first, count) in enumerate(zip(displacements, counts, strict=True))
            if count
        ]
        begins = {rank: first * unit.extent for first, _, rank in taken}
        taken.sort()
        for (_, end, rank), (first, _, other) in pairwise(taken):
            if end > first:
                raise InvalidArgument(
                    _ASKED,
                    f"the pieces of ranks {min(rank, other)} and {max(rank, other)} overlap: both"
                    f" have element {first}",
                    "give displacements at least as far apart as the counts",
                )
        lower, span = true
        lengths = tuple(count * unit.size for count in counts)
        if not taken:
            return Places(lengths, begins, 0, 0)
        low, high = taken[0][0] * unit.extent, (taken[-1][1] - 1) * unit.extent
        return Places(lengths, begins, low + lower, high + lower + span)


class Pieces(NamedTuple):
    """A receive buffer where it is in memory.  keep: what must live as long as requests do."""

    keep: list[Any]
    address: int
    unit: Unit
    places: Places

    @property
    def memory(self) -> Gathered:
        """It as the memory of a slot."""
        return Gathered(self.address, self.unit, self.places.starts)


class Placing:
    """Where the pieces of buffers are, remembered by counts, displacements and type."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._known: dict[Hashable, Places] = {}

    def place(self, spec: Any) -> Pieces:
        """Find out where the pieces of a buffer are.

        Raises as mpi4py does, and InvalidArgument for pieces that overlap or reach beyond its end.
        Before its beginning there may be more of the user's: MPI knows negative displacements.
        """
        data, counts, displacements, datatype = vector_parts(spec)
        keep, address, length, known = origin(data, datatype, writable=True)
        unit = Unit.of(known)
        true = (0, unit.extent) if unit.plain else known.Get_true_extent()
        sizes = unit.size, unit.extent, *true, length if counts is None else None
        key = _as_key(counts), _as_key(displacements), sizes
        places = self._known.get(key)
        if places is None:
            numbers = _counts(counts, self._ranks, length, unit.extent)
            starts = list(accumulate(numbers[:-1], initial=0))
            if displacements is not None:
                starts = _numbers(displacements, range(self._ranks))
            if len(self._known) >= _MOST:
                self._known.clear()
            places = self._known[key] = Places.of(numbers, starts, unit, true)
        if length is not None and places.high > length:
            raise InvalidArgument(
                _ASKED,
                f"it has {length} bytes, and the pieces are in bytes {places.low} to {places.high}",
                "correct counts, displacements and type, or give a longer buffer",
            )
        return Pieces(keep, address, unit, places)
