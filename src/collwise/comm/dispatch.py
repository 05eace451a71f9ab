"""Dispatch: what serves a call, an executor of ours or the library's own collective.

A repeated call costs one lookup.  Its key holds only what MPI requires to be equal on all ranks, so
all ranks decide alike.  None always means that the library's own collective serves.
"""

from collections.abc import Callable, Container, Hashable, Sequence
from time import monotonic_ns
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.comm.call_keys import call_key
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
from collwise.schedule.collectives import COLLECTIVES, Collective
from collwise.schedule.problem import Problem, Source
from collwise.schedule.program import Schedule

MAX_ENTRIES = 2048
"""Most entries of the cache: calls, plans and executors, some of which hold memory."""
SLOW_S = 50e-6
"""A collective that takes longer is worth some microseconds in Python."""
_BY_METHOD = {method: c for c in COLLECTIVES.values() for method in c.methods}


class Handler(NamedTuple):
    """What serves the calls of one key.

    executor: None if the library's own does.   op: kept alive, since its id is part of the key.
    tally: counts them; None if nobody asked.
    """

    executor: Executor | None
    op: MPI.Op | None = None
    tally: Tally | None = None


def _buffers(method: str, arguments: Sequence[Any]) -> Sequence[Any]:
    return arguments[: 1 if method == "Bcast" else 2]


class _Run(NamedTuple):
    executor: Executor
    schedule: Schedule
    op: MPI.Op | None


