"""Chooses the algorithm with the least predicted time among all that apply.

`plan` uses the machine model alone.  `decided` uses the medians that a race of the best few
candidates measured.  Callers run the race, since the planner runs nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from collwise.algorithms.registry import ALGORITHMS, Algorithm, algorithms_for, find
from collwise.errors import InvalidArgument, NothingApplies
from collwise.measure.race import LIBRARY, by_library
from collwise.model.exact import exact
from collwise.model.levels import Levels
from collwise.model.machine import Machine, checked_machine
from collwise.model.topology import Topology
from collwise.model.topology.base import checked_topology
from collwise.planner.by_hand import find_planned
from collwise.planner.candidates import Score, Tried, predicted, rank, tried
from collwise.planner.operator_order import NOTHING_COMBINED, legal
from collwise.planner.plans import Candidate, Plan
from collwise.schedule.collectives import check_about, find_collective
from collwise.schedule.problem import Order, Problem, placed
from collwise.system import formatting
from collwise.system.integers import MOST_RANKS, checked_integer


def unpredicted(
    algorithm: Algorithm,
    problem: Problem,
    machine: Machine,
    settings: Mapping[str, Any],
    topology: Topology | None = None,
) -> Fraction:
    """A score that is always 0, for when the caller names the algorithm and needs no time."""
    return Fraction(0)


CHOSEN = "chosen: the fastest measured, clearly ahead of the library"
"""The verdict on the candidate that won a race."""


def plan(
    collective: str,
    *,
    ranks: int,
    nbytes: int | Sequence[int],
    machine: Machine,
    root: int = 0,
    op: str | None = None,
    dtype: Any = None,
    order: Order | None = None,
    sources: Sequence[int] | None = None,
    shape: tuple[int, int] | None = None,
    topology: Topology | None = None,
    algorithm: str | None = None,
    score: Score = predicted,
) -> Plan:
    """Choose the fastest schedule of a collective on a machine.  Nothing is executed.

    ranks: number of ranks, >= 1.   nbytes: bytes of the message or of each rank's vector, >= 0; for
    an allgatherv, bytes of every source's contribution, or a sequence, one per source.
    machine: a `Machine`, for instance `profile.machine`.   root: 0 … ranks − 1.
    op, dtype: for collectives that combine, the operator ("max", "noncommutative", …; None: "sum")
    and the element type (None: "float64"); they determine the order that is legal.
    order: "fixed", "rank", "same" or "any", instead of the order that op and dtype need; an
    operator that does not commute needs "rank" at least.   None: what op and dtype need.
    sources: the ranks that contribute to an allgatherv.   shape: for an allgatherv, the (rows,
    columns) of a mesh that the ranks fill row by row; None: the topology's shape, or nearly a
    square.
    topology: the network on whose links messages contend; None: no contention on links.
    algorithm: the only one to consider ("broadcast/chain" or "chain"), with its best settings;
    None: all.   score: predicts the time of a candidate; the default simulates its schedule.
    Raises InvalidArgument for a size, root, source or shape out of range, for arguments that do not
    apply to the collective, or for an algorithm that is not legal; UnknownName for an unknown
    collective, operator or algorithm (with similar names); NothingApplies if no algorithm is tried
    at this size.
    """
    asked = {"ranks": ranks, "nbytes": nbytes, "root": root, "sources": sources}
    problem, reason = problem_for(
        collective, op=op, dtype=dtype, order=order, topology=topology, shape=shape, **asked
    )
    return plan_for(problem, machine, algorithm, topology=topology, reason=reason, score=score)


def problem_for(
    collective: str,
    *,
    op: str | None = None,
    dtype: Any = None,
    order: Order | None = None,
    topology: Topology | None = None,
    shape: tuple[int, int] | None = None,
    **arguments: Any,
) -> tuple[Problem, str]:
    """The problem that the arguments describe, and why the problem needs its order of combining.

    arguments: further arguments of `Problem.of`.   All arguments have the meaning, and raise the
    errors, that they have in `plan`.
    """
    kind = find_collective(collective)
    checked_integer(arguments["ranks"], f"{kind.name} over `ranks`", "ranks", most=MOST_RANKS)
    combining = {"op": op, "dtype": dtype, "order": order}
    check_about([kind.name], [name for name, value in combining.items() if value is not None])
    if topology is not None:
        checked_topology(topology, arguments["ranks"], f"{kind.name} on a topology")
        if shape is None and kind.has_sources:
            shape = topology.shape
    allowed = legal(kind.name, **combining) if kind.combines else NOTHING_COMBINED
    problem = Problem.of(
        kind.name, **arguments, shape=shape, itemsize=allowed.itemsize, order=allowed.order
    )
    return problem, allowed.reason


def plan_for(
    problem: Problem,
    machine: Machine,
    algorithm: str | None = None,
    *,
    topology: Topology | None = None,
    reason: str = "",
    score: Score = predicted,
) -> Plan:
    """Choose the fastest schedule of a `Problem` on a machine.

    reason: why the problem needs its order of combining.   algorithm: the only one to
    consider; None: all.   topology: None: no contention.   Raises the same errors as `plan`.
    """
    checked_machine(machine, f"a plan of {problem.collective} on a machine")
    if topology is not None:
        checked_topology(topology, problem.ranks, f"{problem.collective} on a topology")
    if isinstance(machine, Levels):
        if topology is not None:
            asked = f"{problem.collective} on a {topology.describe()}"
            seen = f"the law of the machine knows no links ({machine.kind})"
            raise InvalidArgument(asked, seen, "leave the topology out, or the levels")
        problem = placed(problem, machine)
    if algorithm is not None:
        algorithm = find_planned(algorithm, problem.collective).name
    # The cache would keep a user's own score, and what it refers to, in memory.
    choose = _plan if score in (predicted, unpredicted) else _plan.__wrapped__
    return choose(problem, machine, topology, algorithm, reason, score)


@lru_cache(maxsize=4096)
def _plan(
    problem: Problem,
    machine: Machine,
    topology: Topology | None,
    algorithm: str | None,
    reason: str,
    score: Score,
) -> Plan:
    collective, ranks, nbytes = problem.collective, problem.ranks, problem.nbytes
    among = algorithms_for(collective, levels=problem.placement is not None)
    if algorithm is not None:
        among = (find(algorithm, collective),)
    result = tried(among, problem, machine, topology, reason, score)
    candidates, excluded = result.best.values(), result.excluded
    if not candidates:
        name, why = next(iter(excluded.items()))
        asked, remedy = f"{name} for {nbytes} bytes on {ranks} ranks", "choose another algorithm"
        if len(excluded) > 1:
            asked, why = f"a plan for {problem}", "none of its algorithms is tried at this size"
            remedy = "plan for fewer ranks or sources, or simulate one algorithm by name"
        legal_ones = any(candidate.keeps_order(problem) for candidate in among)
        raise (NothingApplies if legal_ones else InvalidArgument)(asked, why, remedy)
    ranked = sorted(candidates, key=rank)
    why = "the least predicted time" if algorithm is None else "it was named"
    choice = replace(ranked[0], verdict=f"chosen: {why}")
    return Plan(
        problem,
        machine,
        topology,
        choice,
        (choice, *(replace(c, verdict=why_not(c, choice)) for c in ranked[1:])),
        excluded,
        reason,
        _repositioning_remarks(ranked),
        _simulation_summary(result),
        machine.oddities(nbytes) if isinstance(machine, Levels) else (),
    )


def _simulation_summary(result: Tried) -> str:
    """How many schedules were simulated, in words; empty if there were no schedules to simulate."""
    if not result.of:
        return ""
    rest = "; no other can be faster" * (result.simulated < result.of)
    if result.unknown:
        rest = f"; {result.unknown} that may be faster have too many messages"
    return f"{result.simulated} of {formatting.count(result.of, 'schedule')} timed{rest}"


def _repositioning_remarks(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Sentences on whether moving the sources' data to better ranks first saves predicted time.

    There is one for each candidate that moves data and then runs another candidate's algorithm.
    """
    by_name = {candidate.name: candidate for candidate in candidates}
    remarks = []
    for name, moved in by_name.items():
        plain = by_name.get(ALGORITHMS[name].repositions)
        if plain is not None:
            verb = "pays" if moved.predicted < plain.predicted else "does not pay"
            ratio = float(moved.predicted / plain.predicted) if plain.predicted else 1.0
            short, than = ALGORITHMS[name].short_name, ALGORITHMS[plain.name].short_name
            remarks.append(f"{short} {verb}: {ratio:.2f} of the time of {than}")
    return tuple(remarks)


