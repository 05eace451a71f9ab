"""Candidates and their times: one search with one budget, in the order of an estimate.

Every candidate has a lower bound of its time, or with levels a rough time, the sum of those of its
parts.  Schedules are played in this order.  One that cannot be the fastest (with levels: that
hardly can) is skipped, unless it is quickly played, since the runners-up are worth knowing.
Playing one ends when it passes the best time so far.  With levels, candidates too long to be played
keep their rough times, and are shown with ≈.  The budget counts messages, never seconds: all ranks
choose alike.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import ALGORITHMS, Algorithm, describe
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
from collwise.schedule.program import Program, Schedule
from collwise.system import formatting
from collwise.timing.law import only_own_ports
from collwise.timing.trace import completion, messages_played

Score: TypeAlias = Callable[
    [Algorithm, Problem, Machine, Mapping[str, Any], Topology | None], Fraction
]
"""The exact time in seconds that an algorithm will take."""

HOPELESS = 4
"""With levels: a candidate expected to take so many times as long as the best is skipped."""
RIVAL = Fraction(5, 4)
"""With levels: a simulation ends when it passes the fastest by so much; what is near is raced."""
SLOWER = "its simulation ended when it was slower than the choice"
TOO_MANY = "too many messages to simulate when planning"


@dataclass
class Tried:
    """The result of trying: the best candidate of each algorithm, and why others are not there.

    simulated: how many schedules were simulated, out of `of` that had to be.
    unknown: how many of the others might be faster, but have too many messages.
    """

    best: dict[str, Candidate] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    simulated: int = 0
    of: int = 0
    unknown: int = 0

    def enter(self, candidate: Candidate) -> None:
        """Keep a candidate if it is the best of its algorithm."""
        known = self.best.get(candidate.name)
        if known is None or candidate.predicted < known.predicted:
            self.best[candidate.name] = candidate


class _Try(NamedTuple):
    expected: Fraction
    """At least so long; with levels, roughly."""
    number: int
    algorithm: Algorithm
    settings: Mapping[str, Any]
    schedule: Schedule
    work: int
    """Messages to simulate."""
    estimate: bool = False
    """Whether that is near enough to choose by it."""


def predicted(
    algorithm: Algorithm,
    problem: Problem,
    machine: Machine,
    settings: Mapping[str, Any],
    topology: Topology | None = None,
) -> Fraction:
    """The default score: the completion of the schedule."""
    if topology is None and machine.independent_ports:
        return algorithm.time_of(problem, machine, settings)
    return completion(algorithm.solve(problem, settings), machine, topology)


def rank(candidate: Candidate) -> tuple[Fraction, bool, int]:
    """Fastest first; of equally fast ones the simplest: no segments, few parameters."""
    algorithm = ALGORITHMS[candidate.name]
    return candidate.predicted, algorithm.segmented, len(algorithm.parameters)


def tried(
    among: Iterable[Algorithm],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    reason: str,
    score: Score,
) -> Tried:
    """The candidates of some algorithms.   reason: why the problem's order is asked for."""
    among, result = tuple(among), Tried()
    plain = score is predicted and only_own_ports(machine, topology)
    if plain and len(among) > 1:
        among = tuple(one for one in among if one.searched or one.usual)
    choices = list(_choices(among, problem, machine, reason, result.excluded))
    if score is not predicted:
        for algorithm, settings in choices:
            with _within_limits(algorithm, result.excluded):
                time = score(algorithm, problem, machine, settings, topology)
                result.enter(Candidate(algorithm.name, settings, time))
    else:
        finalists: set[str] = set()
        if isinstance(machine, Levels) and problem.ranks <= MAX_INSIDE:
            flat = _finalists([one for one in among if not one.levels], problem, machine, reason)
            finalists = {describe(algorithm.name, settings) for algorithm, settings in flat}
            known = {describe(algorithm.name, settings) for algorithm, settings in choices}
            choices += [one for one in flat if describe(one[0].name, one[1]) not in known]
        _simulate(choices, problem, machine, topology, result, finalists)
    result.excluded = {n: why for n, why in result.excluded.items() if n not in result.best}
    return result


