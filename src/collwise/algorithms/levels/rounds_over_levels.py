"""Broadcasts and reduces of pieces in rounds that span several levels.

The rounds span levels at which every rank has its own port and only latencies differ, such as hosts
of two sites.  Many pairs of ranks pass pieces between groups at once, while the root sends later
pieces.  The latency of a message, in rounds, depends on its level.  At inner levels, whose ranks
share a port, other algorithms run.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import lengths, pieces_of
from collwise.algorithms.levels.composition import (
    best_at_level,
    in_all_teams,
    parts_parameter,
    register_multilevel,
)
from collwise.algorithms.reductions import in_no_order
from collwise.algorithms.registry import Parameter, Settings
from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.levels import Levels, OneLevel
from collwise.model.limits import (
    FREE_RANKS,
    ROUNDS_PLAYED,
    ROUNDS_UNDER_WAY,
    TABLED_ROUNDS,
)
from collwise.model.machine import Cost
from collwise.model.postal import broadcast_time
from collwise.schedule.combinators import On, Task, Then
from collwise.schedule.free_rounds import FreeRounds
from collwise.schedule.hierarchy import Hierarchy, Teams, hierarchy_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank
from collwise.schedule.rounds import DownRounds, UpRounds, highest

EVEN = 4
"""Plans try no rounds over a level whose t0 is below the outermost's divided by EVEN."""
APART, TRIED = 16, 12
"""APART: each number of pieces considered exceeds the one before by about 1/APART, at least by 1.
TRIED: of all settings, plans try up to this many, those with the least rough times."""
_MEANING = "for each level how long a message travels, the innermost first, such as '4 45'"


def _read(value: Any) -> str:
    words = value.split() if isinstance(value, str) else []
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise InvalidArgument("the parameter latencies", f"it is {value!r}", f"give {_MEANING}")
    return " ".join(str(int(word)) for word in words)


LATENCIES = Parameter(_read, _MEANING)


def latencies_of(settings: Settings, depth: int) -> tuple[int, ...]:
    """The latencies in rounds, by level, that the setting `latencies` gives, the outermost last.

    If the setting has more than `depth` latencies, the last `depth` are returned.
    Raises BeyondLimits if a latency exceeds ROUNDS_UNDER_WAY.
    """
    latencies = tuple(map(int, settings["latencies"].split()))[-depth:]
    if (longest := max(latencies)) > ROUNDS_UNDER_WAY:
        asked, seen = "rounds over levels", f"messages travel for {longest:,} rounds"
        raise BeyondLimits(asked, seen, f"give {ROUNDS_UNDER_WAY:,} at most, or longer pieces")
    return latencies


def members(teams: Hierarchy, levels: int) -> tuple[int, ...]:
    """The ranks that take part in rounds over the `levels` outermost levels, ascending."""
    return tuple(sorted(teams.teams[-levels].members.tolist()))


def rounds(problem: Problem, latencies: Sequence[int], segment: int) -> FreeRounds:
    """The rounds in which the leaders pass on pieces of `segment` bytes.

    latencies: the latency, in rounds, at each level that the rounds span, the outermost last.
    Raises BeyondLimits if there are too many pieces, or if a latency is too long.
    """
    teams, pieces = hierarchy_of(problem), pieces_of(problem, segment)
    team = members(teams, len(latencies))
    if len(team) * len(pieces) > ROUNDS_PLAYED:
        asked = f"rounds over the levels of {len(team):,} ranks"
        seen = f"{len(pieces):,} pieces would be played on all of them"
        raise BeyondLimits(asked, seen, "choose longer pieces, or another algorithm")
    inner = range(teams.depth - len(latencies) + 1, teams.depth)
    groups = tuple(tuple(teams.placement.group(level, rank) for rank in team) for level in inner)
    return FreeRounds(len(team), len(pieces), min(latencies), groups, tuple(latencies))


def rounds_under_way(latency: Fraction, gap: Fraction) -> int:
    """The latency of a message in rounds: latency / gap, rounded, and at least 1.

    The quotient is rounded up, but down if it exceeds an integer by at most 1/8.
    """
    return max(ceil(latency / gap - Fraction(1, 8)), 1)


