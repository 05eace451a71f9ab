"""What is raced: the library's own and schedules of ours, on the same buffers, all bytes known."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.errors import UnknownName, WrongResult
from collwise.measure.race import BLOCKING, LIBRARY, LIBRARY_PERSISTENT
from collwise.mpi.agreement import everywhere
from collwise.mpi.channel import Channel
from collwise.mpi.combiner import OPERATORS
from collwise.mpi.executor import (
    combiner,
    gatherer,
    persistent,
    persistent_combine,
    persistent_gather,
    runner,
)
from collwise.schedule.problem import GATHERING, Problem
from collwise.schedule.program import Schedule

_Values: TypeAlias = NDArray[Any]
_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "land": np.logical_and,
    "lor": np.logical_or,
    "lxor": np.logical_xor,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


class Competitor(NamedTuple):
    """Something that does the collective on the course's buffers."""

    label: str
    run: Callable[[], object]
    free: Callable[[], object]


class Course(ABC):
    """Buffers for one problem, and whoever runs on them."""

    def __init__(self, channel: Channel, problem: Problem) -> None:
        self.channel, self.comm, self.problem = channel, channel.comm, problem

    @abstractmethod
    def fill(self, salt: int) -> None:
        """Put known data where this rank has any, and wrong data where the result will come."""

    @abstractmethod
    def amiss(self) -> _Values:
        """The places at which this rank's result is wrong."""

    @abstractmethod
    def library(self) -> Callable[[], object]:
        """The library's own collective, as a blocking call."""

    @abstractmethod
    def library_init(self) -> Any:
        """Its persistent form.  Raises NotImplementedError or MPI.Exception where there is none."""

    @abstractmethod
    def compiled(self, schedule: Schedule) -> Any:
        """A schedule as a persistent request."""

    @abstractmethod
    def once(self, schedule: Schedule) -> Callable[[], object]:
        """A schedule as a blocking call."""

    def libraries(self) -> list[Competitor]:
        """The library's own forms."""
        found = [Competitor(LIBRARY, self.library(), _nothing)]
        try:
            request = self.library_init()
        except (NotImplementedError, MPI.Exception):
            return found  # a library older than MPI-4: it has no persistent form to race against
        return [*found, _persistent(LIBRARY_PERSISTENT, request)]

    def candidates(self, label: str, schedule: Schedule) -> list[Competitor]:
        """A schedule, as a persistent request and as a blocking call."""
        return [
            _persistent(label, self.compiled(schedule)),
            Competitor(label + BLOCKING, self.once(schedule), _nothing),
        ]

    def check(self, competitor: Competitor) -> None:
        """Run it once and compare the result on every rank; raise WrongResult, on all, if wrong."""
        self.fill(sum(competitor.label.encode()))
        competitor.run()

        def compare() -> None:
            wrong = self.amiss()
            if len(wrong):
                what = "byte" if self.problem.item == 1 else "element"
                raise WrongResult(
                    f"{competitor.label}: {self.problem}",
                    f"on rank {self.comm.Get_rank()} {len(wrong)} {what}s are wrong, the first is"
                    f" {what} {wrong[0]}",
                    "please report this with the output of `collwise doctor`",
                )

        everywhere(self.comm, compare)


class BroadcastCourse(Course):
    """One buffer."""

    def __init__(self, channel: Channel, problem: Problem) -> None:
        super().__init__(channel, problem)
        self.data = np.zeros(max(problem.nbytes, 1), dtype=np.uint8)[: problem.nbytes]
        self.expected = self.data
        self.spec = [self.data, problem.nbytes, MPI.BYTE]

    def fill(self, salt: int) -> None:  # noqa: D102
        # Neighbouring blocks of any usual length differ: the pattern's period is a prime.
        pattern = (np.arange(self.problem.nbytes, dtype=np.int64) * 31 + salt) % 251
        self.expected = pattern.astype(np.uint8)
        root = self.comm.Get_rank() == self.problem.root
        self.data[:] = self.expected if root else 255 - self.expected

    def amiss(self) -> _Values:  # noqa: D102
        return np.flatnonzero(self.data != self.expected)

    def library(self) -> Callable[[], object]:  # noqa: D102
        return partial(self.comm.Bcast, self.spec, self.problem.root)

    def library_init(self) -> Any:  # noqa: D102
        return self.comm.Bcast_init(self.spec, self.problem.root)

    def compiled(self, schedule: Schedule) -> Any:  # noqa: D102
        return persistent(schedule, self.channel, self.spec)

    def once(self, schedule: Schedule) -> Callable[[], object]:  # noqa: D102
        return partial(runner(schedule, self.channel), self.spec)


