"""Picks the candidates of a plan to race: the fastest by the model, and some safer ones.

In the model a message occupies a port for t0 and is never late.  On real hosts many short messages
take longer, and a rank that waits for many other ranks is delayed by the latest one.  So a race
also includes candidates with somewhat fewer messages and with far fewer, and a candidate in which
every rank receives from only one rank, or sends to only one.  Where ranks share cores, all of their
messages wait for the same processors, so the candidate with the fewest messages is raced, too.
"""

from dataclasses import replace
from fractions import Fraction

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.exact import exact
from collwise.model.levels import Levels
from collwise.model.limits import SEARCHED_RANKS
from collwise.model.machine import Machine
from collwise.planner.candidates import predicted
from collwise.planner.choose import plan_for, why_not
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.operations import Block, Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

LOOKED_AT = 16
"""The largest number of ranks whose operations are examined to see on whom they depend."""
COUNTED = 64
"""The largest number of ranks whose messages are counted."""
OVERHEADS = (Fraction(1, 16), Fraction(1, 4))
"""Extra times per message, in t0: for each, the candidate that would be the best is raced, too."""
MOST_SLOWER = 3
"""A candidate is not raced if its predicted time exceeds this multiple of the best one's."""


def worth_a_race(
    estimate: Plan, algorithm: str | None = None, *, share_cores: bool = False
) -> tuple[Plan, tuple[Candidate, ...]]:
    """The plan with candidates of fewer messages added, and the candidates to race, choice first.

    algorithm: the only algorithm from which candidates may be added; None for all.
    share_cores: whether there are more ranks than cores.
    """
    picked = [estimate.choice]
    fewer = [_with_fewer_messages(estimate, algorithm, more) for more in _overheads(estimate)]
    if share_cores:
        fewer.append(_fewest_messages(estimate))
    added = {candidate.label: candidate for candidate in fewer if candidate is not None}
    if added:
        others = (c for c in estimate.candidates if c.label not in added)
        ordered = sorted((*others, *added.values()), key=lambda candidate: candidate.predicted)
        estimate = replace(estimate, candidates=tuple(ordered))
    safer = [*added.values(), _least_dependent(estimate)]
    for number, more in enumerate((*safer, *shortlist(estimate))):
        same = more is None or any(
            c.label == more.label or _same_schedule(estimate.problem, c, more) for c in picked
        )
        if more is not None and not same and (number < len(safer) or len(picked) < 3):
            picked.append(more)
    return estimate, tuple(picked)


def shortlist(estimate: Plan, most: int = 3, within: float = 1.5) -> tuple[Candidate, ...]:
    """The fastest candidates of a plan that have different schedules, the fastest first.

    most: the largest number of candidates to return.   within: the largest predicted time of a
    candidate, as a multiple of the best candidate's.
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
    estimate: Plan, algorithm: str | None, overhead_s: Fraction
) -> Candidate | None:
    """The candidate that would be the best if each message took `overhead_s` seconds longer.

    algorithm: the only one to consider; None for all.
    None if it is the choice, or if it is predicted to take over MOST_SLOWER times as long.
    """
    problem, machine, best = estimate.problem, estimate.machine, estimate.choice
    net, why = estimate.topology, estimate.reason
    slower = machine.with_overhead(overhead_s)
    fewer = plan_for(problem, slower, algorithm, topology=net, reason=why).choice
    time = predicted(ALGORITHMS[fewer.name], problem, machine, fewer.settings, net)
    if time > MOST_SLOWER * best.predicted or fewer.label == best.label:
        return None
    fewer = replace(fewer, predicted=time)
    return replace(fewer, verdict=f"{why_not(fewer, best)}: the best if messages cost more")


def _fewest_messages(estimate: Plan) -> Candidate | None:
    """The candidate with the fewest messages of all ranks together, the fastest such one.

    Of candidates that cut no vectors.  None if there are none, or more than COUNTED ranks.
    """
    problem, limit = estimate.problem, MOST_SLOWER * estimate.choice.predicted
    close = [
        candidate
        for candidate in estimate.candidates
        if candidate.predicted <= limit and not ALGORITHMS[candidate.name].segmented
    ]
    if problem.ranks > COUNTED or not close:
        return None
    return min(close, key=lambda one: sum(map(len, _messages(one.schedule(problem)))))


def _overheads(estimate: Plan) -> list[Fraction]:
    """OVERHEADS in seconds: shares of t0 of the root's first message in the chosen schedule.

    Empty if that is the whole vector or does not exist, or if there are too many ranks.
    """
    nbytes = _first_message_of_root(estimate)
    if not 0 < nbytes < estimate.problem.nbytes:
        return []
    return [_gap(estimate.machine, nbytes) * share for share in OVERHEADS]


def _gap(machine: Machine, nbytes: int) -> Fraction:
    """The time t0 of a message; with levels, between ranks of different groups."""
    if isinstance(machine, Levels):
        return machine.gap_outside(nbytes)
    return machine.message(nbytes).gap


def _first_message_of_root(estimate: Plan) -> int:
    """Bytes of the first message that the root sends or receives in the chosen schedule.

    0 if there is none, or if there are too many ranks to examine the schedule.
    """
    problem = estimate.problem
    if problem.ranks > SEARCHED_RANKS:
        return 0
    operations = estimate.schedule.rank(problem.root)
    return next((size_of(op) for op in operations if isinstance(op, Send | Recv)), 0)


def _least_dependent(estimate: Plan) -> Candidate | None:
    """The fastest candidate in which all ranks receive from one rank at most, or all send to one.

    Up to LOOKED_AT ranks are examined.  None if the choice is such a candidate, if all of them are
    too slow for a race, or if there are too many ranks to examine the schedules.
    """
    problem = estimate.problem
    if problem.ranks > SEARCHED_RANKS or _depends_on_one(estimate.choice, problem):
        return None
    limit = MOST_SLOWER * estimate.choice.predicted
    close = (c for c in estimate.candidates if c.predicted <= limit)
    return next((c for c in close if _depends_on_one(c, problem)), None)


def _depends_on_one(candidate: Candidate, problem: Problem) -> bool:
    """Whether all examined ranks receive from at most one rank, or all send to at most one rank."""
    schedule = candidate.schedule(problem)
    step = -(-problem.ranks // LOOKED_AT)
    lists = [schedule.rank(rank) for rank in range(0, problem.ranks, step)]
    sources = [{op.peer for op in operations if isinstance(op, Recv)} for operations in lists]
    targets = [{op.peer for op in operations if isinstance(op, Send)} for operations in lists]
    return max(map(len, sources)) <= 1 or max(map(len, targets)) <= 1


def _same_schedule(problem: Problem, one: Candidate, other: Candidate) -> bool:
    """Whether two candidates have equal schedules; False if too many ranks to compare them."""
    if one.predicted != other.predicted or problem.ranks > SEARCHED_RANKS:
        return False
    first, second = (_messages(candidate.schedule(problem)) for candidate in (one, other))
    return first == second


def _messages(schedule: Schedule) -> list[list[tuple[int, bool, int, tuple[Block, ...]]]]:
    """For each rank, its messages: position in its list, whether sent, peer and blocks."""
    return [
        [
            (step, isinstance(op, Send), op.peer, op.blocks)
            for step, op in enumerate(operations)
            if isinstance(op, Send | Recv)
        ]
        for operations in schedule.lists
    ]
