"""Which collectives a program calls, and who serves them: for summaries, on request.

A recorded call costs some microseconds more.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeAlias

from mpi4py import MPI

from collwise.comm.decision import CallProblem, Decision
from collwise.comm.dispatch import Dispatch
from collwise.measure.race import LIBRARY
from collwise.profiles.records import Form
from collwise.schedule.collectives import COLLECTIVES

FORMAT = "collwise calls"
"""Of the document in which `collwise run --json` tells them."""
Way: TypeAlias = Literal["blocking", "nonblocking", "persistent", "object"]
_OTHERS = (
    "Barrier", "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Alltoallw",
    "Reduce_scatter", "Scan", "Exscan", "barrier", "bcast", "gather", "scatter", "allgather",
    "alltoall", "reduce", "allreduce", "scan", "exscan",
)  # fmt: skip
"""Collectives that only the library serves, or, of objects, by way of those of buffers."""


class Calls(NamedTuple):
    """Equal calls.

    way: of persistent ones `times` counts requests, not starts; "object": made for one of objects.
    asked: None for what is never planned.   algorithm: who serves them, or LIBRARY.   why: in a
    sentence.   saved_s: seconds that all of them saved, by the race that decided; None where none
    did.
    """

    method: str
    way: Way
    ranks: int
    asked: CallProblem | None
    times: int
    algorithm: str
    why: str
    saved_s: float | None


class _Key(NamedTuple):
    method: str
    way: Way
    ranks: int
    decision: int
    """Its id; it is kept."""
    asked: CallProblem | None


class Record:
    """Of the calls on a communicator and on those made of it, as this rank makes them."""

    def __init__(self) -> None:
        self._times: Counter[_Key] = Counter()
        self._decisions: dict[_Key, Decision] = {}
        self._last: _Key | None = None
        self._within = ""
        """The call of objects that is being made."""

    def watch(self, comm: MPI.Comm, dispatch: Dispatch, decision: Decision) -> None:
        """From now on record the collectives of a communicator, which dispatch reads."""
        for collective in COLLECTIVES.values():
            for method in collective.methods:
                lower = method[0].lower() + method[1:]
                self._wrap(comm, method, method, "blocking", decision, dispatch)
                self._wrap(comm, f"I{lower}", method, "nonblocking", decision, dispatch)
                self._wrap(comm, f"{method}_init", method, "persistent", decision, dispatch)
        for name in _OTHERS:
            self._wrap(comm, name, name, "blocking", decision, None)

    def _wrap(
        self,
        comm: MPI.Comm,
        name: str,
        method: str,
        way: Way,
        decision: Decision,
        dispatch: Dispatch | None,
    ) -> None:
        call, ranks = getattr(comm, name), comm.size
        asks = _asks(dispatch, call, method, way) if dispatch else lambda *_, **__: None

        @wraps(call)
        def recorded(*arguments: Any, **named: Any) -> Any:
            seen: Way = "object" if self._within else way
            key = _Key(method, seen, ranks, id(decision), asks(*arguments, **named))
            self._last = key
            self._decisions.setdefault(key, decision)
            self._within, before = (method if dispatch is None else self._within), self._within
            try:
                result = call(*arguments, **named)
            finally:
                self._within = before
            if self._last is key:  # else calls of buffers that it made are recorded
                self._times[key] += 1
            return result

        setattr(comm, name, recorded)

    def calls(self) -> list[Calls]:
        """All calls, equal ones together, in the order of their first."""
        every: dict[Calls, Calls] = {}
        for key, times in self._times.items():  # of communicators that decide alike
            one = self._told(key, times)
            same = one._replace(times=0, saved_s=None)
            if (other := every.get(same)) is not None:
                saved = None if one.saved_s is None else one.saved_s + (other.saved_s or 0)
                one = one._replace(times=one.times + other.times, saved_s=saved)
            every[same] = one
        return list(every.values())

    def last(self) -> Calls | None:
        """The last call; None before the first."""
        return None if self._last is None else self._told(self._last, 1)

    def _told(self, key: _Key, times: int) -> Calls:
        method, way, ranks, _, asked = key
        told = method, way, ranks, asked, times
        if asked is None:
            return Calls(*told, LIBRARY, "no plan is made for such calls", None)
        form: Form = "persistent" if way == "persistent" else "blocking"
        plan, why = self._decisions[key].explained(asked, form)
        race = self._decisions[key].race(asked, form)
        saved = None
        if plan is not None and race is not None:
            saved = times * (race.library_s - race.ours_s)
        return Calls(*told, LIBRARY if plan is None else plan.algorithm, why, saved)


def _asks(
    dispatch: Dispatch, call: Callable[..., Any], method: str, way: Way
) -> Callable[..., CallProblem | None]:
    """What a call asks for; None where it cannot be read, and for what plans know nothing of."""
    form = signature(call)

    def asked(*arguments: Any, **named: Any) -> CallProblem | None:
        try:
            bound = form.bind(*arguments, **named)
            bound.apply_defaults()
            given: Sequence[Any] = bound.args
            return dispatch.call_problem(method, given[:-1] if way == "persistent" else given)
        except (TypeError, ValueError, BufferError, MPI.Exception):
            return None  # the call says what is wrong with it

    return asked
