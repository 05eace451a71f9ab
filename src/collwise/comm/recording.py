"""Records which collectives a program calls, how long they take and what serves them.

Equal calls share a tally.  The caches, the compiled engine's too, hold the tally beside what serves
the calls, so recording a call takes hardly any time.
"""

from collections.abc import Callable, Hashable
from functools import cache, wraps
from time import monotonic_ns
from typing import Any, Literal, NamedTuple, TypeAlias

from mpi4py import MPI

from collwise.comm.decision import CallProblem, Decision
from collwise.measure.race import LIBRARY
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.planner.worth import Worth
from collwise.profiles.records import Form

Way: TypeAlias = Literal["blocking", "nonblocking", "persistent", "object"]
_OTHERS = (
    "Barrier", "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Alltoallw",
    "Reduce_scatter", "Scan", "Exscan", "barrier", "gather", "scatter", "alltoall", "scan",
    "exscan",
)  # fmt: skip
"""Collectives that only the library serves."""
OBJECTS = {"bcast": "Bcast", **dict.fromkeys(("allgather", "reduce", "allreduce"), "Allgather")}
"""Methods for Python objects, each with the method for buffers that may carry the pickles."""

# The numbers of a tally, as in calls.h.
TIMES, UNTIL, NANOSECONDS, LAST, NUMBERS = range(5)
FOREVER = 2**63 - 1


def form_of(way: Way) -> Form:
    """The form whose plans and races decide what serves calls of the form `way`."""
    return "blocking" if way == "object" else way


class Calls(NamedTuple):
    """Equal calls of one rank, and what served them.

    way: the form of the calls; "object" if a collective of objects made them.   asked: the problem;
    None if no plan is made for such calls.   times: how many calls, or starts of persistent ones.
    algorithm: the name of what serves; LIBRARY for the library's default.   why: the reason.
    saved_s: seconds that all the calls saved, by the race that decided; None if no race did, and
    for the library's default.   spent_s: seconds that this rank spent in the calls; None for calls
    with a request.   worth: what tuning would save on all the calls, if that was asked for.
    """

    method: str
    way: Way
    ranks: int
    asked: CallProblem | None
    times: int
    algorithm: str
    why: str
    saved_s: float | None
    spent_s: float | None
    worth: Worth = Worth()


class Tally:
    """How often equal calls were made, and for how long.

    numbers: TIMES, the number of calls; UNTIL, the number of calls up to which the compiled engine
    may serve them; NANOSECONDS, what all calls took; LAST, when the last one began.  Starts and
    ends of the last `kept` calls follow; like LAST, they are ns of the monotonic clock.
    memory: the same numbers as bytes, for the compiled engine.   instead: why the library's default
    serves, not what was chosen; or empty.
    """

    def __init__(
        self,
        method: str,
        way: Way,
        ranks: int,
        asked: CallProblem | None,
        decision: Decision,
        instead: str = "",
        kept: int = 0,
    ) -> None:
        self.method, self.way, self.ranks = method, way, ranks
        self.asked, self.decision, self.instead = asked, decision, instead
        self.memory = bytearray(8 * (NUMBERS + 2 * kept))
        self.numbers = memoryview(self.memory).cast("q")
        self.numbers[UNTIL] = FOREVER

    def add(self, begin_ns: int, end_ns: int) -> None:
        """Count a call, with its times on the monotonic clock."""
        numbers = self.numbers
        if kept := (len(numbers) - NUMBERS) // 2:
            place = NUMBERS + 2 * (numbers[TIMES] % kept)
            numbers[place], numbers[place + 1] = begin_ns, end_ns
        numbers[TIMES] += 1
        numbers[NANOSECONDS] += end_ns - begin_ns
        numbers[LAST] = begin_ns

    def start(self) -> None:
        """Count the start of a call that a request completes later."""
        self.numbers[TIMES] += 1
        self.numbers[LAST] = monotonic_ns()

    def calls(self, times: int) -> Calls:
        """A summary of `times` of these calls, with what serves them."""
        kind = self.method, self.way, self.ranks, self.asked, times
        spent_s = None
        if self.way not in ("nonblocking", "persistent"):
            spent_s = times * self.numbers[NANOSECONDS] / self.numbers[TIMES] / 1e9
        if self.asked is None:
            return Calls(*kind, LIBRARY, "no plan is made for such calls", None, spent_s)
        form = form_of(self.way)
        chosen = self.decision.explained(self.asked, form)
        if self.instead and chosen.label != LIBRARY:
            chosen = chosen.by_default(self.instead)
        race = self.decision.race(self.asked, form)
        saved_s = None
        if chosen.label != LIBRARY and race is not None and race.form == form:
            saved_s = times * (race.library_s - race.ours_s)
        return Calls(*kind, chosen.label, chosen.why, saved_s, spent_s)

    def worth(self, calls: Calls) -> Worth:
        """What tuning would save on these calls."""
        if self.asked is None or calls.algorithm != LIBRARY:
            return Worth()
        took_s = None if calls.spent_s is None else calls.spent_s / calls.times
        one = self.decision.worth(self.asked, form_of(self.way), took_s)
        return one if one.seconds is None else one._replace(seconds=one.seconds * calls.times)