class CombiningCourse(Course):
    """Two buffers: everybody's vector, and the result where there is one."""

    def __init__(self, channel: Channel, problem: Problem, op: str, dtype: str) -> None:
        super().__init__(channel, problem)
        if op not in OPERATORS:
            raise UnknownName.of("operator to race with", op, OPERATORS)
        self.op, self.ufunc = OPERATORS[op], _UFUNCS[op]
        self.count = problem.nbytes // problem.item
        self.given, self.result, self.expected = (np.zeros(self.count, dtype) for _ in range(3))
        self.owed = problem.collective == "allreduce" or channel.rank == problem.root

    def _vector(self, rank: int, salt: int) -> _Values:
        """Small whole numbers: no type rounds or overflows on them."""
        values = (np.arange(self.count, dtype=np.int64) * 31 + salt + 7 * rank) % 5 // 3 + 1
        return values.astype(self.given.dtype)

    def fill(self, salt: int) -> None:  # noqa: D102
        self.given[:] = self._vector(self.comm.Get_rank(), salt)
        self.expected = self._vector(0, salt)
        for rank in range(1, self.problem.ranks):
            other = self._vector(rank, salt)
            self.expected = self.ufunc(self.expected, other).astype(self.given.dtype)
        self.result[:] = self.expected + self.given.dtype.type(1)

    def amiss(self) -> _Values:  # noqa: D102
        return np.flatnonzero(self.result != self.expected) if self.owed else np.zeros(0)

    @property
    def _recv(self) -> _Values | None:
        return self.result if self.owed else None

    def library(self) -> Callable[[], object]:  # noqa: D102
        if self.problem.collective == "allreduce":
            return partial(self.comm.Allreduce, self.given, self.result, self.op)
        return partial(self.comm.Reduce, self.given, self._recv, self.op, self.problem.root)

    def library_init(self) -> Any:  # noqa: D102
        if self.problem.collective == "allreduce":
            return self.comm.Allreduce_init(self.given, self.result, self.op)
        return self.comm.Reduce_init(self.given, self._recv, self.op, self.problem.root)

    def compiled(self, schedule: Schedule) -> Any:  # noqa: D102
        return persistent_combine(schedule, self.channel, self.given, self._recv, self.op)

    def once(self, schedule: Schedule) -> Callable[[], object]:  # noqa: D102
        return partial(combiner(schedule, self.channel, self.op), self.given, self._recv)


class GatheringCourse(Course):
    """What this rank gives, and what all ranks do, one after another."""

    def __init__(self, channel: Channel, problem: Problem) -> None:
        super().__init__(channel, problem)
        self.counts = [0] * problem.ranks
        for rank, nbytes in problem.sources:
            self.counts[rank] = nbytes
        self.given = np.zeros(self.counts[channel.rank], np.uint8)
        self.result, self.expected = (np.zeros(problem.nbytes, np.uint8) for _ in range(2))
        self.spec = [self.result, self.counts, MPI.BYTE]

    def _contribution(self, rank: int, salt: int) -> _Values:
        # As for broadcasts; neighbours differ also where each has a byte.
        pattern = (np.arange(self.counts[rank], dtype=np.int64) * 31 + salt + 7 * rank) % 251
        return pattern.astype(np.uint8)

    def fill(self, salt: int) -> None:  # noqa: D102
        self.given[:] = self._contribution(self.channel.rank, salt)
        every = [self._contribution(rank, salt) for rank in range(self.problem.ranks)]
        self.expected[:] = np.concatenate(every)
        self.result[:] = 255 - self.expected

    def amiss(self) -> _Values:  # noqa: D102
        return np.flatnonzero(self.result != self.expected)

    def library(self) -> Callable[[], object]:  # noqa: D102
        return partial(self.comm.Allgatherv, self.given, self.spec)

    def library_init(self) -> Any:  # noqa: D102
        return self.comm.Allgatherv_init(self.given, self.spec)

    def compiled(self, schedule: Schedule) -> Any:  # noqa: D102
        return persistent_gather(schedule, self.channel, self.given, self.spec)

    def once(self, schedule: Schedule) -> Callable[[], object]:  # noqa: D102
        return partial(gatherer(schedule, self.channel), self.given, self.spec)


def course(channel: Channel, problem: Problem, op: str, dtype: str) -> Course:
    """The course for a problem; op and dtype count where vectors are combined."""
    if problem.collective == "broadcast":
        return BroadcastCourse(channel, problem)
    if problem.collective in GATHERING:
        return GatheringCourse(channel, problem)
    return CombiningCourse(channel, problem, op, dtype)


def _persistent(label: str, request: Any) -> Competitor:
    start, wait, free = request.Start, request.Wait, request.Free

    def run() -> None:
        start()
        wait()

    return Competitor(label, run, free)


def _nothing() -> None:
    """There is nothing to free."""
