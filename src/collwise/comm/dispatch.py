"""Dispatch: what serves a call, an executor of ours or the library's own collective.

None always means that the library's own collective serves.
"""

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.comm.decision import CallProblem, Decision, OpAndType
from collwise.comm.learning import MAX_TRIALS, Learning, Trial
from collwise.comm.recording import Record, Tally, Way, counting_starts, form_of
from collwise.mpi.buffers.buffer import Buffer, combined_buffers
from collwise.mpi.buffers.mpi_operators import can_combine, planning_name, planning_type
from collwise.mpi.buffers.vector_layout import SPECS, lengths_of
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.executor import BoundedCache, Executor
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.runtime.private_communicator import PrivateDuplicate
from collwise.planner.plans import Plan
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

MAX_ENTRIES = 2048
"""Most entries of the cache: calls, plans and executors, some of which hold memory."""
SLOW_S = 50e-6
"""A collective that takes longer is worth some microseconds in Python."""
_BY_METHOD = {method: c for c in COLLECTIVES.values() for method in c.methods}


class Handler(NamedTuple):
    """What serves calls that ask for the same.

    executor: None if the library's own does.   op: kept alive, since its id is part of the key.
    tally: counts them; None if nobody asked.
    """

    executor: Executor | None
    op: MPI.Op | None = None
    tally: Tally | None = None


class Posed(NamedTuple):
    """What a call asks for: only what MPI requires to be equal on all ranks, so all decide alike.

    nbytes: as `Problem.of` takes it, for all ranks.   elements: of collectives that combine.
    """

    collective: str
    nbytes: int | tuple[int, ...]
    root: int = 0
    elements: OpAndType | None = None


class _Run(NamedTuple):
    executor: Executor
    schedule: Schedule
    op: MPI.Op | None