class Record:
    """The calls that this rank makes on a communicator and on communicators derived from it."""

    def __init__(self) -> None:
        self._tallies: dict[Hashable, Tally] = {}

    def add(self, tally: Tally) -> None:
        """Add a tally that the caller made; the record includes its calls."""
        self._tallies[id(tally)] = tally

    def tally(
        self,
        method: str,
        way: Way,
        ranks: int,
        asked: CallProblem | None,
        decision: Decision,
        instead: str = "",
    ) -> Tally:
        """The tally of equal calls, shared by all communicators with the same decision."""
        key = method, way, ranks, asked, id(decision), instead
        if (known := self._tallies.get(key)) is None:  # a tally keeps its decision alive
            known = self._tallies[key] = Tally(method, way, ranks, asked, decision, instead)
        return known

    def counted_methods(
        self, comm: MPI.Comm, ranks: int, decision: Decision
    ) -> dict[str, Callable[..., Any]]:
        """A communicator's collectives that no plan serves, by name, as functions that count calls.

        The names of object methods are those in `ObjectForms`, such as `_library_bcast`.
        """
        made = {}
        for name in (*_OTHERS, *OBJECTS):
            called = f"_library_{name}" if name in OBJECTS else name
            tally = self.tally(name, "blocking", ranks, None, decision)
            made[called] = _counted(getattr(type(comm), called).__get__(comm), tally)
        return made

    def calls(self, *, worth: int = 0) -> list[Calls]:
        """All calls, equal calls as one item, in the order in which their tallies were made.

        worth: estimate what tuning would save for so many items, longest total time first.
        """
        every: dict[Calls, Calls] = {}
        tallies: dict[Calls, Tally] = {}
        for tally in [tally for tally in self._tallies.values() if tally.numbers[TIMES]]:
            one = tally.calls(tally.numbers[TIMES])
            same = one._replace(times=0, saved_s=None, spent_s=None)
            if (other := every.get(same)) is not None:  # from a communicator that decides alike
                one = one._replace(
                    times=one.times + other.times,
                    saved_s=None if one.saved_s is None else one.saved_s + (other.saved_s or 0),
                    spent_s=None if one.spent_s is None else one.spent_s + (other.spent_s or 0),
                )
            every[same], tallies[same] = one, tally
        for same in sorted(every, key=lambda same: -(every[same].spent_s or 0))[:worth]:
            every[same] = every[same]._replace(worth=tallies[same].worth(every[same]))
        return list(every.values())

    def last(self) -> Calls | None:
        """The last call; None before the first."""
        latest = max(self._tallies.values(), key=lambda tally: tally.numbers[LAST], default=None)
        return None if latest is None or not latest.numbers[TIMES] else latest.calls(1)


def _counted(call: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    @wraps(call)
    def counted(*arguments: Any, **named: Any) -> Any:
        begin = monotonic_ns()
        result = call(*arguments, **named)
        tally.add(begin, monotonic_ns())
        return result

    return counted


class CountingStarts:
    """A mixin for persistent requests whose starts are counted."""

    tally: Tally

    def Start(self) -> None:  # noqa: N802
        """Start the collective and count the start."""
        super().Start()  # type: ignore[misc]
        self.tally.start()


class _CountedRequest(CountingStarts, MPI.Prequest):
    """A persistent request of the library's."""


@cache
def _counting(kind: Any) -> type[Any]:
    return type(kind.__name__, (CountingStarts, kind), {})


def counting_starts(request: Any, tally: Tally) -> Any:
    """Make `tally` count the starts of a persistent request.

    Returns `request` itself if it is collwise's, and a new object for a library's request.
    """
    if isinstance(request, PersistentCollective):
        request.__class__ = _counting(type(request))  # type: ignore[arg-type]
    else:
        request = _CountedRequest(request)
    request.tally = tally
    return request
