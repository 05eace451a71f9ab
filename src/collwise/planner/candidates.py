"""Candidates and their times: which to simulate, and in which order.

Where a formula gives the time, all candidates are scored.  Elsewhere each has a lower bound: its
time if messages never met.  With levels that bound is too low to help, so each has a rough time,
the sum of those of its parts.  Candidates are simulated in the order of these times.  One that
cannot be the fastest (with levels: that hardly can) is skipped, unless little has been simulated
yet, since the runners-up are worth knowing.  A simulation ends when it passes the best time so far.
With levels, candidates too long to be simulated keep their rough times, and are shown with ≈.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import ALGORITHMS, Algorithm, describe
from collwise.algorithms.s_to_p.spreading import MAX_RECEIVED
from collwise.errors import BeyondLimits
from collwise.model.exact import seconds
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.plans import Candidate
from collwise.planner.relaxed import MAX_INSIDE, about, least_time, load, messages, sampled
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.system import formatting
from collwise.timing import ideal_completion
from collwise.timing.trace import completion, fastest_timing
from collwise.timing.vectorised import at_once

Score: TypeAlias = Callable[
    [Algorithm, Problem, Machine, Mapping[str, Any], Topology | None], Fraction
]
"""The exact time in seconds that an algorithm will take."""

MAX_SIMULATED = 1 << 21
"""Messages that are simulated when planning, in all candidates."""
MAX_WITH_LEVELS = 1 << 16
"""The same for a machine with levels, of not too many ranks; what remains is estimated."""
ONE_BY_ONE = 8
"""A message counts so many times where columns of all ranks are of no use."""
HOPELESS = 4
"""What is expected to take so many times as long as another one is not simulated."""
RIVAL = Fraction(5, 4)
"""With levels, a simulation ends when it passes the fastest by so much: what is near is raced."""
MAX_FOR_PROOFS = 1 << 17
"""And to prove that candidates are faster than those planned for one level."""
MAX_FOR_RUNNERS_UP = 1 << 14
"""The same as long as candidates are simulated that cannot be the fastest."""
MAX_REFINED = 1 << 15
"""Messages that are simulated for the times of candidates of which only an estimate is known."""
SLOWER = "its simulation ended when it was slower than the choice"
MAX_LOOKS = 256
"""Ranks up to which the levels are also looked at as if no ports were shared."""


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
    """The default score: the closed form where it is exact, else the schedule's ideal time.

    On a topology, which may have too few links for all messages at once, schedules are simulated.
    """
    if topology is None and machine.independent_ports:
        return algorithm.time_of(problem, machine, settings)
    schedule = algorithm.solve(problem, settings)
    if isinstance(machine, Levels) and topology is None:
        return fastest_timing(schedule, machine).completion
    return ideal_completion(schedule, machine, topology)


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
    choices = list(_choices(among, problem, machine, reason, result.excluded))
    formulas = topology is None and machine.independent_ports
    levels = isinstance(machine, Levels)
    if not formulas and not levels and problem.ranks * len(problem.sources) > MAX_RECEIVED:
        too_many = "too many messages to simulate when planning"
        result.excluded.update((algorithm.name, too_many) for algorithm, _ in choices)
        return result
    if formulas or score is not predicted:
        for algorithm, settings in choices:
            with _within_limits(algorithm, result.excluded):
                time = score(algorithm, problem, machine, settings, topology)
                estimate = formulas and algorithm.estimated(problem, settings)
                result.enter(Candidate(algorithm.name, settings, time, estimate=estimate))
        if score is predicted:
            _refine(choices, problem, machine, result)
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
                "too many messages to simulate when planning"
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

    finalists: the labels of those that are simulated in any case, until they are slower than
    others; what is expected to be faster than they are then has to prove it.
    """
    among = _tries(choices, problem, machine, topology, result.excluded)
    tries = sorted(among, key=lambda one: one[:2])
    levels = isinstance(machine, Levels)
    many = levels and problem.ranks > MAX_INSIDE
    most = MAX_SIMULATED
    if levels:
        most = MAX_FOR_RUNNERS_UP if many else MAX_WITH_LEVELS
    result.of, work = len(tries), 0
    few = MAX_FOR_RUNNERS_UP
    if topology is not None and problem.kind.has_sources:
        few *= ONE_BY_ONE  # so that it can be said whether moving the data first pays
    fastest: Fraction | None = None
    played = _Played(machine, topology)
    unproven = list[_Try]()
    for one in tries:
        name, settings = one.algorithm.name, one.settings
        final = describe(name, settings) in finalists
        runner_up = work + one.work <= few
        known = min((c.predicted for c in result.best.values()), default=None)
        slower = known is not None and one.expected > known * (HOPELESS if levels else 1)
        if slower and not final and (not runner_up or many):
            time_of_it = formatting.time(seconds(one.expected))
            words = f"takes about {time_of_it}" if levels else f"takes {time_of_it} at least"
            result.excluded.setdefault(name, f"not simulated: it {words}")
        elif work + one.work > most and not final:
            result.unknown += 1
            if one.estimate and finalists:
                unproven.append(one)
            elif one.estimate and levels:
                result.enter(Candidate(name, settings, one.expected, estimate=True, rough=True))
            else:
                result.excluded.setdefault(name, "too many messages to simulate when planning")
        else:
            work += one.work * (work + one.work <= most)
            result.simulated += 1
            limit = None if runner_up or fastest is None else fastest * (RIVAL if levels else 1)
            time = played.completion(one.schedule, limit)
            if time is None:
                result.excluded[name] = SLOWER
            else:
                result.enter(Candidate(name, settings, time))
                fastest = time if fastest is None else min(time, fastest)
    proofs = 0
    for one in unproven:
        name, settings = one.algorithm.name, one.settings
        proofs += one.work
        if fastest is not None and (one.expected >= fastest or proofs > MAX_FOR_PROOFS):
            result.excluded.setdefault(name, "too many messages to simulate when planning")
            continue
        result.unknown, result.simulated = result.unknown - 1, result.simulated + 1
        time = played.completion(one.schedule, fastest)
        if time is not None:
            result.enter(Candidate(name, settings, time))
            fastest = time
        else:
            result.excluded[name] = SLOWER
    if not result.best and tries:
        one = min(tries, key=lambda one: one.work)
        if one.work > MAX_SIMULATED:
            for one in tries:  # as if messages met nowhere
                if one.estimate:
                    name, settings = one.algorithm.name, one.settings
                    result.enter(Candidate(name, settings, one.expected, estimate=True, rough=True))
            return
        result.unknown, result.simulated = result.unknown - 1, 1
        time = played.completion(one.schedule, None)
        assert time is not None, "there is no limit"
        result.enter(Candidate(one.algorithm.name, one.settings, time))


