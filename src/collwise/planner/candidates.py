"""The search for the fastest candidate: schedules are simulated, those with low estimates first.

The estimate is a lower bound of the time, or on machines with levels a rough time.  A candidate
that cannot be the fastest, or with levels is unlikely to be, is simulated only if that is quick, so
that plans can show its time for comparison.  A longer simulation is stopped when its time exceeds
the best time so far.  With levels, candidates with too many messages may keep their rough times,
which plans show with ≈.  The budget limits the number of simulated messages, not seconds, so that
all ranks make the same choice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import ALGORITHMS, Algorithm, describe
from collwise.algorithms.search import settings_to_try
from collwise.errors import BeyondLimits
from collwise.model.exact import seconds
from collwise.model.levels import Levels, OneLevel
from collwise.model.limits import (
    BUDGET,
    BUDGET_ELSEWHERE,
    MAX_INSIDE,
    MAX_LOOKS,
    MAX_RECEIVED,
    RUNNERS_UP,
)
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.plans import Candidate
from collwise.planner.relaxed import about, least_time, load
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing.law import only_own_ports
from collwise.timing.trace import completion, messages_played

Score: TypeAlias = Callable[
    [Algorithm, Problem, Machine, Mapping[str, Any], Topology | None], Fraction
]
"""A function that predicts the time of an algorithm in seconds.

Its arguments are the algorithm, the problem, the machine, the settings, and the topology (None: no
contention on links).
"""

HOPELESS = 4
"""With levels, a candidate that is estimated to take this many times the best time is simulated
only if that is quick, or if it is the fastest with the costs of one level everywhere."""
RIVAL = Fraction(5, 4)
"""With levels, simulations are stopped at this multiple of the best time, not at the best time.