def _costs(problem: Problem, machine: Levels, segment: int) -> list[Cost]:
    """The gap and latency of a message of `segment` bytes at each level, the innermost first.

    In a reduce, gap and latency include the time to combine the message.
    """
    combining = machine.combine(segment) if problem.kind.combines else None
    levels = range(1, hierarchy_of(problem).depth + 1)
    return [OneLevel(machine, level, combining or Fraction(0)).message(segment) for level in levels]


def choices(problem: Problem, machine: Levels) -> list[Settings]:
    """The settings to try: the best few piece lengths, with the best algorithms at inner levels."""
    teams = hierarchy_of(problem)
    tried = list[tuple[Fraction, int, int, str]]()
    for segment in lengths(problem, APART):
        costs = _costs(problem, machine, segment)
        levels = 1
        while levels < len(costs) and costs[-levels - 1].gap * EVEN >= costs[-1].gap:
            group = teams.depth - levels
            if machine.port(group, segment) * teams.largest(group) > costs[-1].gap:
                break  # the ranks of a group would wait for their port
            levels += 1
        gap = max(cost.gap for cost in costs[-levels:])
        latencies = [rounds_under_way(cost.latency, gap) for cost in costs[-levels:]]
        count = -(-problem.nbytes // segment)
        ranks = len(members(teams, levels))
        if levels == 1 or max(latencies) > ROUNDS_UNDER_WAY:
            continue  # for rounds over one level there is `multilevel`
        if ranks > FREE_RANKS or count * ranks > TABLED_ROUNDS or min(latencies) > highest(ranks):
            continue
        outer = range(teams.depth - levels + 1, teams.depth + 1)
        later = sum(
            broadcast_time(teams.largest(level), latency)
            for level, latency in zip(outer, latencies, strict=True)
        )
        written = " ".join(map(str, latencies))
        tried.append(((count + later) * gap, segment, levels, written))

    def inside(levels: int) -> str:
        inner = range(1, teams.depth - levels + 1)
        asked = problem, machine, problem.collective
        parts = [best_at_level(*asked, level, None, 1)[0] for level in inner]
        return " | ".join(parts) or "binomial"

    return [
        {"latencies": latencies, "segment": segment, "inside": inside(levels)}
        for _, segment, levels, latencies in sorted(tried)[:TRIED]
    ]


def _build(problem: Problem, settings: Settings) -> Program:
    if problem.kind.combines and problem.ranks == 1:
        return SingleRank(problem)
    teams, segment = hierarchy_of(problem), settings["segment"]
    latencies = latencies_of(settings, teams.depth)
    leaders = np.array(members(teams, len(latencies)))
    program = UpRounds if problem.kind.combines else DownRounds
    task = Task(program(rounds(problem, latencies, segment), pieces_of(problem, segment)))
    across = On(Teams(leaders, np.zeros(problem.ranks, np.int64)), lambda _: task)
    collective, inner = problem.collective, teams.depth - len(latencies)
    inside = in_all_teams(problem, settings["inside"], collective, inner)
    phases = (*inside, across) if problem.kind.combines else (across, *reversed(inside))
    return Then(phases)


def _register(collective: str, summary: str, time: str, **more: Any) -> None:
    register_multilevel(
        f"{collective}/multilevel_rounds",
        summary,
        time,
        _build,
        choices,
        source=("BarNoyKipnis1994", "Karonis2002"),
        parameters={
            "latencies": LATENCIES,
            "segment": SEGMENT,
            "inside": parts_parameter("inside", collective, "binomial | flat"),
        },
        segmented=True,
        **more,
    )


_register(
    "broadcast",
    "pieces in rounds over all levels; pieces cross between groups early and side by side",
    "about k rounds for k pieces, and the way of the last piece; simulated",
)
_register(
    "reduce",
    "the rounds of broadcast/multilevel_rounds backwards",
    "about k rounds for k pieces, and the way of the first piece; simulated",
    order=in_no_order,
)