def _tries(
    choices: Sequence[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    excluded: dict[str, str],
) -> Iterable[_Try]:
    """The schedules of the candidates, and what is known of their times.

    With many ranks on levels, candidates without segments that cannot win are not even built.
    """
    every, uncut = problem.lower_bounds(machine)
    levels = machine if isinstance(machine, Levels) else None
    many = levels is not None and problem.ranks > MAX_INSIDE
    known: Fraction | None = None
    numbered = sorted(enumerate(choices), key=lambda one: many and not one[1][0].segmented)
    for number, (algorithm, settings) in numbered:
        bound = every if algorithm.segmented else max(every, uncut)
        if many and known is not None and bound.time > known * HOPELESS:
            words = f"not simulated: it takes {formatting.time(bound.time_s)} at least"
            excluded.setdefault(algorithm.name, words)
            continue
        with _within_limits(algorithm, excluded):
            schedule = algorithm.solve(problem, settings)
            lists = sampled(schedule)
            work = messages(lists, problem.ranks)
            if topology is not None:  # of trees the median is that of an inner rank
                few = sorted(map(len, lists.values()))[(len(lists) - 1) // 2]
                work = max(few, 2) * problem.ranks // 2
            if topology is not None or not at_once(schedule, machine):
                work *= ONE_BY_ONE
            if levels is None:
                least = max(bound.time, load(lists, machine))
                alone = least_time(algorithm, schedule, machine, settings, Fraction(0))
                least = max(least, alone)
                yield _Try(least, number, algorithm, settings, schedule, work, alone > 0)
                continue
            work = max(work, problem.ranks * len(problem.sources) // ONE_BY_ONE)
            time, estimate = about(algorithm, schedule, lists, levels, settings)
            least = max(bound.time, time, Fraction(0) if estimate else load(lists, machine))
            yield _Try(least, number, algorithm, settings, schedule, work, estimate)
            if estimate:
                known = least if known is None else min(known, least)


def _refine(
    choices: Iterable[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    result: Tried,
) -> None:
    """Simulate the candidates that may be the best and have only an upper bound of their time.

    What is left is still an estimate, and says so.
    """
    tries = []
    for number, (algorithm, settings) in enumerate(choices):
        if algorithm.name in result.best and algorithm.estimated(problem, settings):
            schedule = algorithm.solve(problem, settings)
            lists = sampled(schedule)
            least, of_it = load(lists, machine), messages(lists, problem.ranks)
            tries.append(_Try(least, number, algorithm, settings, schedule, of_it))
    work = 0
    for least, _, algorithm, settings, schedule, of_it, _ in sorted(tries, key=lambda one: one[:2]):
        known = (c.predicted for c in result.best.values() if not c.estimate)
        work += of_it
        if work > MAX_REFINED or least >= min(known, default=least + 1):
            return
        if result.best[algorithm.name].settings == settings:
            del result.best[algorithm.name]
        time = ideal_completion(schedule, machine)
        result.enter(Candidate(algorithm.name, settings, time))