class Dispatch:
    """What serves the calls on one communicator.

    calls: the cache: by key, the handlers of calls, plans and executors.
    fast: the compiled engine's table of blocking calls; None without that engine.
    duplicate: shared with other objects for this communicator, if they have one.
    record: where calls are counted.   way: the kind of call that blocking calls count as.
    learning: needs a record.   common_clock: whether all ranks read the same clock.
    """

    def __init__(
        self,
        decision: Decision,
        comm: MPI.Intracomm,
        methods: Container[str],
        rank: int,
        ranks: int,
        duplicate: PrivateDuplicate | None = None,
        record: Record | None = None,
        way: Way = "blocking",
        learning: Learning | None = None,
        *,
        common_clock: bool = False,
    ) -> None:
        self._methods = methods
        self.decision, self.duplicate = decision, duplicate or PrivateDuplicate(comm)
        self._record, self._way = record, way
        self._learning, self.common_clock = learning, common_clock
        self._trials: dict[Hashable, Trial | None] = {}
        self.rank, self._ranks = rank, ranks
        self.calls: BoundedCache[Hashable, Any] = BoundedCache(MAX_ENTRIES)
        self.fast: Any = None
        self._requesting: dict[Way, Any] = {}
        self.duplicate.when_made.append(self.forget)
        if COMPILED is not None:
            self.fast = self._calls()

    def serve(
        self, method: str, key: Hashable, fast_key: bytes | None, arguments: Sequence[Any]
    ) -> bool:
        """Execute a blocking call; False if the caller has to call the library's own.

        key: see `find`.   fast_key: under which the compiled engine is told what serves; None if it
        cannot.   arguments: all that the MPI method takes.
        """
        call = self.calls.get(key) or self.find(method, key, arguments)
        executor, op, tally = call
        if executor is None and tally is None and fast_key is None:
            return False
        if isinstance(tally, Trial):
            if not tally.proceed(op):
                return self.serve(method, key, fast_key, arguments)
            executor = tally.executor
        begin_ns = 0 if tally is None else monotonic_ns()
        fast_call: Any = (None, ()) if executor is None else None
        if executor is not None:
            fast_call = executor.run(*_buffers(method, arguments))
        elif tally is not None:
            getattr(self.duplicate.of, method)(*arguments)
        if tally is not None:
            tally.add(begin_ns, monotonic_ns())
        if fast_key is not None and fast_call is not None and self.fast is not None:
            self.fast.remember(fast_key, *fast_call, tally and tally.memory)
        return executor is not None or tally is not None

    def find(
        self, method: str, key: Hashable, arguments: Sequence[Any], way: Way | None = None
    ) -> Handler:
        """Find what serves a call that is not in the cache, and cache it under its key.

        key: None if the call has none.   arguments: all that the MPI method takes.   way: this
        communicator's by default.
        """
        way = way or self._way
        asked = self.call_problem(method, arguments)
        op = arguments[2] if asked is not None and asked.problem.kind.combines else None
        if asked is None:  # wrong arguments, or nothing to move: a combine's key may mean either
            handler = Handler(None, None, self._tally(way, method, None, op))
            unsure = key is None or _BY_METHOD[method].combines
            return handler if unsure else self.calls.remember(key, handler)
        plan = self.plan(asked, form_of(way), timed=False)
        if plan is None:
            self.decision.hand_over(asked, form_of(way))
        elif not self.duplicate.exists(local=way == "nonblocking"):
            plan = asked = None  # once there is a duplicate, all caches are emptied
        tally = self._tally(way, method, asked, op)
        handler = Handler(None if plan is None else self.executor(method, plan, op), op, tally)
        return handler if key is None else self.calls.remember(key, handler)

    def _tally(
        self, way: Way, method: str, asked: CallProblem | None, op: MPI.Op | None
    ) -> Tally | None:
        """The tally of such calls, or None; a `Trial` where learning tries plans on them."""
        record, learning = self._record, self._learning
        if record is None:
            return None
        if learning is None or asked is None or way in ("nonblocking", "persistent"):
            return record.tally(method, way, self._ranks, asked, self.decision)
        # Decided at the first call of its kind, which is the same one on all ranks.
        key = method, asked
        if key not in self._trials and len(self._trials) < MAX_TRIALS:
            predefined = op is None or op.is_predefined
            self._trials[key] = None
            if predefined and self.decision.learnable(asked):
                new = self._trials[key] = Trial(method, way, asked, self, learning)
                record.add(new)
        return self._trials.get(key) or record.tally(method, way, self._ranks, asked, self.decision)

    def trial_over(self, trial: Trial, result: RaceResult | None) -> None:
        """Use what a trial learned.  All ranks do so at the same collective call."""
        self._trials[trial.method, trial.asked] = None
        if result is not None:
            self.decision = self.decision.knowing(result)
        self.forget()

    def request(
        self,
        way: Way,
        method: str,
        library: Callable[[], Any],
        arguments: Sequence[Any],
        fast_key: bytes | None = None,
    ) -> Any:
        """A persistent request, or a non-blocking one that is started.

        way: which of the two.   library: makes the library's own.   arguments: all that METHOD_init
        or IMETHOD takes.   fast_key: see `serve`.
        """
        persistent = way == "persistent"
        blocking = arguments[:-1] if persistent else arguments  # without `info`
        key: Any = call_key(method, blocking)
        key = key and (way, key)
        executor, _, tally = self.calls.get(key) or self.find(method, key, blocking, way)
        if tally is not None and not persistent:
            tally.start()
        if executor is None:
            self._remember(way, fast_key, None, ())
            request = library()
        elif persistent:
            request = executor.persistent(*_buffers(method, blocking))
        else:
            request, fast_call = executor.nonblocking(*_buffers(method, blocking))
            if fast_call is not None:
                self._remember(way, fast_key, *fast_call)
        return counting_starts(request, tally) if tally is not None and persistent else request

    def _remember(self, way: Way, fast_key: bytes | None, *served: Any) -> None:
        if fast_key is not None:
            self._requesting[way].remember(fast_key, *served)

    def requesting(self, way: Way, comm: MPI.Intracomm, slow: Callable[..., Any]) -> Any:
        """The engine's table for requests.   slow: called for what it cannot make, or not yet."""
        form = ("blocking", "nonblocking", "persistent").index(way)
        calls = self._requesting[way] = self._calls(form, comm, MPI.SUM, slow)
        return calls

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
            collective = _BY_METHOD[method]
            every = range(self._ranks) if collective.has_sources else None
            asked = CallProblem(Problem.of(collective.name, self._ranks, nbytes, sources=every))
            plan, race = self.plan(asked, "blocking", timed=False), None
            if plan is None:
                self.decision.hand_over(asked, "blocking")
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
        for calls in (self.fast, *self._requesting.values()):
            if calls is not None:
                calls.forget()

    def _calls(self, *more: Any) -> Any:
        """A table of calls that the compiled engine serves by itself."""
        assert COMPILED is not None
        calls = COMPILED.Calls(self._methods, self._failed, self.rank, self._ranks, *more)
        self.duplicate.inform(calls.forget)
        return calls

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

    def call_problem(self, method: str, arguments: Sequence[Any]) -> CallProblem | None:
        """The problem that a call poses; None if it is the library's, to serve or to refuse.

        Raises what mpi4py raises for buffers that it cannot read.  The result depends only on what
        MPI requires to be equal on all ranks.
        """
        collective = _BY_METHOD[method]
        if collective.has_sources:
            return self._gather(collective, method, arguments[1])
        root = arguments[-1] if collective.rooted else 0
        if isinstance(root, str | bytes) or not hasattr(type(root), "__int__"):
            return None
        root = int(root)  # as mpi4py does
        if not 0 <= root < self._ranks:
            return None
        if collective.combines:
            sendbuf, recvbuf, op, *_ = arguments
            return self._combine(collective, sendbuf, recvbuf, op, root)
        return self._broadcast(arguments[0], root)

    def _broadcast(self, buf: Any, root: int) -> CallProblem | None:
        nbytes = Buffer(buf, writable=self.rank != root).nbytes
        if not nbytes:
            return None
        about = "broadcast", self._ranks, nbytes, root
        return self._once(("asked", about), lambda: CallProblem(Problem(*about)))

    def _once(self, key: Hashable, make: Callable[[], CallProblem]) -> CallProblem:
        if (known := self.calls.get(key)) is None:
            known = self.calls.remember(key, make())
        asked: CallProblem = known
        return asked

    def _combine(
        self, collective: Collective, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int
    ) -> CallProblem | None:
        if not isinstance(op, MPI.Op) or op == MPI.OP_NULL:
            return None
        has_output = collective.has_output(self.rank, root)
        parts = collective.unit(self._ranks, 1)
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
        about = collective.name, self._ranks, sent.nbytes, root, elements
        return self._once(("asked", about), lambda: self.decision.combine(*about))

    def _gather(self, collective: Collective, method: str, recvbuf: Any) -> CallProblem | None:
        """Raises InvalidArgument for negative counts, which Open MPI would take."""
        lengths = lengths_of(SPECS[method](recvbuf, self._ranks), self._ranks)
        if not any(lengths):
            return None

        def make() -> CallProblem:
            sources = tuple(Source(rank, nbytes) for rank, nbytes in enumerate(lengths) if nbytes)
            return CallProblem(Problem(collective.name, self._ranks, sum(lengths), sources=sources))

        return self._once(("asked", collective.name, lengths), make)
