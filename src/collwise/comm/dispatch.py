"""Dispatch: finds what serves a call, an executor of ours or the library's own collective.

An executor or a plan that is None means that the library's own collective serves.
"""

import logging
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import monotonic_ns
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from mpi4py import MPI

from collwise.comm.chosen import Chosen, Own
from collwise.comm.decision import CallProblem, Decision
from collwise.comm.handler import Handler
from collwise.comm.learning import MAX_TRIALS, Learning, Trial
from collwise.comm.own_candidates import own_candidates
from collwise.comm.posed import BY_METHOD, Posed, posed_by
from collwise.comm.recording import Record, Tally, Way, counting_starts, form_of
from collwise.measure.race import LIBRARY
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.executor import BoundedCache, Executor, NoPlannedRequest
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.library.own_algorithms import composition
from collwise.mpi.library.switching import OwnCalls, Switched
from collwise.mpi.runtime.agreement import on_root
from collwise.mpi.runtime.private_communicator import PrivateDuplicate
from collwise.planner.plans import Plan
from collwise.profiles.records import FORMS, Form, RaceResult
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem, satisfies
from collwise.schedule.program import Schedule

log = logging.getLogger("collwise")

MAX_ENTRIES = 2048
"""Largest number of handlers and plans in a communicator's cache; handlers own executors."""
SLOW_S = 50e-6
"""Seconds.  Object methods use no plan if a race shows the library's call to take at most this."""
_NO_DUPLICATE = "there is no private communicator yet: make a blocking call of this collective"


T = TypeVar("T")