def why_not(candidate: Candidate, choice: Candidate) -> str:
    """Why a candidate is not the choice, in words: how much slower it is predicted to be."""
    if candidate.predicted == choice.predicted and candidate.estimate == choice.estimate:
        return "equally fast; the choice is the simpler one"
    if choice.predicted == 0:
        return "slower"
    slower = float((candidate.predicted - choice.predicted) / choice.predicted)
    words = f"{slower:.0%} slower" if slower > 0.005 else "less than 1% slower"
    return f"{words}, by an estimate" if candidate.estimate or choice.estimate else words


def decided(
    estimate: Plan, medians_s: Mapping[str, float], winner: str, library: str = LIBRARY
) -> Plan:
    """The plan after a race: its choice is the winner, its verdicts say how candidates did.

    estimate: the plan before the race.   medians_s: by label, the measured median in seconds.
    winner: the label of a candidate or of an algorithm of the MPI library, or `library`.   library:
    the label of the MPI library's default.   Raises UnknownName for any other winner.
    """
    measured = tuple(
        replace(c, measured_s=medians_s.get(c.label), verdict=_race_verdict(c, medians_s, winner))
        for c in estimate.candidates
    )
    if winner == library or by_library(winner):
        median, default = medians_s[winner], winner == library
        reason = "chosen: nothing beat it clearly" if default else CHOSEN
        name = LIBRARY if default else winner
        choice = Candidate(name, {}, exact(median), reason, median)
        return replace(estimate, choice=choice, candidates=(choice, *measured))
    raced = replace(estimate, candidates=measured)
    return replace(raced, choice=raced.candidate(winner))


def _race_verdict(candidate: Candidate, medians_s: Mapping[str, float], winner: str) -> str:
    if candidate.label == winner:
        return CHOSEN
    if candidate.label not in medians_s:
        return f"not raced; {candidate.verdict}"
    if medians_s[candidate.label] < medians_s[winner]:
        return "raced; not clearly ahead of the library"
    return "raced; not the fastest"
