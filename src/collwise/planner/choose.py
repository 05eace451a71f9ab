"""Choosing: every algorithm that applies, the time predicted for it, the fastest.

Two efforts, as in FFTW.  *Estimate* goes by the machine alone.  *Measure* takes the best few of an
estimate and medians that somebody timed for them; the planner itself times nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from collwise.algorithms.registry import ALGORITHMS, Algorithm, algorithms_for, find
from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY
from collwise.model.bounds import bounds
from collwise.model.exact import exact
from collwise.model.machine import Machine
from collwise.planner.legal import legal
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.data import COMBINING, Order, Problem, keeps
from collwise.schedule.timing import ideal

Score: TypeAlias = Callable[[Algorithm, Problem, Machine, Mapping[str, Any]], Fraction]
"""The exact time in seconds that an algorithm will take."""

LARGEST_COMPARED = 4096
"""Schedules of more ranks than this are not compared, message by message."""


def predicted(
    algorithm: Algorithm, problem: Problem, machine: Machine, settings: Mapping[str, Any]
) -> Fraction:
    """The default score: the closed form where it is exact, else the schedule's ideal time."""
    p = problem
    if machine.independent_ports:
        return algorithm.predict(machine, p.ranks, p.nbytes, p.root, item=p.item, **settings)
    schedule = algorithm.schedule(p.ranks, p.nbytes, p.root, item=p.item, order=p.order, **settings)
    return ideal(schedule, machine).completion


def plan(
    collective: str,
    *,
    ranks: int,
    nbytes: int,
    machine: Machine,
    root: int = 0,
    op: str = "sum",
    dtype: Any = "float64",
    order: Order | None = None,
    algorithm: str | None = None,
    score: Score = predicted,
) -> Plan:
    """Choose the fastest schedule of a collective on a machine.  Cheap, printable, inert.

    ranks: number of ranks, >= 1.   nbytes: bytes of the message, or of everybody's vector, >= 0.
    machine: a `Machine`, for instance `profile.machine`.   root: 0 … ranks − 1.
    op, dtype: where vectors are combined, the operator ("sum", "max", "noncommutative", …) and the
    type of the elements, which say what is legal.   order: to combine in no weaker order ("rank").
    algorithm: take this one ("broadcast/chain" or "chain"), with its best settings.
    score: predicts the time; the default is exact.
    Raises InvalidArgument for a size or root out of range, or an algorithm that is not legal,
    UnknownName for an unknown collective, operator or algorithm (with the near names).
    """
    algorithms_for(collective)
    if collective not in COMBINING:
        return plan_for(Problem(collective, ranks, nbytes, root), machine, algorithm, score=score)
    allowed = legal(collective, op, dtype, order)
    problem = Problem(collective, ranks, nbytes, root, allowed.item, allowed.order)
    return plan_for(problem, machine, algorithm, reason=allowed.reason, score=score)


def plan_for(
    problem: Problem,
    machine: Machine,
    algorithm: str | None = None,
    *,
    reason: str = "",
    score: Score = predicted,
) -> Plan:
    """Choose for a problem as it stands.  reason: why its order is asked for.

    Otherwise as `plan`.
    """
    if not isinstance(machine, Machine):
        raise InvalidArgument(
            f"a plan of {problem.collective} on a machine",
            f"the machine is a {type(machine).__name__}",
            "give a collwise.Machine, such as profile.machine",
        )
    return _plan(problem, machine, algorithm, reason, score)


@lru_cache(maxsize=4096)
def _plan(
    problem: Problem, machine: Machine, algorithm: str | None, reason: str, score: Score
) -> Plan:
    collective, ranks, nbytes = problem.collective, problem.ranks, problem.nbytes
    among = algorithms_for(collective)
    if algorithm is not None:
        among = (find(algorithm, collective),)
    candidates, excluded = _candidates(among, problem, machine, reason, score)
    if not candidates:
        name, why = next(iter(excluded.items()))
        raise InvalidArgument(
            f"{name} for {nbytes} bytes on {ranks} ranks", why, "choose another algorithm"
        )
    ranked = sorted(candidates, key=_rank)
    choice = replace(ranked[0], verdict="chosen: the least predicted time")
    every, unsegmented = bounds(collective, machine, ranks, nbytes)
    return Plan(
        problem,
        machine,
        choice,
        (choice, *(replace(c, verdict=_why_not(c, choice)) for c in ranked[1:])),
        every,
        unsegmented,
        excluded,
        reason,
    )


