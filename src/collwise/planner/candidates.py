"""Trying what applies: by lower bounds, so that what cannot be the fastest need not be simulated.

Where a formula gives the time, all candidates are scored.  Elsewhere each has a lower bound: its
time if messages met nowhere.  Candidates are simulated in the order of their bounds.  One whose
bound is above the best time so far is skipped, unless little has been simulated yet, since the
runners-up are worth knowing.  A simulation ends when it is later than the best time so far.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import Algorithm
from collwise.algorithms.s_to_p.spreading import MAX_RECEIVED
from collwise.model.exact import seconds
from collwise.model.levels import Levels, OneLevel
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.plans import Candidate
from collwise.planner.relaxed import about, least_time, load
from collwise.schedule.problem import Problem, satisfies
from collwise.schedule.program import Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.system import formatting
from collwise.timing import ideal
from collwise.timing.trace import completion, fastest_timing

Score: TypeAlias = Callable[
    [Algorithm, Problem, Machine, Mapping[str, Any], Topology | None], Fraction
]
"""The exact time in seconds that an algorithm will take."""

MAX_SIMULATED = 1 << 16
"""Messages that are simulated when planning for a machine with levels, in all candidates; those of
collectives that combine count eight times, those of s-to-p broadcasts twice."""
MAX_WITHOUT_LEVELS = 1 << 22
"""The same on other machines, counted likewise."""
MAX_FOR_RUNNERS_UP = 1 << 14
"""The same, counted likewise, as long as candidates are simulated that cannot be the fastest."""
MAX_REFINED = 1 << 15
"""Messages that are simulated for the times of candidates of which only an estimate is known."""
MAX_LOOKS = 256
"""Ranks up to which the levels are also looked at as if no ports were shared."""

MAX_PLENTY = 64
"""Ranks up to which so much is simulated that it does not matter what comes first."""
MAX_INSIDE = 1024
"""Ranks up to which algorithms that know no levels are set for the inner ones, too."""


@dataclass
class Tried:
    """What came of the candidates: the best of each algorithm, and why others are not there.

    simulated, of: how many schedules, if they had to be, out of how many.
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
    least: Fraction
    number: int
    algorithm: Algorithm
    settings: Mapping[str, Any]
    schedule: Schedule
    about: Fraction = Fraction(0)
    """Roughly its time, where bounds are rough: with levels and many ranks."""


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
    return ideal(schedule, machine, topology).completion


def keeps_order(algorithm: Algorithm, problem: Problem) -> bool:
    """Whether an algorithm combines in the order that a problem asks for, if it does at all."""
    return not problem.kind.combines or satisfies(algorithm.order(problem), problem.order)


def tried(
    among: Iterable[Algorithm],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    reason: str,
    score: Score,
) -> Tried:
    """The candidates of some algorithms.   reason: why the problem's order is asked for."""
    result = Tried()
    choices = list(_choices(among, problem, machine, reason, result.excluded))
    formulas = topology is None and machine.independent_ports
    if not formulas and problem.ranks * len(problem.sources) > MAX_RECEIVED:
        too_many = "too many messages to simulate when planning"
        result.excluded.update((algorithm.name, too_many) for algorithm, _ in choices)
        return result
    if formulas or score is not predicted:
        for algorithm, settings in choices:
            time = score(algorithm, problem, machine, settings, topology)
            estimate = formulas and algorithm.estimated(problem, settings)
            result.enter(Candidate(algorithm.name, settings, time, estimate=estimate))
        if score is predicted:
            _refine(choices, problem, machine, result)
    else:
        _simulate(choices, problem, machine, topology, result)
    result.excluded = {n: why for n, why in result.excluded.items() if n not in result.best}
    return result


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
        if not keeps_order(algorithm, problem):
            excluded[algorithm.name] = f"not legal, for it combines in another order: {reason}"
            continue
        looks, seen = (flats, plain) if flats and not algorithm.levels else ([machine], problem)
        every = [settings for look in looks for settings in algorithm.choices(seen, look)]
        if not every:
            excluded[algorithm.name] = (
                "too many messages to simulate when planning"
                if problem.ranks * len(problem.sources) > MAX_RECEIVED and not flats
                else "does not apply here, or segments cannot help"
            )
        for settings in {str(settings): settings for settings in every}.values():
            yield algorithm, settings


