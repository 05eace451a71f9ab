"""What is raced: the library's collective and collwise's schedules, on the same buffers.

Every byte of the result is known beforehand and checked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from collwise.errors import UnknownName, WrongResult
from collwise.measure.race import (
    BLOCKING,
    BY_HAND,
    CALLS,
    LIBRARY,
    LIBRARY_PERSISTENT,
    form_of,
    method_name,
)
from collwise.mpi.bench.bare_sends import bare_sends
from collwise.mpi.buffers.mpi_operators import OPERATORS
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.library.own_algorithms import refusing
from collwise.mpi.library.switching import OwnCalls
from collwise.mpi.runtime.agreement import everywhere
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.profiles.records import FORMS, Form
from collwise.schedule.operators import OPERATORS as KNOWN
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

RACED = {name: known.ufunc for name, known in KNOWN.items() if known.ufunc is not None}
"""Operators that races support, with NumPy's functions that check them."""
_Values: TypeAlias = NDArray[Any]
_Making: TypeAlias = Callable[[], tuple[Any, Any]]

COMPOSITIONS: Mapping[str, tuple[str, ...]] = {
    "Bcast": ("Scatterv parts part_or_in_place root + Allgatherv in_place parts",),
    "Reduce": (
        "Allreduce own whole op",
        "Reduce_scatter own part counts op + Gatherv part_or_in_place parts root",
    ),
    "Allreduce": (
        "Reduce own whole op root + Bcast whole root",
        "Reduce_scatter own part counts op + Allgatherv in_place parts",
    ),
    "Reduce_scatter_block": (
        "Reduce_scatter own result counts op",
        "Reduce own whole op root + Scatter whole result root",
    ),
    "Allgather": ("Allgatherv own parts", "Gatherv own parts root + Bcast whole root"),
}
"""By MPI method, sequences of other calls with the same result; each call is followed by the names
of its arguments.  The method should take no longer than any sequence [Traeff2010]."""


class Competitor(NamedTuple):
    """A labelled way to perform a collective, such as a schedule or the library's call."""

    label: str
    run: Callable[[], object]
    free: Callable[[], object] = lambda: None