def _candidates(
    among: Iterable[Algorithm], problem: Problem, machine: Machine, reason: str, score: Score
) -> tuple[list[Candidate], dict[str, str]]:
    candidates, excluded = [], {}
    for algorithm in among:
        if problem.collective in COMBINING and not keeps(algorithm.order(problem), problem.order):
            excluded[algorithm.name] = f"not legal, for it combines in another order: {reason}"
            continue
        choices = list(algorithm.choices(problem, machine))
        if not choices:
            excluded[algorithm.name] = "does not apply at this size, or segments cannot help"
            continue
        scored = [
            Candidate(algorithm.name, choice, score(algorithm, problem, machine, choice))
            for choice in choices
        ]
        candidates.append(min(scored, key=lambda c: c.predicted))
    return candidates, excluded


def _rank(candidate: Candidate) -> tuple[Fraction, bool, int]:
    """Fastest first; of equally fast ones the simplest: no segments, few parameters."""
    algorithm = ALGORITHMS[candidate.name]
    return candidate.predicted, algorithm.segmented, len(algorithm.parameters)


def _why_not(candidate: Candidate, choice: Candidate) -> str:
    if candidate.predicted == choice.predicted:
        return "equally fast; the choice is the simpler one"
    if choice.predicted == 0:
        return "slower"
    slower = float((candidate.predicted - choice.predicted) / choice.predicted)
    return f"{slower:.0%} slower" if slower > 0.005 else "less than 1% slower"


def shortlist(estimate: Plan, most: int = 3, within: float = 1.5) -> tuple[Candidate, ...]:
    """The candidates worth a race: at most `most`, predicted within a factor of the best.

    Of candidates that come to the same schedule, only the first.
    """
    limit = estimate.candidates[0].predicted * exact(within)
    picked: list[Candidate] = []
    for candidate in estimate.candidates:
        if candidate.predicted > limit or len(picked) == most:
            break
        if not any(_same_schedule(estimate.problem, candidate, other) for other in picked):
            picked.append(candidate)
    return tuple(picked)


def _same_schedule(problem: Problem, one: Candidate, other: Candidate) -> bool:
    """Whether two candidates send the same messages in the same order (small ones only)."""
    if one.predicted != other.predicted or problem.ranks > LARGEST_COMPARED:
        return False
    first, second = (candidate.schedule(problem) for candidate in (one, other))
    return first.columns().rows() == second.columns().rows()


def decided(
    estimate: Plan, medians_s: Mapping[str, float], winner: str, library: str = LIBRARY
) -> Plan:
    """The plan after a race: `winner` is a candidate's label, or that of the library's own.

    medians_s: measured medians in seconds by label.   library: the label of the library's own.
    Raises KeyError if the winner is neither.
    """
    measured = tuple(
        replace(c, measured_s=medians_s.get(c.label), verdict=_raced(c, medians_s, winner))
        for c in estimate.candidates
    )
    if winner == library:
        own = medians_s[library]
        reason = "chosen: nothing beat it clearly"
        choice = Candidate(LIBRARY, {}, exact(own), reason, own)
        return replace(estimate, choice=choice, candidates=(choice, *measured))
    raced = replace(estimate, candidates=measured)
    return replace(raced, choice=raced.candidate(winner))


def _raced(candidate: Candidate, medians_s: Mapping[str, float], winner: str) -> str:
    if candidate.label == winner:
        return "chosen: the fastest measured, clearly ahead of the library"
    if candidate.label not in medians_s:
        return f"not raced; {candidate.verdict}"
    if medians_s[candidate.label] < medians_s[winner]:
        return "raced; not clearly ahead of the library"
    return "raced; not the fastest"