def _simulate(
    choices: Sequence[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    result: Tried,
) -> None:
    """Simulate in the order of the lower bounds, as long as there is something to find."""
    tries = []
    every, uncut = problem.lower_bounds(machine)
    for number, (algorithm, settings) in enumerate(choices):
        schedule = algorithm.solve(problem, settings)
        bound = every if algorithm.segmented else max(every, uncut)
        least = least_time(algorithm, schedule, machine, settings, bound.time)
        roughly = Fraction(0)
        if isinstance(machine, Levels) and problem.ranks > MAX_PLENTY:
            roughly = about(algorithm, schedule, machine, settings)
        tries.append(_Try(least, number, algorithm, settings, schedule, roughly))
    result.of = len(tries)
    fastest: Fraction | None = None
    levels = isinstance(machine, Levels)
    twice = levels and problem.kind.has_sources
    work, weight = 0, 8 if problem.kind.combines else 2 if twice else 1
    # Columns that are made of the lists of all ranks take longer than the times.
    by_rank = problem.ranks if levels and problem.ranks > MAX_PLENTY else 0
    most = MAX_SIMULATED if levels else MAX_WITHOUT_LEVELS
    long: list[tuple[int, int]] = []

    def needed(one: _Try) -> int:
        program = one.schedule.program
        at_once = levels and isinstance(program, UpTree) and program.is_whole()
        lists = 16 * by_rank if type(program).columns is Program.columns else 0
        return lists + (1 if at_once else weight) * messages(one.schedule)

    # On levels bounds are rough: one long schedule must not leave nothing for the others.
    tries.sort(
        key=lambda row: (
            levels and needed(row) > (4 if row.about else 1) * most,
            row.about,
            *row[:2],
        )
    )

    def simulate(one: _Try, limit: Fraction | None) -> Fraction | None:
        result.simulated += 1
        time = completion(one.schedule, machine, topology, limit)
        if time is None:
            words = "its simulation ended when it was slower than the choice"
            result.excluded[one.algorithm.name] = words
            return fastest
        result.enter(Candidate(one.algorithm.name, one.settings, time))
        return time if fastest is None else min(time, fastest)

    for row, one in enumerate(tries):
        name, cost = one.algorithm.name, needed(one)
        runner_up = work + cost <= MAX_FOR_RUNNERS_UP
        if fastest is not None and one.least > fastest and not runner_up:
            at_least = formatting.time(seconds(one.least))
            result.excluded.setdefault(name, f"not simulated: it takes {at_least} at least")
        elif work + cost > most * (1 if work else 4):
            result.excluded.setdefault(name, "too many messages to simulate when planning")
            long.append((cost, row))
        else:
            work += cost
            fastest = simulate(one, None if runner_up else fastest)
    result.unknown = len(long)
    if long and not result.best:
        result.unknown -= 1
        simulate(tries[min(long)[1]], None)


def _refine(
    choices: Iterable[tuple[Algorithm, Mapping[str, Any]]],
    problem: Problem,
    machine: Machine,
    result: Tried,
) -> None:
    """Simulate those candidates whose times are known from above only, and which may be the best.

    What is left is still an estimate, and says so.
    """
    tries = []
    for number, (algorithm, settings) in enumerate(choices):
        if algorithm.estimated(problem, settings):
            schedule = algorithm.solve(problem, settings)
            tries.append(_Try(load(schedule, machine), number, algorithm, settings, schedule))
    work = 0
    for least, _, algorithm, settings, schedule, _ in sorted(tries, key=lambda row: row[:2]):
        known = (c.predicted for c in result.best.values() if not c.estimate)
        work += messages(schedule)
        if work > MAX_REFINED or least >= min(known, default=least + 1):
            return
        if result.best[algorithm.name].settings == settings:
            del result.best[algorithm.name]
        time = ideal(schedule, machine).completion
        result.enter(Candidate(algorithm.name, settings, time))


def messages(schedule: Schedule) -> int:
    """About how many messages a schedule has, by the lists of a few ranks."""
    p = schedule.ranks
    lengths = sorted(len(schedule.program.operations(rank)) for rank in (p // 3, p // 2, p - 1))
    return lengths[1] * p // 2
