"""What is raced: the library's collective and schedules of ours, on the same buffers.

Every byte of the result is known beforehand and checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.errors import UnknownName, WrongResult
from collwise.measure.race import BLOCKING, LIBRARY, LIBRARY_PERSISTENT
from collwise.mpi.buffers.mpi_operators import OPERATORS
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.operators import OPERATORS as KNOWN
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

RACED = {name: known.ufunc for name, known in KNOWN.items() if known.ufunc is not None}
"""Operators whose results races know, with NumPy\'s functions for them."""
_Values: TypeAlias = NDArray[Any]


class Competitor(NamedTuple):
    """Something that performs the collective on the workload's buffers."""

    label: str
    run: Callable[[], object]
    free: Callable[[], object]


class Workload(ABC):
    """Buffers for one problem, and the competitors that run on them.

    buffers: as the MPI method takes them.   result: this rank's, of which every value is compared
    with `expected`; None if it has none.
    """

    buffers: Sequence[Any]
    result: _Values | None
    expected: _Values
    op: MPI.Op | None = None

    def __init__(self, private: PrivateCommunicator, problem: Problem) -> None:
        self.private, self.comm, self.problem = private, private.comm, problem
        self.kind = problem.kind

    @abstractmethod
    def fill(self, salt: int) -> None:
        """Put known data where this rank has any, and wrong data where the result will come."""

    def libraries(self) -> list[Competitor]:
        """The library's collective: the blocking call, and the persistent form if it has one."""
        operator = [] if self.op is None else [self.op]
        arguments = [*self.buffers, *operator, *[self.problem.root] * self.kind.rooted]
        name = self.kind.methods[0]
        call = partial(getattr(self.comm, name), *arguments)
        try:
            request = getattr(self.comm, f"{name}_init")(*arguments)
        except (NotImplementedError, MPI.Exception):  # a library older than MPI-4
            return [Competitor(LIBRARY, call, _nothing)]
        return [Competitor(LIBRARY, call, _nothing), _persistent(LIBRARY_PERSISTENT, request)]

    def candidates(self, label: str, schedule: Schedule) -> list[Competitor]:
        """A schedule, as a persistent request and as a blocking call."""
        executor = executor_for(schedule, self.private, self.op)
        return [
            _persistent(label, executor.persistent(*self.buffers)),
            Competitor(label + BLOCKING, partial(executor.run, *self.buffers), executor.Free),
        ]

    def check(self, competitor: Competitor) -> None:
        """Run it once and compare the result on every rank; raise WrongResult, on all, if wrong."""
        self.fill(sum(competitor.label.encode()))
        competitor.run()

        def compare() -> None:
            wrong = np.flatnonzero(False if self.result is None else self.result != self.expected)
            if len(wrong):
                what = "element" if self.kind.combines else "byte"
                raise WrongResult(
                    f"{competitor.label}: {self.problem}",
                    f"on rank {self.comm.Get_rank()} {len(wrong)} {what}s are wrong, the first is"
                    f" {what} {wrong[0]}",
                    "please report this with the output of `collwise doctor`",
                )

        everywhere(self.comm, compare)


def _pattern(length: int, salt: int) -> NDArray[np.uint8]:
    """Bytes of which neighbouring blocks of any usual length differ: the period is a prime."""
    return ((np.arange(length, dtype=np.int64) * 31 + salt) % 251).astype(np.uint8)


class BroadcastWorkload(Workload):
    """One buffer of bytes."""

    def __init__(self, private: PrivateCommunicator, problem: Problem) -> None:
        super().__init__(private, problem)
        self.data = np.zeros(max(problem.nbytes, 1), dtype=np.uint8)[: problem.nbytes]
        self.result = self.expected = self.data
        self.buffers = ([self.data, problem.nbytes, MPI.BYTE],)

    def fill(self, salt: int) -> None:  # noqa: D102
        self.expected = _pattern(self.problem.nbytes, salt)
        root = self.comm.Get_rank() == self.problem.root
        self.data[:] = self.expected if root else 255 - self.expected


class CombineWorkload(Workload):
    """Everybody's vector, and the result, or a part of it, where there is one."""

    def __init__(self, private: PrivateCommunicator, problem: Problem, op: str, dtype: str) -> None:
        super().__init__(private, problem)
        if op not in RACED:
            raise UnknownName.of("operator to race with", op, RACED)
        self.op, self._ufunc = OPERATORS[op], RACED[op]
        self.vector = np.zeros(problem.nbytes // problem.itemsize, dtype)
        self.result = None
        self._part = slice(0)
        for block in problem.output_of(private.rank):
            self._part = slice(block.offset // problem.itemsize, block.end // problem.itemsize)
            self.result = np.zeros_like(self.vector[self._part])
        self.buffers = (self.vector, self.result)

    def _vector(self, rank: int, salt: int) -> _Values:
        """Small integers: no type rounds them or overflows."""
        count = np.arange(len(self.vector), dtype=np.int64)
        return ((count * 31 + salt + 7 * rank) % 5 // 3 + 1).astype(self.vector.dtype)

    def fill(self, salt: int) -> None:  # noqa: D102
        self.vector[:] = self._vector(self.comm.Get_rank(), salt)
        total = self._vector(0, salt)
        for rank in range(1, self.problem.ranks):
            total = self._ufunc(total, self._vector(rank, salt)).astype(total.dtype)
        self.expected = total[self._part]
        if self.result is not None:
            self.result[:] = self.expected + self.expected.dtype.type(1)


class GatherWorkload(Workload):
    """What this rank contributes, and what all ranks do, one after another."""

    def __init__(self, private: PrivateCommunicator, problem: Problem) -> None:
        super().__init__(private, problem)
        counts = [0] * problem.ranks
        for rank, nbytes in problem.sources:
            counts[rank] = nbytes
        self._counts = counts
        self.contribution = np.zeros(counts[private.rank], np.uint8)
        self.result = np.zeros(problem.nbytes, np.uint8)
        self.buffers = (self.contribution, [self.result, counts, MPI.BYTE])

    def fill(self, salt: int) -> None:  # noqa: D102
        contributions = [_pattern(n, salt + 7 * rank) for rank, n in enumerate(self._counts)]
        self.contribution[:] = contributions[self.private.rank]
        self.expected = np.concatenate(contributions)
        assert self.result is not None
        self.result[:] = 255 - self.expected


def workload_for(private: PrivateCommunicator, problem: Problem, op: str, dtype: str) -> Workload:
    """The workload for a problem; op and dtype count where vectors are combined."""
    if problem.kind.combines:
        return CombineWorkload(private, problem, op, dtype)
    return (GatherWorkload if problem.kind.has_sources else BroadcastWorkload)(private, problem)


def _persistent(label: str, request: Any) -> Competitor:
    start, wait, free = request.Start, request.Wait, request.Free

    def run() -> None:
        start()
        wait()

    return Competitor(label, run, free)


def _nothing() -> None:
    """There is nothing to free."""
