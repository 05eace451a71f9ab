"""What ranks give and where it has to land; shared by the programs that gather."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.algorithms.registry import algorithms_for
from collwise.schedule.program import Schedule
from tests.algorithms.examples import settings_of
from tests.mpi.programs.alike import distinct

Ints: TypeAlias = NDArray[np.int32]
NAMED = {"allgatherv": "bruck"}
"""For what is not about the choice, which takes longer than the rest."""
PAIR = 8
"""Bytes of what is gathered: two integers of 4 bytes."""


def patterns(ranks: int) -> list[list[int]]:
    """Pairs by rank: of one, of nobody, equal, random ones of some, random ones of all."""
    random = np.random.default_rng(ranks)
    one = [0] * ranks
    one[ranks // 2] = 5
    some = random.integers(0, 30, ranks) * (random.random(ranks) < 0.4)
    return [one, [0] * ranks, [3] * ranks, some.tolist(), random.integers(1, 30, ranks).tolist()]


def numbers(rank: int, count: int, salt: int = 0) -> Ints:
    return (np.arange(2 * count) * 3 + 1000 * rank + 17 * salt).astype(np.int32)


def the_library(comm: MPI.Intracomm, pairs: list[int], salt: int = 0) -> Ints:
    """What the library's own leaves, one contribution after another."""
    result = np.zeros(2 * sum(pairs), np.int32)
    mine = numbers(comm.rank, pairs[comm.rank], salt)
    MPI.Intracomm(comm).Allgatherv(mine, [result, [2 * count for count in pairs]])
    return result


def schedules(comm: MPI.Intracomm, pairs: list[int]) -> list[Schedule]:
    """Of every algorithm, for so many pairs of the ranks; a schedule that two make, once."""
    ranks, every = comm.size, algorithms_for("allgatherv")
    each = [PAIR * count for count in pairs]
    made = (
        one.schedule(ranks, each, sources=range(ranks), **settings_of(one, ranks)) for one in every
    )
    return distinct(comm, made)


class Received(NamedTuple):
    """Memory of integers, what to pass, and where the gathered ones are, in rank order."""

    memory: Ints
    spec: Any
    where: NDArray[np.intp]

    def own(self, pairs: list[int], rank: int) -> NDArray[np.intp]:
        """Where a rank's own are."""
        start = 2 * sum(pairs[:rank])
        return self.where[start : start + 2 * pairs[rank]]

    def untouched(self) -> bool:
        """Whether gaps and holes are as they were."""
        return bool((np.delete(self.memory, self.where) == -1).all())

    def right(self, expected: Ints) -> bool:
        """Whether everything is where it belongs, and nothing anywhere else."""
        return np.array_equal(self.memory[self.where], expected) and self.untouched()


class Types:
    """Derived types of a pair."""

    def __init__(self) -> None:
        self.pairs = MPI.INT.Create_contiguous(2).Commit()
        self.holes = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
        self.backwards = MPI.INT.Create_indexed([1, 1], [1, 0]).Commit()

    def free(self) -> None:
        for datatype in (self.pairs, self.holes, self.backwards):
            datatype.Free()


def received(types: Types, pairs: list[int], kind: int, seed: int = 0) -> Received:
    """A receive buffer of some kind, with gaps; `KINDS` of them."""
    ranks, twice = len(pairs), [2 * count for count in pairs]
    random = np.random.default_rng(seed)
    gaps = random.integers(0, 4, ranks + 1)
    order = random.permutation(ranks)
    starts = np.zeros(ranks, int)
    at = int(gaps[-1])
    for rank, gap in zip(order, gaps, strict=False):
        starts[rank] = at
        at += pairs[rank] + int(gap)
    memory: Ints = np.full(4 * at + 8, -1, np.int32)
    element = np.concatenate([np.arange(starts[r], starts[r] + pairs[r]) for r in range(ranks)])
    both = (2 * element[:, None] + [0, 1]).ravel()
    address = memory.ctypes.data
    displs = starts.tolist()
    one_after_another = np.full(2 * sum(pairs), -1, np.int32)
    match kind:
        case 0:
            plain: NDArray[np.intp] = np.arange(2 * sum(pairs))
            return Received(one_after_another, [one_after_another, twice], plain)
        case 1:
            return Received(memory, [memory, (twice, [2 * d for d in displs]), MPI.INT], both)
        case 2:
            return Received(memory, [memory, np.array(twice), 2 * starts, "i"], both)
        case 3:
            return Received(memory, [memory, (tuple(pairs), displs), types.pairs], both)
        case 4:
            spread = (4 * element[:, None] + [0, 2]).ravel()
            return Received(memory, [memory, pairs, displs, types.holes], spread)
        case 5:
            swapped = (2 * element[:, None] + [1, 0]).ravel()
            return Received(memory, (memory, (pairs, displs), types.backwards), swapped)
        case 6:
            return Received(memory, [memory.view(np.int64), pairs, displs, MPI.LONG], both)
        case _:
            counts = [PAIR * count for count in pairs]
            absolute = [address + PAIR * d for d in displs]
            return Received(memory, [MPI.BOTTOM, counts, absolute, MPI.BYTE], both)


KINDS = 8


def given(types: Types, mine: Ints, into: Received, pairs: list[int], rank: int, kind: int) -> Any:
    """What to pass as this rank's contribution."""
    match kind % 4:
        case 0:
            return mine
        case 1:
            return [mine.tobytes(), MPI.BYTE]
        case 2:
            spread = np.full(2 * len(mine), -7, np.int32)
            spread[::2] = mine
            return [spread, len(mine) // 2, types.holes]
        case _:
            into.memory[into.own(pairs, rank)] = mine
            return MPI.IN_PLACE