@dataclass(eq=False)
class Dispatch:
    """Serves the calls on one communicator.

    duplicate: the private communicator for plans.   own: the library's own algorithms.  A `Comm`
    and the views made of it share both.   methods: MPI methods that plans may serve.
    record: counts calls.   way: the form under which blocking calls are counted, such as "object".
    learning: tries plans on calls; needs a record.   common_clock: whether all ranks read the same
    clock.   calls: the cache of handlers and plans.
    """

    decision: Decision
    duplicate: PrivateDuplicate
    own: OwnCalls
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
        self._executors: WeakValueDictionary[Hashable, Executor] = WeakValueDictionary()
        self.in_c: dict[Way, Any] = {}
        self._ready = False
        self.duplicate.when_made.append(self.forget)
        self.own.when_changed.append(self.forget)

    def calls_in_c(self, way: Way, comm: MPI.Intracomm, slow: Callable[..., Any]) -> Any:
        """Make the object whose methods, written in C, serve calls of the form `way`.

        slow: the Python function for calls that C cannot serve, or cannot serve yet.
        """
        assert COMPILED is not None
        form = FORMS.index(form_of(way))
        about = self.methods, comm, self.rank, self.ranks, MPI.SUM, slow, self._failed
        calls = self.in_c[way] = COMPILED.Calls(form, *about)
        self.duplicate.when_broken.append(calls.forget)
        return calls

    def call(
        self,
        way: Way,
        method: str,
        library: "partial[Any]",
        arguments: Sequence[Any],
        fast_key: bytes | None = None,
    ) -> Any:
        """Execute a blocking call, or make a request, which is started unless it is persistent.

        library: makes the library's own call; its first argument is the communicator.
        arguments: all that the MPI method takes.   fast_key: the key under which the compiled
        engine remembers how to serve such calls by itself; None if it cannot.
        """
        buffers = arguments[: 1 if method == "Bcast" else 2]
        if way != "nonblocking":
            self.duplicate.renew()
        if way == "blocking":
            self._execute(method, library, arguments, buffers, fast_key)
            return None
        persistent = way == "persistent"
        if persistent and not isinstance(arguments[-1], MPI.Info):
            return library()  # mpi4py raises the error
        blocking = arguments[:-1] if persistent else arguments  # without `info`
        handler = self._known(way, fast_key) or self._handler(way, method, blocking)
        executor, tally = handler.executor, handler.tally
        if tally is not None and not persistent:
            tally.start()
        fast_call: Any = None
        if executor is None:
            fast_call = handler.fast_call
            request = handler.by_library(library)
        else:
            try:
                if persistent:
                    request = self._told(executor.persistent, *buffers)
                else:
                    request, fast_call = self._told(executor.nonblocking, *buffers)
            except NoPlannedRequest as why:
                asked = CallProblem(executor.problem)
                self.decision.check_fallback(asked, "persistent", str(why))
                request = library()
        if fast_key is not None and fast_call is not None:
            self.in_c[way].remember(fast_key, *fast_call)
        elif fast_key is not None and (way, fast_key) not in self.calls:
            self.calls.remember((way, fast_key), Handler(executor))
        return counting_starts(request, tally) if tally is not None and persistent else request

    def _execute(
        self,
        method: str,
        library: "partial[Any]",
        arguments: Sequence[Any],
        buffers: Sequence[Any],
        fast_key: bytes | None,
    ) -> None:
        handler = self._handler(self.way, method, arguments)
        while isinstance(handler.tally, Trial) and not handler.tally.proceed(handler.op):
            handler = self._handler(self.way, method, arguments)  # the trial is over
        tally = handler.tally
        if isinstance(tally, Trial):
            handler = handler._replace(executor=tally.executor, own=tally.own)
        executor = handler.executor
        begin_ns = monotonic_ns()
        fast_call: Any = handler.fast_call
        if executor is None:
            handler.by_library(library)
        else:
            fast_call = self._told(executor.run, *buffers)
        if tally is not None:
            tally.add(begin_ns, monotonic_ns())
        if fast_key is not None and fast_call is not None:
            self.in_c["blocking"].remember(fast_key, *fast_call, tally and tally.memory)

    def _told(self, act: Callable[..., T], *arguments: Any) -> T:
        """What `act` returns; an error of MPI's goes to the user's error handler first."""
        try:
            return act(*arguments)
        except MPI.Exception as problem:
            self.duplicate.of.Call_errhandler(problem.Get_error_code())
            raise

    def _known(self, way: Way, fast_key: bytes | None) -> Handler | None:
        """The handler of an earlier request with this key, or None; C makes the key."""
        return None if fast_key is None else self.calls.get((way, fast_key))

    def _handler(self, way: Way, method: str, arguments: Sequence[Any]) -> Handler:
        """The handler of a call, cached.   arguments: what the blocking method takes."""
        posed = self._told(posed_by, method, arguments, self.rank, self.ranks)
        op = arguments[2] if posed is not None and posed.elements is not None else None
        return self._cached((way, method, posed, id(op)), self._find, way, method, posed, op)

    def _find(self, way: Way, method: str, posed: Posed | None, op: MPI.Op | None) -> Handler:
        """Make the handler of calls that pose this problem; may be collective."""
        if posed is None:  # wrong arguments, or nothing to move
            return Handler(None, None, self._tally(way, method, None, op, ""))
        asked, form = self._problem(posed), form_of(way)
        waits = not self._ready and way != "nonblocking"
        if waits and posed.collective in self.decision.served(self.ranks):
            self._get_ready()
        chosen, instead = self.chosen(asked, form, timed=False), ""
        plan, own = chosen.plan, self._own(way, method, chosen.own)
        if plan is None and not isinstance(own, Switched):
            self.decision.check_fallback(asked, form)
        elif plan is not None and not self.duplicate.exists(local=way == "nonblocking"):
            self.decision.check_fallback(asked, form, _NO_DUPLICATE)
            plan, instead = None, _NO_DUPLICATE  # once there is a duplicate, caches are emptied
        if isinstance(own, str):
            log.info("the library's default serves %s, for %s", asked.problem, own)
            instead = own
        tally = self._tally(way, method, asked, op, instead)
        switched = own if isinstance(own, Switched) else None
        executor = None if plan is None else self.executor(method, plan, op)
        return Handler(executor, op, tally, switched)

    def _get_ready(self) -> None:
        """At a call at which ranks may wait, do what later non-blocking calls need.

        Collective.
        """
        self._ready = True
        if self.decision.own_algorithms(self.ranks):
            self.own.agree()
        if self.decision.plans_nonblocking(self.ranks):
            self.duplicate.exists()

    def _own(self, way: Way, method: str, own: Own | None) -> Switched | str | None:
        """A call of the library's own algorithm `own`, or the reason why its default serves.

        None if `own` is None.   Collective, except for non-blocking calls.
        """
        if own is None:
            return None
        if own.method not in ("", method):
            return "its race was of other calls"
        return self.own.find(method, form_of(way), *own.asked, local=way == "nonblocking")

    def own_to_try(self, method: str, estimated: Plan, most: int) -> dict[str, Switched]:
        """The library's own algorithms, by label, that learning may try on blocking calls.

        An Allreduce has left the same bits on all ranks in a trial.  Empty if vectors must be
        combined in rank order.   estimated: a plan of the calls' problem, for `own_candidates`.
        most: the largest number of algorithms.   Collective.
        """
        found: dict[str, Switched] = {}
        if satisfies(estimated.problem.order, "rank") or self.own.agree():
            return found
        forms, composed = FORMS[:1], self.own.nested
        chosen = partial(own_candidates, estimated, method, forms, composed=composed)
        for candidate in on_root(self.own.of, chosen).values():
            own = Own(candidate.name, tuple(candidate.settings.items()))
            switched = self._own("blocking", method, own) if len(found) < most else None
            if isinstance(switched, Switched) and switched.alike(
                method, estimated.problem.nbytes, self.own.of
            ):
                found[own.label] = switched
        return found

    def explained(self, asked: CallProblem, form: Form) -> Chosen:
        """What would serve a call, and why; not collective."""
        chosen = self.decision.explained(asked, form)
        if chosen.plan is not None and self.waits_for_duplicate(form):
            return chosen.by_default(_NO_DUPLICATE)
        if chosen.own is not None:
            method = chosen.own.method or asked.problem.method
            if reason := self.own.why_not(method, form, *chosen.own.asked):
                return chosen.by_default(reason)
            if words := composition(method, form, *chosen.own.asked):
                return chosen._replace(why=f"{chosen.why}; {words}")
        return chosen

    def waits_for_duplicate(self, form: Form) -> bool:
        """Whether calls of this form can have no plan yet, for lack of a private communicator."""
        return form == "nonblocking" and not self.duplicate.exists(local=True)

    def agree_on_own(self) -> None:
        """If own algorithms of the library are chosen, let the ranks agree whether they may serve.

        Collective.   Rank 0 logs which of the chosen algorithms cannot serve, and why.
        """
        if any(named := self.decision.own_algorithms(self.ranks)):
            self.own.agree()
        for own in named if self.rank == 0 else ():
            every = COLLECTIVES[own.algorithm.partition("/")[0]].methods
            methods = (own.method,) if own.method else every
            ways = product(methods, FORMS if own.form is None else (own.form,))
            if reason := self.own.lacks(ways, *own.asked):
                log.warning("the library's default serves, not %s: %s", own.label, reason)

    def _tally(
        self, way: Way, method: str, asked: CallProblem | None, op: MPI.Op | None, instead: str
    ) -> Tally | None:
        """The tally of equal calls, a `Trial` if plans are tried on them; None without a record.

        instead: why the library's default serves, not what was chosen; or empty.
        """
        record, learning = self.record, self.learning
        if record is None:
            return None
        about = method, way, self.ranks, asked, self.decision, instead
        if learning is None or asked is None or way in ("nonblocking", "persistent"):
            return record.tally(*about)
        # Decided at the first call of its kind, which is the same one on all ranks.
        key = method, asked
        if key not in self._trials and len(self._trials) < MAX_TRIALS:
            new, predefined = None, op is None or op.is_predefined
            if predefined and self.decision.learnable(asked):
                new = Trial(method, way, asked, self, learning)
                record.add(new)
            self._trials[key] = new  # last: after an error this call may be made again
        return self._trials.get(key) or record.tally(*about)

    def trial_over(self, trial: Trial, result: RaceResult | None) -> None:
        """End a trial, and decide by its result, if any.  All ranks do so at the same call."""
        self._trials[trial.method, trial.asked] = None
        if result is not None:
            self.decision = self.decision.with_result(result)
        self.forget()

    def chosen(self, asked: CallProblem, form: Form, *, timed: bool = True) -> Chosen:
        """What serves a call, cached.   timed: False to predict no time."""
        return self._cached((asked, form, timed), self.decision.chosen, asked, form, timed)

    def slow(self, method: str, nbytes: int) -> bool:
        """Whether something else than the library's default serves, and the default is slow.

        It is slow if a race shows that it takes over SLOW_S seconds, or if there is no race.
        method: Bcast or Allgather.   nbytes: bytes of the broadcast, or of each contribution.
        Raises InvalidArgument if the default serves, but settings demand a plan.
        """
        return self._cached(("slow", method, nbytes), self._is_slow, method, nbytes)

    def _is_slow(self, method: str, nbytes: int) -> bool:
        asked = self._problem(Posed(BY_METHOD[method].name, nbytes))
        if self.chosen(asked, "blocking", timed=False).label == LIBRARY:
            self.decision.check_fallback(asked, "blocking")
            return False
        race = self.decision.race(asked, "blocking")
        return race is None or race.library_s > SLOW_S

    def _cached(self, key: Hashable, make: Callable[..., T], *arguments: Any) -> T:
        """The cached value of a key; `make` is called if the cache lacks the key."""
        if (known := self.calls.get(key)) is None:
            known = self.calls.remember(key, make(*arguments))
        value: T = known
        return value

    def run(self, schedule: Schedule, op: MPI.Op | None, buffers: Sequence[Any]) -> None:
        """Run a schedule once.   buffers: what the MPI method of the collective takes."""

        def make() -> tuple[Executor, Schedule, MPI.Op | None]:
            # Kept with schedule and op, whose ids are in the key.
            return executor_for(schedule, self.duplicate.make(), op), schedule, op

        executor, *_ = self._cached(("schedule", id(schedule), id(op)), make)
        executor.run(*buffers)

    def free(self) -> None:
        """Free the private communicator, its requests and the duplicates of `own`.  Collective."""
        self.forget()
        self.duplicate.free()
        self.own.free()

    def forget(self) -> None:
        """Empty the caches of what serves calls, those in C, too."""
        self.calls.forget()
        for calls in self.in_c.values():
            calls.forget()

    def executor(self, method: str, plan: Plan, op: MPI.Op | None) -> Executor:
        """The executor for a plan.  Collective if the private communicator is not made yet."""
        private = self.duplicate.make()
        key = method, plan.problem, plan.choice.label, id(op)
        if (executor := self._executors.get(key)) is None:
            executor = executor_for(plan.schedule, private, op, method)
            self._executors[key] = executor
        return executor

    def _failed(self, problem: BaseException) -> None:
        """Mark the private communicator broken after an error in a call that C alone served."""
        if self.duplicate.made is not None:
            self.duplicate.made.mark_broken(problem)

    def _problem(self, posed: Posed) -> CallProblem:
        collective, nbytes, root, elements = posed
        if elements is not None:
            assert isinstance(nbytes, int)
            return self.decision.combine(collective, self.ranks, nbytes, root, elements)
        sources = range(self.ranks) if COLLECTIVES[collective].has_sources else None
        return CallProblem(Problem.of(collective, self.ranks, nbytes, root, sources=sources))