@contextmanager
def _within_limits(algorithm: Algorithm, excluded: dict[str, str]) -> Iterator[None]:
    """What is beyond limits refuses one algorithm only, not the plan."""
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
    """Algorithms with the settings worth trying; on levels, with what is best at each of them."""
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
        every = list[Mapping[str, Any]]()
        for look in looks:
            with _within_limits(algorithm, excluded):
                every += algorithm.choices(seen, look)
        if not every:
            excluded.setdefault(
                algorithm.name,
                TOO_MANY
                if problem.ranks * len(problem.sources) > MAX_RECEIVED and not flats
                else "does not apply here, or segments cannot help",
            )
        for settings in {str(settings): settings for settings in every}.values():
            yield algorithm, settings


def _finalists(
    among: Sequence[Algorithm], problem: Problem, machine: Levels, reason: str
) -> list[tuple[Algorithm, Mapping[str, Any]]]:
    """What would be planned if all messages were as at one level, for each of them."""
    plain, finalists = replace(problem, placement=None), []
    for law in dict.fromkeys(level.law for level in machine.by_level):
        best = tried(among, plain, law, None, reason, predicted).best
        if best:
            choice = min(best.values(), key=rank)
            finalists.append((ALGORITHMS[choice.name], choice.settings))
    return finalists


class _Played:
    """The schedules that were simulated: algorithms of several names may have the same program."""

    def __init__(self, machine: Machine, topology: Topology | None) -> None:
        self.machine, self.topology = machine, topology
        self.known: dict[Program, tuple[Fraction | None, Fraction | None]] = {}
        """The last limit, and the time."""

    def completion(self, schedule: Schedule, limit: Fraction | None) -> Fraction | None:
        """As `timing.trace.completion`; None if the time is beyond the limit."""
        with suppress(TypeError):  # some hold lists
            before, time = self.known.get(schedule.program, (None, None))
            if time is not None or (limit and before and limit <= before):
                return time
        # A copy keeps its lists for itself: those of all candidates would fill the memory.
        time = completion(replace(schedule), self.machine, self.topology, limit)
        with suppress(TypeError):
            self.known[schedule.program] = limit, time
        return time


def _simulate(
    choices: Sequence[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    result: Tried,
    finalists: Collection[str] = (),
) -> None:
    """Simulate those first of which most is expected, as long as it is not too much work.

    finalists: the labels of those that are simulated in any case.
    """
    among = _tries(choices, problem, machine, topology, result.excluded)
    tries = sorted(among, key=lambda one: one[:2])
    levels = isinstance(machine, Levels)
    left = BUDGET if machine.independent_ports and topology is None else BUDGET_ELSEWHERE
    result.of, spare = len(tries), RUNNERS_UP
    played = _Played(machine, topology)
    for one in tries:
        name, settings = one.algorithm.name, one.settings
        final = describe(name, settings) in finalists
        known = min((c.predicted for c in result.best.values() if not c.rough), default=None)
        hopeless = known is not None and one.expected > known * (HOPELESS if levels else 1)
        if hopeless and not final and one.work > spare:
            time_of_it = formatting.time(seconds(one.expected))
            words = f"takes about {time_of_it}" if levels else f"takes {time_of_it} at least"
            result.excluded.setdefault(name, f"not simulated: it {words}")
        elif one.work > left and not final:
            result.unknown += 1
            if one.estimate and levels:
                result.enter(Candidate(name, settings, one.expected, estimate=True, rough=True))
            else:
                result.excluded.setdefault(name, TOO_MANY)
        else:
            runner_up = one.work <= spare
            left, spare = left - one.work, spare - one.work * runner_up
            result.simulated += 1
            limit = None if runner_up or known is None else known * (RIVAL if levels else 1)
            with _within_limits(one.algorithm, result.excluded):
                time = played.completion(one.schedule, limit)
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
    """The schedules of the candidates, and what is known of their times."""
    every, uncut = problem.lower_bounds(machine)
    levels = machine if isinstance(machine, Levels) else None
    for number, (algorithm, settings) in enumerate(choices):
        bound = every if algorithm.segmented else max(every, uncut)
        with _within_limits(algorithm, excluded):
            schedule = algorithm.solve(problem, settings)
            lists = schedule.sampled()
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