Candidates below it may be raced.
"""
SLOWER = "its simulation ended when it was slower than the choice"
TOO_MANY = "too many messages to simulate when planning"


@dataclass
class Tried:
    """The result of a search for the fastest candidates.

    best: maps an algorithm's name to its fastest candidate.   excluded: maps the name of an
    algorithm without a candidate to the reason.   of: number of schedules considered.
    simulated: number of schedules that were simulated.   unknown: number of schedules that may be
    faster than the best one, but have too many messages to simulate.
    """

    best: dict[str, Candidate] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    simulated: int = 0
    of: int = 0
    unknown: int = 0

    def enter(self, candidate: Candidate) -> None:
        """Put a candidate into `best` if it is the fastest of its algorithm so far."""
        known = self.best.get(candidate.name)
        if known is None or candidate.predicted < known.predicted:
            self.best[candidate.name] = candidate


class _Try(NamedTuple):
    """A schedule that the search may simulate.   number: the smaller goes first in a tie."""

    expected: Fraction
    """The estimate: a lower bound of the time in seconds; with levels, a rough time."""
    number: int
    algorithm: Algorithm
    settings: Mapping[str, Any]
    schedule: Schedule
    work: int
    """Number of messages to simulate, as `timing.messages_played` counts them."""
    estimate: bool = False
    """Whether `expected` is accurate enough to choose a candidate by it."""


def predicted(
    algorithm: Algorithm,
    problem: Problem,
    machine: Machine,
    settings: Mapping[str, Any],
    topology: Topology | None = None,
) -> Fraction:
    """The default score: the simulated completion time of the schedule, in exact seconds."""
    if topology is None and machine.independent_ports:
        return algorithm.time_of(problem, machine, settings)
    return completion(algorithm.solve(problem, settings), machine, topology)


def rank(candidate: Candidate) -> tuple[Fraction, bool, bool, int]:
    """A sort key: predicted time; in a tie unsegmented first, then `usual`, then the fewest
    parameters.

    Around a circulant graph ranks copy their vectors first, of which no law knows.
    """
    algorithm = ALGORITHMS[candidate.name]
    simple = algorithm.segmented, not algorithm.usual, len(algorithm.parameters)
    return candidate.predicted, *simple


def tried(
    among: Iterable[Algorithm],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    reason: str,
    score: Score,
) -> Tried:
    """Search for the fastest candidate of each of the algorithms `among`.

    With the default score, where only ranks' own ports delay messages, algorithms that are neither
    `searched` nor `usual` are left out, unless a single one is given, or the order is "fixed".
    topology: None for no contention on links.   reason: why contributions have to be combined in
    the problem's order.   score: predicts the time of a candidate.
    """
    among, result = tuple(among), Tried()
    plain = score is predicted and only_own_ports(machine, topology)
    if plain and len(among) > 1 and problem.order != "fixed":  # which few algorithms keep
        among = tuple(algorithm for algorithm in among if algorithm.searched or algorithm.usual)
    choices = list(_choices(among, problem, machine, reason, result.excluded))
    if score is not predicted:
        for algorithm, settings in choices:
            with _within_limits(algorithm, result.excluded):
                time = score(algorithm, problem, machine, settings, topology)
                result.enter(Candidate(algorithm.name, settings, time))
    else:
        finalists: set[str] = set()
        if isinstance(machine, Levels) and problem.ranks <= MAX_INSIDE:
            flat = _finalists(
                [algorithm for algorithm in among if not algorithm.levels], problem, machine, reason
            )
            finalists = {describe(algorithm.name, settings) for algorithm, settings in flat}
            known = {describe(algorithm.name, settings) for algorithm, settings in choices}
            choices += [pair for pair in flat if describe(pair[0].name, pair[1]) not in known]
        _simulate(choices, problem, machine, topology, result, finalists)
    result.excluded = {n: why for n, why in result.excluded.items() if n not in result.best}
    return result


@contextmanager
def _within_limits(algorithm: Algorithm, excluded: dict[str, str]) -> Iterator[None]:
    """Catch BeyondLimits: enter the algorithm and the reason in `excluded`, so planning goes on."""
    try:
        yield
    except BeyondLimits as refusal:
        excluded.setdefault(algorithm.name, f"not tried: {refusal.seen}")


def _choices(
    among: Iterable[Algorithm],
    problem: Problem,
    machine: Machine,
    reason: str,
    excluded: dict[str, str],
) -> Iterable[tuple[Algorithm, Mapping[str, Any]]]:
    """Yield pairs of an algorithm and settings to try.

    excluded: receives the algorithms without settings to try, and why.   reason: why contributions
    have to be combined in the problem's order.
    With levels, algorithms for machines without levels are tried with the settings that are best if
    all messages cross the same level.
    """
    plain = replace(problem, placement=None)
    flats: list[Machine] = []
    if isinstance(machine, Levels):
        flats = [OneLevel(machine, level) for level in range(1, len(machine.by_level) + 1)]
        flats = flats[-1:] if problem.ranks > MAX_INSIDE else flats
        if problem.ranks <= MAX_LOOKS and machine.shares_ports:
            flats += [level.law for level in machine.by_level[1:]]
    for algorithm in among:
        if not algorithm.keeps_order(problem):
            excluded[algorithm.name] = f"not legal, for it combines in another order: {reason}"
            continue
        looks, seen = (flats, plain) if flats and not algorithm.levels else ([machine], problem)
        worth_trying = list[Mapping[str, Any]]()
        for look in looks:
            with _within_limits(algorithm, excluded):
                worth_trying += settings_to_try(algorithm, seen, look)
        if not worth_trying:
            excluded.setdefault(
                algorithm.name,
                TOO_MANY
                if problem.ranks * len(problem.sources) > MAX_RECEIVED and not flats
                else "does not apply here, or segments cannot help",
            )
        for settings in {str(settings): settings for settings in worth_trying}.values():
            yield algorithm, settings


def _finalists(
    among: Sequence[Algorithm], problem: Problem, machine: Levels, reason: str
) -> list[tuple[Algorithm, Mapping[str, Any]]]:
    """For each level's costs, the fastest (algorithm, settings) if all messages have these costs.

    reason: why contributions have to be combined in the problem's order.
    """
    plain, finalists = replace(problem, placement=None), []
    for law in dict.fromkeys(level.law for level in machine.by_level):
        best = tried(among, plain, law, None, reason, predicted).best
        if best:
            choice = min(best.values(), key=rank)
            finalists.append((ALGORITHMS[choice.name], choice.settings))
    return finalists


def _simulate(
    choices: Sequence[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    result: Tried,
    finalists: Collection[str] = (),
) -> None:
    """Simulate the candidates within the budget, those with the least estimates first.

    result: receives the candidates and their times.   finalists: labels of candidates that are
    always simulated.
    """
    among = _tries(choices, problem, machine, topology, result.excluded)
    tries = sorted(among, key=lambda entry: entry[:2])
    levels = isinstance(machine, Levels)
    left = BUDGET if machine.independent_ports and topology is None else BUDGET_ELSEWHERE
    result.of, spare = len(tries), RUNNERS_UP
    for candidate in tries:
        name, settings = candidate.algorithm.name, candidate.settings
        final = describe(name, settings) in finalists
        known = min((c.predicted for c in result.best.values() if not c.estimate), default=None)
        hopeless = known is not None and candidate.expected > known * (HOPELESS if levels else 1)
        if hopeless and not final and candidate.work > spare:
            expected = formatting.time(seconds(candidate.expected))
            words = f"takes about {expected}" if levels else f"takes {expected} at least"
            result.excluded.setdefault(name, f"not simulated: it {words}")
        elif candidate.work > left and not final:
            result.unknown += 1
            if candidate.estimate and levels:
                result.enter(Candidate(name, settings, candidate.expected, estimate=True))
            else:
                result.excluded.setdefault(name, TOO_MANY)
        else:
            runner_up = candidate.work <= spare
            left, spare = left - candidate.work, spare - candidate.work * runner_up
            result.simulated += 1
            limit = None if runner_up or known is None else known * (RIVAL if levels else 1)
            with _within_limits(candidate.algorithm, result.excluded):
                # A copy is freed with its cached lists: those of all candidates need much memory.
                time = completion(replace(candidate.schedule), machine, topology, limit)
                if time is None:
                    result.excluded[name] = SLOWER
                else:
                    result.enter(Candidate(name, settings, time))


def _tries(
    choices: Sequence[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    excluded: dict[str, str],
) -> Iterable[_Try]:
    """The schedules of the candidates, with estimates of their times.

    excluded: receives the algorithms that raise BeyondLimits, and why.
    """
    any_bound, uncut_bound = problem.lower_bounds(machine)
    levels = machine if isinstance(machine, Levels) else None
    for number, (algorithm, settings) in enumerate(choices):
        bound = any_bound if algorithm.segmented else max(any_bound, uncut_bound)
        with _within_limits(algorithm, excluded):
            schedule = algorithm.solve(problem, settings)
            lists = schedule.sampled
            work = messages_played(schedule, machine, topology)
            if levels is None:
                least, alone = max(bound.time, load(lists, machine)), Fraction(0)
                if topology is not None or not machine.independent_ports:
                    alone = least_time(schedule, machine)
                least = max(least, alone)
                yield _Try(least, number, algorithm, settings, schedule, work)
                continue
            time, estimate = about(algorithm, schedule, lists, levels)
            least = max(bound.time, time, Fraction(0) if estimate else load(lists, machine))
            yield _Try(least, number, algorithm, settings, schedule, work, estimate)