class Workload:
    """The buffers to race one problem with, and methods that make the competitors.

    op, dtype: operator and element type if the collective combines; otherwise bytes are moved.
    buffers: as the MPI method takes them.   result: this rank's output, to be compared with
    `expected`; None if this rank gets no output.
    Raises UnknownName for an operator that races do not support.
    """

    def __init__(self, private: PrivateCommunicator, problem: Problem, op: str, dtype: str) -> None:
        self.private, self.comm, self.problem = private, private.comm, problem
        self.kind, self._method = problem.kind, problem.method
        kind = self.kind
        if kind.combines and op not in RACED:
            raise UnknownName.of("operator to race with", op, RACED)
        self.op = OPERATORS[op] if kind.combines else None
        self._ufunc = RACED[op] if kind.combines else None
        self._type = np.dtype(dtype if kind.combines else np.uint8)
        self._lengths = dict.fromkeys(range(problem.ranks), problem.nbytes)
        if kind.has_sources:
            self._lengths = dict(problem.sources)
        elif kind.input == "root":
            self._lengths = {problem.root: problem.nbytes}
        everything = self._zeros(problem.nbytes)
        self._own = self._zeros(self._lengths.get(private.rank, 0))
        self._part = slice(None)
        self.result: _Values | None = everything
        if kind.combines:
            self.result = None
            for block in problem.output_of(private.rank):
                ends = block.offset // problem.itemsize, block.end // problem.itemsize
                self._part, self.result = slice(*ends), self._zeros(block.length)
        self.expected = self._zeros(0)
        self.buffers: Sequence[Any] = (self._own, self.result)
        if self._method == "Allgatherv":
            counts = [self._lengths.get(rank, 0) for rank in range(problem.ranks)]
            self.buffers = (self._own, [self.result, counts, MPI.BYTE])
        elif kind.input == "root":  # data and result are one buffer
            if private.rank == problem.root:
                self._own = everything
            self.buffers = ([self.result, problem.nbytes, MPI.BYTE],)

    def _zeros(self, nbytes: int) -> _Values:
        return np.zeros(nbytes // self._type.itemsize, self._type)

    def _data(self, rank: int, salt: int) -> _Values:
        """The data that a rank contributes.   salt: shifts the data's pattern.

        Elements of vectors are 1 or 2, which no type rounds; bytes have a prime period, so that
        neighbouring blocks of any usual length differ.
        """
        length = self._lengths[rank] // self._type.itemsize
        count = np.arange(length, dtype=np.int64) * 31 + salt + 7 * rank
        return (count % 5 // 3 + 1 if self.kind.combines else count % 251).astype(self._type)

    def fill(self, salt: int) -> None:
        """Fill the input with known data and the result with wrong data, and set `expected`."""
        data = {rank: self._data(rank, salt) for rank in self._lengths}
        first, *others = data.values()
        if self._ufunc is None:
            first = np.concatenate([first, *others])
        else:
            for other in others:
                first = self._ufunc(first, other).astype(self._type)
        self.expected = first[self._part]
        if self.result is not None:
            self.result[:] = self.expected + self._type.type(1)
        if self.private.rank in data:
            self._own[:] = data[self.private.rank]

    def default(self, label: str = LIBRARY, form: Form = "blocking") -> Competitor:
        """The competitor that makes the library's blocking or non-blocking call."""
        call = partial(getattr(self.comm, self._name(form)), *self._arguments())
        return Competitor(label, self._as_comm(form, lambda: (call(), None), planned=False))

    def libraries(self) -> list[Competitor]:
        """The library's competitors, one for each form of the call that it has."""
        later = self.default(CALLS["nonblocking"].defaults[0], "nonblocking")
        calls = [self.default(), later]
        try:
            request = getattr(self.comm, self._name("persistent"))(*self._arguments())
        except (NotImplementedError, MPI.Exception):  # a library older than MPI-4
            return calls
        return [*calls, _persistent(LIBRARY_PERSISTENT, request)]

    def candidates(self, label: str, schedule: Schedule) -> list[Competitor]:
        """The competitors for a schedule, one for each form of the call."""
        executor = executor_for(schedule, self.private, self.op, self._method)
        made = [_persistent(label, executor.persistent(*self.buffers, waited_for=True))]
        ways: Mapping[Form, _Making] = {
            "blocking": lambda: (None, executor.run(*self.buffers)),
            "nonblocking": lambda: executor.nonblocking(*self.buffers),
        }
        for form, call in ways.items():
            run = self._as_comm(form, call, planned=True)
            made.append(Competitor(label + CALLS[form].ending, run, executor.Free))
        return made

    def compositions(self) -> list[Competitor]:
        """The competitors that call COMPOSITIONS, labelled such as "Reduce + Bcast (blocking)"."""
        rank, ranks, whole = self.private.rank, self.problem.ranks, self.result
        length = self.problem.nbytes // self._type.itemsize
        if whole is None or self.kind.output == "own block":
            whole = self._zeros(self.problem.nbytes)
        counts = [length // ranks + (r < length % ranks) for r in range(ranks)]
        end = sum(counts[: rank + 1])
        part = whole[end - counts[rank] : end]
        arguments = {
            "own": self._own,
            "result": self.result,
            "whole": whole,
            "counts": counts,
            "parts": [whole, counts],
            "part": part,
            "in_place": MPI.IN_PLACE,
            "part_or_in_place": MPI.IN_PLACE if rank == self.problem.root else part,
            "op": self.op,
            "root": self.problem.root,
        }
        made = []
        for composition in COMPOSITIONS.get(self._method, ()):
            methods = [call.split() for call in composition.split(" + ")]
            calls = [
                partial(getattr(self.comm, method), *map(arguments.get, words))
                for method, *words in methods
            ]
            label = " + ".join(method for method, *_ in methods) + BLOCKING
            made.append(Competitor(label, partial(_all, calls)))
        return made

    def own(
        self, calls: OwnCalls, label: str, name: str, settings: Mapping[str, Any]
    ) -> Competitor | str:
        """The competitor for one of the library's own algorithms, or why it is not raced.

        Collective.

        label: names the form of the call, see `form_of`.
        An algorithm is not raced if it cannot be called here, if it leaves wrong data, or if ranks
        end with different bits.
        """
        method, form = self._method, form_of(label)
        switched = calls.find(method, form, name, settings, local=False)
        if isinstance(switched, str):
            return switched
        library = partial(getattr(MPI.Intracomm, self._name(form)), self.comm, *self._arguments())
        refused, made = "", None
        # Where only some ranks run the algorithm, an error of theirs would hang the others.
        strictly = () if calls.composed(method, form, name, settings) else refusing(name)
        try:
            made = switched._replace(writes=(*switched.writes, *strictly)).call(library)
            if form == "nonblocking":
                made.Wait()
        except NotImplementedError:
            refused = "the library has no persistent collectives"
        except MPI.Exception as problem:
            refused = f"the library refuses it here: {problem.Get_error_string().splitlines()[-1]}"
        if form != "persistent":

            def call() -> tuple[Any, Any]:
                return switched.call(library), (switched.in_c, ())

            competitor = Competitor(label, self._as_comm(form, call, planned=True))
        elif made is not None:
            competitor = _persistent(label, made)
        refused = next(filter(None, self.comm.allgather(refused)), "")
        if not refused and not switched.alike(method, self.problem.nbytes, self.comm, form):
            refused = "ranks end with different bits"
        if not refused:
            try:
                self.check(competitor)
            except WrongResult as problem:
                refused = str(problem)
        if refused and made:
            made.Free()
        return refused or competitor

    def _as_comm(self, form: Form, make: "_Making", *, planned: bool) -> Callable[[], object]:
        """Wrap a call as `Comm` does, and wait for its request; C serves later calls, if it can.

        make: makes the call in Python; returns (its request, None if it blocks; what C needs for
        the next call, or None).   planned: False for the library's default call.
        """

        def slow(_: str, fast_key: bytes | None, *__: Any) -> Any:
            made, fast_call = make()
            if fast_key is not None and fast_call is not None:
                calls.remember(fast_key, *fast_call)
            return made

        call: Callable[[], Any] = partial(slow, "", None)
        if COMPILED is not None:
            name, private = self._method, self.private
            about = [name] * planned, self.comm, private.rank, private.size, MPI.SUM
            calls: Any = COMPILED.Calls(FORMS.index(form), *about, slow, private.mark_broken)
            call = partial(getattr(calls, name.lower()), *self._arguments())
        return call if form == "blocking" else lambda: call().Wait()

    def _name(self, form: Form) -> str:
        return method_name(self._method, form)

    def _arguments(self) -> list[Any]:
        """The arguments of the MPI method."""
        operator = [] if self.op is None else [self.op]
        return [*self.buffers, *operator, *[self.problem.root] * self.kind.rooted]

    def bare_sends(self, label: str, schedule: Schedule) -> Competitor:
        """The competitor that sends a schedule's messages by mpi4py; combining is not supported."""
        places = dict(
            zip(self._lengths, accumulate(self._lengths.values(), initial=0), strict=False)
        )
        rank, result = self.private.rank, self.result
        assert result is not None
        own = slice(places.get(rank, 0), places.get(rank, 0) + self._lengths.get(rank, 0))
        exchange, free = bare_sends(self.comm, schedule.rank(rank), result, places)

        def run() -> None:
            result[own] = self._own
            exchange()

        return Competitor(label + BY_HAND, run, free)

    def check(self, competitor: Competitor) -> None:
        """Run a competitor on known data; raise WrongResult on all ranks if a result is wrong."""
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


def idle(label: str) -> Competitor:
    """A competitor that does nothing, on a rank that takes no part."""
    return Competitor(label, lambda: None)


def _persistent(label: str, request: Any) -> Competitor:
    start, wait, free = request.Start, request.Wait, request.Free

    def run() -> None:
        start()
        wait()

    return Competitor(label, run, free)


def _all(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()
