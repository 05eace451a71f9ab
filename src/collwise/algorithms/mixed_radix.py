"""Hybrids of any radix: groups of several sizes, which exchange whole or divided vectors.

Van de Geijn's hybrids halve in some directions and exchange whole vectors in the others
[vandeGeijn1991 §3.4].  Where λ is above 1, larger groups do it in fewer rounds: k ranks take
(k − 2 + λ)·t0 for a stage, of whole vectors or, there and back, of a k-th of them.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import inf, lcm, prod
from typing import Any, TypeAlias

from collwise.algorithms.registry import Parameter, Settings
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.schedule.exchange import Stage
from collwise.schedule.problem import Problem

LARGEST_RADIX = 32
"""Larger groups would send too many messages one after another."""
MAX_SCATTERED = 1 << 18
"""Ranks up to which a reduce-scatter is tried whose messages name the block of every rank."""
MAX_CORES = 8
"""Numbers of ranks that are tried as a product, the others handing their vectors over first."""
_Best: TypeAlias = tuple[int | float, tuple[Stage, ...]]
_WRITTEN = re.compile(r"[0-9]{1,9}d?( [0-9]{1,9}d?)*")


def _read(value: Any) -> str:
    written = isinstance(value, str) and _WRITTEN.fullmatch(value)
    if written and min(stage.radix for stage in read(value)) > 1:
        return str(value)
    raise InvalidArgument("the parameter stages", f"it is {value!r}", f"give {STAGES.meaning}")


def read(text: str) -> tuple[Stage, ...]:
    """Stages as they are written, such as "20d 5"."""
    return tuple(Stage(int(word.rstrip("d")), word.endswith("d")) for word in text.split())


STAGES = Parameter(
    _read,
    "for each stage the ranks in a group, at least 2, and a d if vectors are divided: 20d 5",
)


def stages_of(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """The stages that are set; of a reduce-scatter all divide.

    Raises InvalidArgument unless they take in at least half of all ranks.
    """
    scatters = _scatters(problem)
    stages = tuple(s._replace(divided=s.divided or scatters) for s in read(settings["stages"]))
    core = prod(stage.radix for stage in stages)
    if problem.ranks > 1 and not core <= problem.ranks <= 2 * core:
        seen = f"the stages {settings['stages']} are for {core} to {2 * core}"
        raise InvalidArgument(f"{problem.collective} on {problem.ranks} ranks", seen, "give others")
    return stages


def _scatters(problem: Problem) -> bool:
    return problem.kind.output == "own block"


def best_stages(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best stages, by dynamic programming over the machine's costs.

    As in Theorem 1 of [vandeGeijn1991], vectors that do not divide count as the next that do.
    """
    items, never = problem.nbytes // problem.itemsize, (inf, ())
    scatters = _scatters(problem)
    if problem.ranks < 2 or not items or (scatters and problem.ranks > MAX_SCATTERED):
        return []
    reached = {(core, items) for core in _cores(problem.ranks)}
    todo = list(reached)
    for ranks, whole in todo:  # grows while it is walked
        lengths = ((k, part) for k in radices(ranks) for part in (-(-whole // k), whole))
        news = {(ranks // k, part) for k, part in lengths if not scatters or part < whole} - reached
        reached |= news
        todo += news
    costs = _in_ticks(problem, machine, {length for _, length in reached})

    @cache
    def best(ranks: int, items: int) -> _Best:
        if ranks == 1:
            return 0, ()
        tried: list[_Best] = []
        for radix in radices(ranks):
            part = -(-items // radix)
            for divided, length in ((True, part), (False, items))[: 2 - scatters]:
                gap, latency, combine = costs[length]
                time = (radix - 2) * gap + latency
                time = time * (1 + divided * (not scatters)) + (radix - 1) * combine
                rest, stages = best(ranks // radix, length)
                tried.append((time + rest, (Stage(radix, divided), *stages)))
        return min(tried, key=lambda row: row[0], default=never)

    _, latency, combine = costs[items]
    tried = [
        (best(core, items)[0] + (core < problem.ranks) * (2 * latency + combine), -core)
        for core in _cores(problem.ranks)
    ]
    stages = best(-min(tried)[1], items)[1]
    return [{"stages": " ".join(map(str, stages))}]


def _in_ticks(
    problem: Problem, machine: Machine, lengths: Iterable[int]
) -> dict[int, tuple[int, int, int]]:
    """By elements, a message's gap and latency and what combining takes, in a common unit."""
    costs = {}
    for items in lengths:
        nbytes = items * problem.itemsize
        costs[items] = (*machine.message(nbytes), machine.combine(nbytes) or Fraction(0))
    grid = lcm(*(x.denominator for row in costs.values() for x in row))
    return {
        items: (int(gap * grid), int(latency * grid), int(combine * grid))
        for items, (gap, latency, combine) in costs.items()
    }


@cache
def radices(ranks: int) -> tuple[int, ...]:
    """The divisors that may be a group's size."""
    return tuple(k for k in range(2, min(ranks, LARGEST_RADIX) + 1) if ranks % k == 0)


@cache
def _cores(ranks: int) -> tuple[int, ...]:
    """All ranks, and the largest numbers of at least half of them that have small factors only."""
    smooth = [
        n
        for n in (2**a * 3**b * 5**c for a in range(32) for b in range(20) for c in range(14))
        if ranks <= 2 * n <= 2 * ranks
    ]
    return tuple({ranks, *sorted(smooth)[-MAX_CORES:]})