@dataclass(eq=False)
class Dispatch:
    """What serves the calls on one communicator.

    duplicate: shared with other objects for this communicator.   methods: those that plans may
    serve.   record: where calls are counted.   way: the kind of call that blocking calls count as.
    learning: needs a record.   common_clock: whether all ranks read the same clock.
    calls: the cache: handlers of calls, plans and executors.
    """

    decision: Decision
    duplicate: PrivateDuplicate
    methods: Container[str]
    rank: int
    ranks: int
    record: Record | None = None
    way: Way = "blocking"
    learning: Learning | None = None
    common_clock: bool = False

    def __post_init__(self) -> None:
        self._trials: dict[Hashable, Trial | None] = {}
        self.calls: BoundedCache[Hashable, Any] = BoundedCache(MAX_ENTRIES)
        self.in_c: dict[Way, Any] = {}
        self.duplicate.when_made.append(self.forget)

    def calls_in_c(self, way: Way, comm: MPI.Intracomm, slow: Callable[..., Any]) -> Any:
        """The compiled engine's calls of a form.   slow: serves what they cannot, or not yet."""
        assert COMPILED is not None
        form = ("blocking", "nonblocking", "persistent").index(way)
        about = self.methods, comm, self.rank, self.ranks, MPI.SUM, slow, self._failed
        calls = self.in_c[way] = COMPILED.Calls(form, *about)
        self.duplicate.inform(calls.forget)
        return calls

    def call(
        self,
        way: Way,
        method: str,
        library: Callable[[], Any],
        arguments: Sequence[Any],
        fast_key: bytes | None = None,
    ) -> Any:
        """Serve a call: execute it, or make its request, which is started if it is not persistent.

        library: makes the library's own call.   arguments: all that the MPI method takes.
        fast_key: under which the compiled engine is told what serves; None if it cannot.
        """
        buffers = arguments[: 1 if method == "Bcast" else 2]
        if way == "blocking":
            self._execute(method, library, arguments, buffers, fast_key)
            return None
        persistent = way == "persistent"
        if persistent and not isinstance(arguments[-1], MPI.Info):
            return library()  # which raises
        blocking = arguments[:-1] if persistent else arguments  # without `info`
        executor, _, tally = self._known(way, fast_key) or self._handler(way, method, blocking)
        if tally is not None and not persistent:
            tally.start()
        fast_call: Any = None
        if executor is None:
            fast_call = None, ()
            request = library()
        elif persistent:
            request = executor.persistent(*buffers)
        else:
            request, fast_call = executor.nonblocking(*buffers)
        if fast_key is not None and fast_call is not None:
            self.in_c[way].remember(fast_key, *fast_call)
        elif fast_key is not None and (way, fast_key) not in self.calls:
            self.calls.remember((way, fast_key), Handler(executor))
        return counting_starts(request, tally) if tally is not None and persistent else request

    def _execute(
        self,
        method: str,
        library: Callable[[], Any],
        arguments: Sequence[Any],
        buffers: Sequence[Any],
        fast_key: bytes | None,
    ) -> None:
        executor, op, tally = self._handler(self.way, method, arguments)
        while isinstance(tally, Trial) and not tally.proceed(op):  # the trial is over
            executor, op, tally = self._handler(self.way, method, arguments)
        if isinstance(tally, Trial):
            executor = tally.executor
        begin_ns = monotonic_ns()
        fast_call: Any = (None, ())
        if executor is None:
            library()
        else:
            fast_call = executor.run(*buffers)
        if tally is not None:
            tally.add(begin_ns, monotonic_ns())
        if fast_key is not None and fast_call is not None:
            self.in_c["blocking"].remember(fast_key, *fast_call, tally and tally.memory)

    def _known(self, way: Way, fast_key: bytes | None) -> Handler | None:
        """What served a request whose buffers C read and found to ask for the same."""
        return None if fast_key is None else self.calls.get((way, fast_key))

    def _handler(self, way: Way, method: str, arguments: Sequence[Any]) -> Handler:
        """What serves a call.   arguments: of the blocking method."""
        posed = self._read(method, arguments)
        op = arguments[2] if posed is not None and posed.elements is not None else None
        key = way, method, posed, id(op)
        if (known := self.calls.get(key)) is None:
            known = self.calls.remember(key, self._find(way, method, posed, op))
        handler: Handler = known
        return handler

    def _find(self, way: Way, method: str, posed: Posed | None, op: MPI.Op | None) -> Handler:
        """Find what serves calls that ask for the same; may be collective."""
        if posed is None:  # wrong arguments, or nothing to move
            return Handler(None, None, self._tally(way, method, None, op))
        asked: CallProblem | None = self._problem(posed)
        assert asked is not None
        plan = self.plan(asked, form_of(way), timed=False)
        if plan is None:
            self.decision.check_fallback(asked, form_of(way))
        elif not self.duplicate.exists(local=way == "nonblocking"):
            plan = asked = None  # once there is a duplicate, all caches are emptied
        tally = self._tally(way, method, asked, op)
        return Handler(None if plan is None else self.executor(method, plan, op), op, tally)

    def _tally(
        self, way: Way, method: str, asked: CallProblem | None, op: MPI.Op | None
    ) -> Tally | None:
        """The tally of such calls, or None; a `Trial` where learning tries plans on them."""
        record, learning = self.record, self.learning
        if record is None:
            return None
        if learning is None or asked is None or way in ("nonblocking", "persistent"):
            return record.tally(method, way, self.ranks, asked, self.decision)
        # Decided at the first call of its kind, which is the same one on all ranks.
        key = method, asked
        if key not in self._trials and len(self._trials) < MAX_TRIALS:
            predefined = op is None or op.is_predefined
            self._trials[key] = None
            if predefined and self.decision.learnable(asked):
                new = self._trials[key] = Trial(method, way, asked, self, learning)
                record.add(new)
        return self._trials.get(key) or record.tally(method, way, self.ranks, asked, self.decision)

    def trial_over(self, trial: Trial, result: RaceResult | None) -> None:
        """Use what a trial learned.  All ranks do so at the same collective call."""
        self._trials[trial.method, trial.asked] = None
        if result is not None:
            self.decision = self.decision.knowing(result)
        self.forget()

    def plan(self, asked: CallProblem, form: Form, *, timed: bool = True) -> Plan | None:
        """The plan for a call, cached.   timed: see `Decision.plan`."""
        key = asked, form, timed
        if key not in self.calls:
            self.calls.remember(key, self.decision.plan(asked, form, timed=timed))
        plan: Plan | None = self.calls[key]
        return plan

    def slow(self, method: str, nbytes: int) -> bool:
        """Whether a plan serves calls of this size and the library's own takes more than SLOW_S.

        Without a race the library counts as slow.   nbytes: bytes of each rank.   method: one that
        combines nothing.
        """
        key = "slow", method, nbytes
        if key not in self.calls:
            asked = self._problem(Posed(_BY_METHOD[method].name, nbytes))
            plan, race = self.plan(asked, "blocking", timed=False), None
            if plan is None:
                self.decision.check_fallback(asked, "blocking")
            else:
                race = self.decision.race(asked, "blocking")
            slow = plan is not None and (race is None or race.library_s > SLOW_S)
            self.calls.remember(key, slow)
        known: bool = self.calls[key]
        return known

    def run(self, schedule: Schedule, op: MPI.Op | None, buffers: Sequence[Any]) -> None:
        """Run a schedule once, on buffers as its MPI method takes them."""
        key = "schedule", id(schedule), id(op)
        known = self.calls.get(key)
        if known is None:  # both are kept alive, for their ids are part of the key
            executor = executor_for(schedule, self.duplicate.make(), op)
            known = self.calls.remember(key, _Run(executor, schedule, op))
        known.executor.run(*buffers)

    def free(self) -> None:
        """Free the private communicator, and all requests made on it.  Collective."""
        self.forget()
        self.duplicate.free()

    def forget(self) -> None:
        """Empty all caches."""
        self.calls.forget()
        for calls in self.in_c.values():
            calls.forget()

    def executor(self, method: str, plan: Plan, op: MPI.Op | None) -> Executor:
        """The executor for a plan.  Collective if the private duplicate has not been made yet."""
        private = self.duplicate.make()
        key = method, plan.problem, plan.choice.label, id(op)
        if (known := self.calls.get(key)) is None:
            known = executor_for(plan.schedule, private, op, method)
            self.calls.remember(key, known)
        executor: Executor = known
        return executor

    def _failed(self, problem: BaseException) -> None:
        """Mark the communicator broken after an error in a call that C served by itself."""
        if self.duplicate.made is not None:
            self.duplicate.made.mark_broken(problem)

    def _problem(self, posed: Posed) -> CallProblem:
        collective, nbytes, root, elements = posed
        if elements is not None:
            assert isinstance(nbytes, int)
            return self.decision.combine(collective, self.ranks, nbytes, root, elements)
        sources = range(self.ranks) if COLLECTIVES[collective].has_sources else None
        return CallProblem(Problem.of(collective, self.ranks, nbytes, root, sources=sources))

    def _read(self, method: str, arguments: Sequence[Any]) -> Posed | None:
        """The problem that a call poses; None if it is the library's, to serve or to refuse.

        Raises what mpi4py raises for buffers that it cannot read, and InvalidArgument for negative
        counts, which Open MPI would take.
        """
        collective, ranks = _BY_METHOD[method], self.ranks
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
            nbytes = Buffer(arguments[0], writable=self.rank != root).nbytes
            return Posed(collective.name, nbytes, root) if nbytes else None
        sendbuf, recvbuf, op, *_ = arguments
        if not isinstance(op, MPI.Op) or op == MPI.OP_NULL:
            return None
        has_output, parts = collective.has_output(self.rank, root), collective.unit(ranks, 1)
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
