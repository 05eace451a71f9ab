"""Looks up in race results which algorithm is to run a call, and why.

A race decides only calls on as many ranks as it had, of message sizes up to REACH times larger or
smaller.  Two races with the same winner also decide all sizes between their sizes.  The MPI library
runs all other calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any, NamedTuple, TypeVar

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidArgument, UnknownName
from collwise.measure.race import LIBRARY, by_library, own_algorithm
from collwise.measure.statistics import Interval
from collwise.model.exact import exact
from collwise.planner.choose import plan_for
from collwise.planner.plans import Candidate, Plan
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.problem import Problem, satisfies
from collwise.system import formatting

Winner = TypeVar("Winner")

REACH = 4
"""Largest ratio of message sizes, and of source counts, at which a single race decides a call."""


LEAST_GAIN_S = 100e-6
"""The least gain in seconds with which a race of other forms decides non-blocking calls.

Where the MPI library lets nobody take part in its progress, a planned non-blocking call takes some
60 µs that the library's does not.
"""


class Verdict(NamedTuple):
    """The algorithm that is to run a call, and why.

    algorithm: the full name, or LIBRARY for the MPI library's own.   because: the reason, as a
    clause.   race: the race that decided; None if no race did: then LIBRARY runs the
    call, unless an algorithm was chosen by hand.
    """

    algorithm: str
    because: str
    race: RaceResult | None = None

    def __str__(self) -> str:
        who = "the library's own" if self.algorithm == LIBRARY else self.algorithm
        return f"{who}: {self.because}"


def known_races(profile: Profile, ranks: int, ranks_per_node: str = "") -> tuple[RaceResult, ...]:
    """A profile's races, except for those on `ranks` ranks in another placement on nodes.

    Races of algorithms that are no longer registered are left out, too.   ranks_per_node: the
    placement, such as "2x8"; "" for the placement of the profile's measurements on `ranks` ranks,
    or on the nearest number.
    """
    races = profile.races_at(ranks, ranks_per_node)
    return tuple(race for race in races if is_known(race.algorithm))


def is_known(algorithm: str) -> bool:
    """Whether a name is a registered algorithm's, or that of an MPI library's algorithm."""
    return algorithm in ALGORITHMS or own_algorithm(algorithm) is not None


def settled(estimate: Plan, decided: Verdict) -> Plan:
    """The plan `estimate` with the algorithm that won a race as its choice.

    The plan is unchanged if no race decided, or if the winner does not apply to the problem.
    """
    if decided.race is None:
        return estimate
    because = f"chosen: {decided.because}"
    least = replace(estimate.choice, verdict="the least predicted time, but a race decided")
    candidates = (least, *estimate.candidates[1:])
    if by_library(decided.algorithm):
        default = decided.algorithm == LIBRARY
        median = decided.race.library_s if default else decided.race.ours_s
        settings = {} if default else decided.race.settings
        choice = Candidate(decided.algorithm, settings, exact(median), because, median)
        return replace(estimate, choice=choice, candidates=(choice, *candidates))
    if all(c.name != decided.algorithm for c in candidates):  # the plan did not try it
        with suppress(InvalidArgument, UnknownName):
            asked = estimate.problem, estimate.machine, decided.algorithm
            named = plan_for(*asked, topology=estimate.topology, reason=estimate.reason)
            candidates = (*candidates, named.choice)
    candidates = tuple(
        replace(c, verdict=because) if c.name == decided.algorithm else c for c in candidates
    )
    for choice in candidates:
        if choice.name == decided.algorithm:
            return replace(estimate, choice=choice, candidates=candidates)
    return estimate  # the race's algorithm does not apply at this size


def race_result(
    problem: Problem,
    choice: Candidate,
    ours: Interval,
    library: Interval,
    gain: Interval,
    **more: Any,
) -> RaceResult:
    """The record, for a profile, of a race of `choice` against the MPI library's own collective.

    choice: the best candidate.   ours: its median in seconds, with the interval.   library: that of
    the library's collective.   gain: the library's time over ours, with the interval.
    more: other fields of `RaceResult`.
    """
    return RaceResult(
        collective=problem.collective,
        ranks=problem.ranks,
        nbytes=problem.nbytes,
        root=problem.root,
        sources=len(problem.sources),
        algorithm=choice.name,
        settings={name: str(value) for name, value in choice.settings.items()},
        ours_s=ours.middle,
        library_s=library.middle,
        speedup_low=gain.low,
        speedup_high=gain.high,
        **more,
    )


def verdict(
    races: Iterable[RaceResult], problem: Problem, form: Form, instead: Form = "blocking"
) -> Verdict:
    """Decide by races which algorithm runs calls of one form for a problem.

    The distance of a race is the ratio of the message sizes times the ratio of the numbers of
    sources.  Among races whose two ratios are at most REACH, the nearest decides; in a tie the
    race of the smaller size decides, then the race with fewer sources.  If no race is so near, two
    races with the problem's number of sources decide, those of the next smaller and the next larger
    size, if both have the same winner.  Otherwise the MPI library runs the call.
    If all ranks are sources, only races with all ranks as sources count; otherwise only races with
    fewer sources count, because libraries run other algorithms then.  All ranks agree.
    Where no race decides non-blocking calls, the winner of races of the form `instead` serves, if
    it is a schedule of ours that gained at least LEAST_GAIN_S; otherwise the library's default.
    """
    races = tuple(races)
    decided = _verdict(races, problem, form)
    if form != "nonblocking" or decided.race is not None:
        return decided
    other = _verdict(races, problem, instead)
    if other.race is None:
        return decided
    because = f"no race of {form} calls decides"
    if own_algorithm(other.algorithm) is not None:
        return Verdict(LIBRARY, f"{because}, and {other.algorithm} won one of {instead} calls")
    if other.algorithm != LIBRARY and other.race.library_s - other.race.ours_s < LEAST_GAIN_S:
        saves = f"which won one of {instead} calls, saves less than {formatting.time(LEAST_GAIN_S)}"
        return Verdict(LIBRARY, f"{because}, and {other.algorithm}, {saves}")
    because = f"{because}; of {instead} ones {other.because}"
    race = None if other.algorithm == LIBRARY else other.race  # which timed other calls
    return Verdict(other.algorithm, because, race)


def _verdict(races: Sequence[RaceResult], problem: Problem, form: Form) -> Verdict:
    """What races of one form of calls decide, by the rules of `verdict`."""
    alike = [race for race in races if _same_kind(race, problem, form)]
    near = [race for race in alike if max(_ratios(race, problem)) <= REACH]
    if near:
        nearest = min(near, key=lambda race: _distance(race, problem))
        return _legal_verdict(nearest, _why_won([nearest]), problem)
    both = _neighbours(alike, problem)
    if len({(race.decision, race.algorithm) for race in both}) == 1:
        nearest = min(both, key=lambda race: _distance(race, problem))
        return _legal_verdict(nearest, _why_won(both), problem)
    return Verdict(LIBRARY, _why_undecided(races, alike, problem, form))


def sizes_decided(winners: Mapping[int, Winner]) -> list[tuple[int, int, Winner]]:
    """The ranges of sizes that races decide, by the rules of `verdict`, if only their sizes differ.

    winners: maps the bytes of a race to its winner; 0 bytes count as 1.
    Returns the first size, the last size and the winner of each range.  Ranges ascend, and
    neighbours have different winners or a gap between them.
    """
    ranges: list[tuple[int, int, Winner]] = []
    by_size = {max(nbytes, 1): winners[nbytes] for nbytes in sorted(winners, reverse=True)}
    raced = sorted(by_size)
    for place, size in enumerate(raced):
        winner = by_size[size]
        first = 0 if size <= REACH else -(-size // REACH)
        if place and ranges[-1][2] == winner:
            first = ranges.pop()[0]
        elif place:
            first = max(first, ranges[-1][1] + 1)
        last = size * REACH
        if place + 1 < len(raced) and (after := raced[place + 1]) <= size * REACH**2:
            last = isqrt(size * after)
        ranges.append((first, last, winner))
    return ranges


def nearest_of_kind(races: Iterable[RaceResult], problem: Problem, form: Form) -> RaceResult | None:
    """The race nearest in size and number of sources, however far; None if no race is alike.

    A race is alike if it has the problem's collective and number of ranks, and raced calls of the
    same form.  Both or neither must have all ranks as sources.
    """
    alike = [race for race in races if _same_kind(race, problem, form)]
    return min(alike, key=lambda race: _distance(race, problem), default=None)


def _same_kind(race: RaceResult, problem: Problem, form: Form) -> bool:
    wanted = problem.collective, form, problem.ranks
    same_sources = (race.sources == race.ranks) == (len(problem.sources) == problem.ranks)
    return (race.collective, race.form, race.ranks) == wanted and same_sources


def _ratios(race: RaceResult, problem: Problem) -> tuple[Fraction, Fraction]:
    """The exact ratios of a race's and a problem's message sizes, and of their source counts.

    Both are the larger number divided by the smaller one, and 0 counts as 1.
    """
    pairs = (race.nbytes, problem.nbytes), (race.sources, len(problem.sources))
    ordered = (sorted((max(raced, 1), max(called, 1))) for raced, called in pairs)
    first, second = (Fraction(high, low) for low, high in ordered)
    return first, second


def _distance(race: RaceResult, problem: Problem) -> tuple[Fraction, int, int]:
    sizes, sources = _ratios(race, problem)
    return sizes * sources, race.nbytes, race.sources


def _neighbours(alike: Iterable[RaceResult], problem: Problem) -> list[RaceResult]:
    """The races of the next smaller and next larger size, with the problem's number of sources.

    Empty if one of the two is missing.
    """
    races = [race for race in alike if race.sources == len(problem.sources)]
    smaller = [race for race in races if race.nbytes <= problem.nbytes]
    larger = [race for race in races if race.nbytes >= problem.nbytes]
    if not smaller or not larger:
        return []
    return [max(smaller, key=lambda race: race.nbytes), min(larger, key=lambda race: race.nbytes)]


def _why_won(races: Sequence[RaceResult]) -> str:
    sizes = " and of ".join(formatting.count(race.nbytes, "byte") for race in races)
    where = f"of {sizes} on {formatting.count(races[0].ranks, 'rank')}"
    learned = f"when a program learned while it ran, from its own calls {where}"
    raced = f"in the race{'s' * (len(races) > 1)} {where}"
    running = all(race.learned for race in races)
    if races[0].decision == LIBRARY:
        return f"nothing was clearly faster {learned if running else raced}"
    gains = " and ".join(
        f"{race.library_s / race.ours_s:.2f}" if race.ours_s else "∞" for race in races
    )
    won = f"it was faster {learned}" if running else f"it won {raced[3:]}"
    return f"{won}, {gains} times as fast as the library's own"


def _legal_verdict(race: RaceResult, because: str, problem: Problem) -> Verdict:
    """The verdict that the winner of a race runs the call, for the reason `because`.

    The MPI library's own collective runs it if the winner combines in an order that is not legal.
    """
    name = LIBRARY if race.decision == LIBRARY else race.algorithm
    if name != LIBRARY and not keeps_order(name, problem):
        because = f"{name} combines in an order that is not legal here, though {because}"
        name = LIBRARY
    return Verdict(name, because, race)


def keeps_order(algorithm: str, problem: Problem) -> bool:
    """Whether an algorithm combines in an order that is legal for a problem.

    The library's default is assumed to keep every order but "fixed".  The library's other
    algorithms are assumed to keep "any" and "same".
    """
    if by_library(algorithm):
        return satisfies("rank" if algorithm == LIBRARY else "same", problem.order)
    return not problem.kind.combines or ALGORITHMS[algorithm].keeps_order(problem)


def _why_undecided(
    races: Sequence[RaceResult], alike: Sequence[RaceResult], problem: Problem, form: Form
) -> str:
    """The reason why no race decides calls for the problem, as a clause.

    alike: the races in `races` with the problem's collective, number of ranks and form.
    """
    calls = f"{form} calls of {problem.collective}"
    if alike:
        sizes = ", ".join(str(n) for n in sorted({race.nbytes for race in alike}))
        return (
            f"no race of {calls} on {formatting.count(problem.ranks, 'rank')} is near enough to"
            f" {formatting.count(problem.nbytes, 'byte')} (raced: {sizes} bytes; a race counts for"
            f" up to {REACH} times as many or as few, and between two sizes with the same winner)"
        )
    others = {r.ranks for r in races if (r.collective, r.form) == (problem.collective, form)}
    elsewhere = (
        f" (but on {', '.join(map(str, sorted(others - {problem.ranks})))})" if others else ""
    )
    return f"{calls} were not raced on {formatting.count(problem.ranks, 'rank')}{elsewhere}"
