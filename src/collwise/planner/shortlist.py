"""Which candidates of a plan are worth a race: the fastest by the model, and a few safer ones.

In the model a message costs no more than its t0, and is never late.  On real hosts many short
messages take longer than that, and where a rank waits for many others in turn, one late rank delays
all.  So a race also has candidates with somewhat fewer messages, with far fewer, and one in which
every rank depends on one other only.
"""

from dataclasses import replace
from fractions import Fraction

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.exact import exact
from collwise.model.levels import Levels
from collwise.model.limits import SEARCHED_RANKS
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan_for, why_not
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.operations import Recv, Send, size_of
from collwise.schedule.problem import Problem

LOOKED_AT = 16
"""Ranks, at most, whose lists are looked at to see on whom they depend."""
OVERHEADS = (Fraction(1, 16), Fraction(1, 4))
"""How much longer than by its law a message may take, in t0."""
MOST_SLOWER = 3
"""A candidate predicted so many times slower than the best is not raced."""


def worth_a_race(
    estimate: Plan, algorithm: str | None = None
) -> tuple[Plan, tuple[Candidate, ...]]:
    """Up to four candidates, the best one first; and the plan, with those of fewer messages added.

    algorithm: the only one to be raced.
    """
    picked = [estimate.choice]
    fewer = [_with_fewer_messages(estimate, algorithm, share) for share in OVERHEADS]
    added = {one.label: one for one in fewer if one is not None}
    if added:
        others = (one for one in estimate.candidates if one.label not in added)
        ordered = sorted((*others, *added.values()), key=lambda candidate: candidate.predicted)
        estimate = replace(estimate, candidates=tuple(ordered))
    safer = [*added.values(), _least_dependent(estimate)]
    for number, more in enumerate((*safer, *shortlist(estimate))):
        same = more is None or any(
            one.label == more.label or _same_schedule(estimate.problem, one, more) for one in picked
        )
        if more is not None and not same and (number < len(safer) or len(picked) < 3):
            picked.append(more)
    return estimate, tuple(picked)


def shortlist(estimate: Plan, most: int = 3, within: float = 1.5) -> tuple[Candidate, ...]:
    """At most `most` candidates, predicted within a factor of the best.

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


def _with_fewer_messages(
    estimate: Plan, algorithm: str | None, share: Fraction
) -> Candidate | None:
    """The best if every message took a share of t0 longer, with the t0 of the choice's messages."""
    problem, machine, best = estimate.problem, estimate.machine, estimate.choice
    nbytes = _message_of_root(estimate)
    if not nbytes or nbytes >= problem.nbytes:
        return None
    if isinstance(machine, Levels):
        gap = machine.gap_outside(nbytes)
    else:
        gap = machine.message(nbytes).gap
    slower = machine.with_overhead(gap * share)
    net, why = estimate.topology, estimate.reason
    fewer = plan_for(problem, slower, algorithm, topology=net, reason=why).choice
    time = predicted(ALGORITHMS[fewer.name], problem, machine, fewer.settings, net)
    if time > MOST_SLOWER * best.predicted or fewer.label == best.label:
        return None
    fewer = replace(fewer, predicted=time)
    return replace(fewer, verdict=f"{why_not(fewer, best)}: the best if messages cost more")


def _message_of_root(estimate: Plan) -> int:
    """The bytes of the first message that the root sends or receives; 0 if too many ranks do."""
    problem = estimate.problem
    if problem.ranks > SEARCHED_RANKS:
        return 0
    operations = estimate.schedule.rank(problem.root)
    return next((size_of(op) for op in operations if isinstance(op, Send | Recv)), 0)


def _least_dependent(estimate: Plan) -> Candidate | None:
    """The best in which each rank receives from one other only, or sends to one only.

    None if all have that, or none that is worth a race.
    """
    problem = estimate.problem
    if problem.ranks > SEARCHED_RANKS or _depends_on_one(estimate.choice, problem):
        return None
    limit = MOST_SLOWER * estimate.choice.predicted
    close = (one for one in estimate.candidates if one.predicted <= limit)
    return next((one for one in close if _depends_on_one(one, problem)), None)


def _depends_on_one(candidate: Candidate, problem: Problem) -> bool:
    """Whether each of some ranks receives from one other at most, or each sends to one at most."""
    schedule = candidate.schedule(problem)
    step = -(-problem.ranks // LOOKED_AT)
    lists = [schedule.rank(rank) for rank in range(0, problem.ranks, step)]
    sources = [{op.peer for op in operations if isinstance(op, Recv)} for operations in lists]
    targets = [{op.peer for op in operations if isinstance(op, Send)} for operations in lists]
    return max(map(len, sources)) <= 1 or max(map(len, targets)) <= 1


def _same_schedule(problem: Problem, one: Candidate, other: Candidate) -> bool:
    """Whether two candidates send the same messages in the same order (small ones only)."""
    if one.predicted != other.predicted or problem.ranks > SEARCHED_RANKS:
        return False
    first, second = (candidate.schedule(problem) for candidate in (one, other))
    return first.columns().rows() == second.columns().rows()
