"""The algorithms that exchange vectors in groups of ranks, stage after stage.

Van de Geijn's versions [vandeGeijn1991 §3, §4, §5, §6] exchange in pairs: whole vectors in every
hypercube dimension (Version 2, recursive doubling), halves (Version 3), or halves in some
dimensions, given by a strategy (Version 4).  Larger groups need fewer stages, which pays where λ is
above 1.  A stage in groups of k ranks takes (k − 2 + λ)·t0 for whole vectors.  A stage that divides
vectors takes 2(k − 2 + λ)·t0, but with the smaller t0 of a k-th of the vector.  With k = p every
rank sends to all others.  A search finds the best group sizes (`best_stages`).  In a reduce-scatter
all stages divide vectors, in half that time: there is nothing to gather.  Neighbouring ranks
exchange first, so operators need not commute.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from math import inf, lcm, prod
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.reductions import fixed_if_asked, register_combining
from collwise.algorithms.registry import Parameter, Settings, integer
from collwise.errors import InvalidArgument
from collwise.model import hybrid
from collwise.model.limits import GATHERED_RANKS, LARGEST_RADIX, SCATTERED_RANKS
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program

RADICES = (3, 4, 5, 6, 8, 12, 16, 32)
"""Group sizes that plans try for recursive multiplying."""
MAX_CORES = 8
"""Plans try at most this many n < p: n ranks exchange once the others have sent them vectors."""
_Best: TypeAlias = tuple[int | float, tuple[Stage, ...]]
_WRITTEN = re.compile(r"[0-9]{1,9}d?( [0-9]{1,9}d?)*")


def cube_dimension(ranks: int) -> int:
    """⌊log2 ranks⌋: the dimension of the largest hypercube with no more than `ranks` ranks."""
    return ranks.bit_length() - 1


def whole_vectors(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """One stage for each dimension: pairs exchange whole vectors [vandeGeijn1991 §3.2]."""
    return (Stage(2, divided=False),) * cube_dimension(problem.ranks)


def halved(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """One stage for each dimension: pairs exchange halves of vectors [vandeGeijn1991 §3.3]."""
    return (Stage(2, divided=True),) * cube_dimension(problem.ranks)


def by_strategy(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """A stage for each entry of the setting `strategy`, the last entry first [vandeGeijn1991]."""
    strategy = hybrid.checked_strategy(settings["strategy"], cube_dimension(problem.ranks))
    return tuple(Stage(2, bool(divided)) for divided in reversed(strategy))


def best_strategy(problem: Problem, machine: Machine) -> hybrid.Strategy:
    """The strategy that takes the least time on a machine, by dynamic programming."""
    itemsize = problem.itemsize
    return hybrid.best_for(
        lambda items: machine.message(items * itemsize).latency,
        lambda items: machine.combine(items * itemsize) or 0,
        problem.nbytes // itemsize,
        cube_dimension(problem.ranks),
        to_root=problem.kind.output == "root",
    )


def _parsed_strategy(value: Any) -> hybrid.Strategy:
    if isinstance(value, str):  # profiles keep strategies as text
        value = [int(c) if c in "01" else c for c in value if c not in "(), "]
    return hybrid.checked_strategy(value)


STRATEGY = Parameter(
    _parsed_strategy,
    "S_0, …, S_(d−1), 1 where vectors are halved, for the largest 2^d ranks, such as (0, 1)",
)


def _checked_stages(value: Any) -> str:
    written = isinstance(value, str) and _WRITTEN.fullmatch(value)
    if written and min(stage.radix for stage in read(value)) > 1:
        return str(value)
    raise InvalidArgument("the parameter stages", f"it is {value!r}", f"give {STAGES.meaning}")


def read(text: str) -> tuple[Stage, ...]:
    """Parse stages: "20d 5" means groups of 20 ranks, which divide vectors, then groups of 5."""
    return tuple(Stage(int(word.rstrip("d")), word.endswith("d")) for word in text.split())


STAGES = Parameter(
    _checked_stages,
    "for each stage the ranks in a group, at least 2, and a d if vectors are divided: 20d 5",
)


def stages_of(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """The stages of the setting `stages`; in a reduce-scatter all of them divide vectors.

    Raises InvalidArgument unless p is 1 or the product of the group sizes is in [p/2, p].  Raises
    it also if the problem asks for the order "fixed" and the stages do not keep this order.
    """
    scatters = _scatters(problem)
    stages = tuple(s._replace(divided=s.divided or scatters) for s in read(settings["stages"]))
    core = prod(stage.radix for stage in stages)
    if problem.ranks > 1 and not core <= problem.ranks <= 2 * core:
        seen = f"the stages {settings['stages']} are for {core} to {2 * core}"
        raise InvalidArgument(f"{problem.collective} on {problem.ranks} ranks", seen, "give others")
    inner = core if core < problem.ranks else prod(stage.radix for stage in stages[:-1])
    if problem.order == "fixed" and inner.bit_count() > 1:
        raise InvalidArgument(
            f"{problem.collective} on {problem.ranks} ranks in the order 'fixed'",
            f"groups in the stages {settings['stages']} combine with other brackets",
            "give groups of 2, 4, 8, …; the last may have any size if no rank is left over",
        )
    return stages


def _scatters(problem: Problem) -> bool:
    return problem.kind.output == "own block"


def best_stages(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `stages` with the least time on a machine, by dynamic programming.

    As in Theorem 1 of [vandeGeijn1991], a vector that does not divide evenly is timed as the next
    longer vector that does.  Empty for one rank, for empty vectors, and for a reduce-scatter on
    too many ranks.
    """
    items, never = problem.nbytes // problem.itemsize, (inf, ())
    scatters, fixed = _scatters(problem), problem.order == "fixed"
    if problem.ranks < 2 or not items or (scatters and problem.ranks > SCATTERED_RANKS):
        return []
    cores = _cores(problem.ranks, fixed=fixed)
    reached = {(core, items) for core in cores}
    todo = list(reached)
    for ranks, whole in todo:  # the loop appends to the list
        groups = radices(ranks, fixed=fixed)
        lengths = ((k, part) for k in groups for part in (-(-whole // k), whole))
        further = {(ranks // k, part) for k, part in lengths if not scatters or part < whole}
        further -= reached
        reached |= further
        todo += further
    costs = _integer_costs(problem, machine, {length for _, length in reached})

    @cache
    def best(ranks: int, items: int) -> _Best:
        if ranks == 1:
            return 0, ()
        tried: list[_Best] = []
        for radix in radices(ranks, fixed=fixed):
            part = -(-items // radix)
            for divided, length in ((True, part), (False, items))[: 2 - scatters]:
                gap, receipt, latency, combine = costs[length]
                time = (radix - 2) * receipt + latency
                if divided:  # parts are scattered, then gathered
                    time = (radix - 2) * max(gap, receipt) + latency + time * (not scatters)
                time += (radix - 1) * combine
                rest, stages = best(ranks // radix, length)
                tried.append((time + rest, (Stage(radix, divided), *stages)))
        return min(tried, key=lambda row: row[0], default=never)

    *_, latency, combine = costs[items]
    tried = [
        (best(core, items)[0] + (core < problem.ranks) * (2 * latency + combine), -core)
        for core in cores
    ]
    stages = best(-min(tried)[1], items)[1]
    return [{"stages": " ".join(map(str, stages))}]


def _integer_costs(
    problem: Problem, machine: Machine, lengths: Iterable[int]
) -> dict[int, tuple[int, ...]]:
    """By length in elements: gap, time between receipts, latency, combining time, in one unit."""
    costs = {}
    for items in lengths:
        nbytes = items * problem.itemsize
        gap, latency = machine.message(nbytes)
        receipt = machine.receipt(nbytes) if machine.shares_memory else gap
        costs[items] = gap, receipt, latency, machine.combine(nbytes) or Fraction(0)
    grid = lcm(*(x.denominator for row in costs.values() for x in row))
    return {items: tuple(int(x * grid) for x in row) for items, row in costs.items()}


@cache
def radices(ranks: int, *, fixed: bool = False) -> tuple[int, ...]:
    """The possible group sizes: the divisors of `ranks` from 2 to LARGEST_RADIX, ascending.

    fixed: whether to keep the order "fixed", for which sizes are powers of two, or `ranks` itself.
    """
    divisors = (k for k in range(2, min(ranks, LARGEST_RADIX) + 1) if ranks % k == 0)
    return tuple(k for k in divisors if not fixed or k == ranks or k.bit_count() == 1)


@cache
def _cores(ranks: int, *, fixed: bool) -> tuple[int, ...]:
    """Numbers n of ranks that may exchange while the other p − n wait, for p = `ranks`.

    The numbers are p, and the MAX_CORES largest n in [p/2, p] without prime factors above 5.
    fixed: whether to keep the order "fixed": then, besides p, only the largest power of two.
    """
    if fixed:
        return tuple({1 << cube_dimension(ranks), ranks})
    smooth = [
        n
        for n in (2**a * 3**b * 5**c for a in range(32) for b in range(20) for c in range(14))
        if ranks <= 2 * n <= 2 * ranks
    ]
    return tuple({ranks, *sorted(smooth)[-MAX_CORES:]})


def multiplied(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """Stages of whole vectors in groups of the size that the setting `radix` gives.

    The last stage may have smaller groups.  The product of the group sizes is in [p/2, p].
    """
    left, radices = problem.ranks, []
    while left > 1:
        radices.append(min(settings["radix"], left))
        left //= settings["radix"]
    return tuple(Stage(radix, divided=False) for radix in radices)


def best_radix(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `radix` with the least time, assuming that all ranks start a stage together.

    Empty if no radix in RADICES is below the number of ranks.
    """
    gap, latency = machine.message(problem.nbytes)
    combine = machine.combine(problem.nbytes) or 0

    def time(settings: Settings) -> Fraction:
        made = multiplied(problem, settings)
        times = ((k - 2) * gap + latency + (k - 1) * combine for k, _ in made)
        others = prod(stage.radix for stage in made) < problem.ranks
        return sum(times, Fraction(0)) + others * (2 * latency + combine)

    tried = [{"radix": radix} for radix in RADICES if radix < problem.ranks]
    return [min(tried, key=time)] if tried else []


class _Member(NamedTuple):
    """An entry of _FAMILY: an algorithm that exchanges vectors in groups.

    summary, time, source: fields of `Algorithm`.   facts: other fields of `Algorithm`, by name.
    stages: returns the stages for a problem and settings.
    """

    summary: str
    time: str
    source: tuple[str, ...]
    stages: Callable[[Problem, Settings], tuple[Stage, ...]]
    facts: dict[str, Any]


_MIXED: dict[str, Any] = {"choices": best_stages, "parameters": {"stages": STAGES}}
_HYBRID: dict[str, Any] = {
    "choices": lambda problem, machine: [{"strategy": best_strategy(problem, machine)}],
    "parameters": {"strategy": STRATEGY},
    "searched": False,
}
_FAMILY = {
    "allreduce/recursive_doubling": _Member(
        "exchange whole vectors with a neighbour in every direction",
        "d(α + nβ + nγ) for p = 2^d",
        ("vandeGeijn1991 §3.2",),
        whole_vectors,
        {"usual": True},
    ),
    "allreduce/halving_doubling": _Member(
        "exchange and combine halves in every direction, then collect them by doubling",
        "2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
        ("vandeGeijn1991 §3.3", "Thakur2005"),
        halved,
        {"segmented": True, "usual": True},
    ),
    "allreduce/hybrid": _Member(
        "halve in some directions, exchange whole vectors in the others",
        "T(S, n, d) for p = 2^d",
        ("vandeGeijn1991 §3.4", "vandeGeijn1991 Theorem 1"),
        by_strategy,
        {"segmented": True, **_HYBRID},
    ),
    "allreduce/recursive_multiplying": _Member(
        "groups of k ranks exchange whole vectors, round after round",
        "log_k(p)·(k − 2 + λ)·t0 for p = k^r, and combining",
        ("Ruefenacht2017",),
        multiplied,
        {
            "order": lambda problem: "rank",
            "choices": best_radix,
            "parameters": {
                "radix": integer("radix", 2, "the ranks in a group, an integer of at least 2")
            },
            "searched": False,
        },
    ),
    "allreduce/gather_combine": _Member(
        "every rank sends to every rank, and combines in the order of ranks",
        "(p − 2 + λ)·t0, and combining",
        ("BarNoyKipnis1994",),
        lambda problem, _: multiplied(problem, {"radix": max(problem.ranks, 2)}),
        {
            "choices": lambda problem, _: [{}] * (problem.ranks <= GATHERED_RANKS),
            "searched": False,
        },
    ),
    "allreduce/mixed_radix": _Member(
        "groups of several sizes divide the vector in some stages, exchange whole ones in others",
        "the sum of (k − 2 + λ)·t0 over stages of k ranks, twice where divided, and combining",
        ("vandeGeijn1991 §3.4", "Ruefenacht2017"),
        stages_of,
        {"segmented": True, **_MIXED},
    ),
    "reduce/halving_gather": _Member(
        "exchange and combine halves in every direction, then gather at the root",
        "2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
        ("vandeGeijn1991 §5",),
        halved,
        {"segmented": True, "usual": True},
    ),
    "reduce/hybrid": _Member(
        "halve in some directions, send whole vectors in the others",
        "T(S, n, d) for p = 2^d",
        ("vandeGeijn1991 §5", "vandeGeijn1991 Theorem 1"),
        by_strategy,
        {"segmented": True, **_HYBRID},
    ),
    "reduce/mixed_radix": _Member(
        "groups of several sizes divide the vector in some stages, send whole ones in others",
        "the sum of (k − 2 + λ)·t0 over stages of k ranks, twice where divided, and combining",
        ("vandeGeijn1991 §5", "Ruefenacht2017"),
        stages_of,
        {"segmented": True, **_MIXED},
    ),
    "reduce_scatter_block/recursive_halving": _Member(
        "exchange and combine halves with a neighbour in every direction",
        "dα + (p − 1)/p·n(β + γ) for p = 2^d",
        ("vandeGeijn1991 §3.3", "Thakur2005"),
        halved,
        {
            "choices": lambda problem, _: [{}] * (problem.ranks <= SCATTERED_RANKS),
            "segmented": True,
            "usual": True,
        },
    ),
    "reduce_scatter_block/mixed_radix": _Member(
        "groups of several sizes divide the vectors, stage after stage",
        "the sum of (k − 2 + λ)·t0 over stages of k ranks, and combining",
        ("vandeGeijn1991 §3.4", "Ruefenacht2017"),
        stages_of,
        {"segmented": True, **_MIXED},
    ),
}


def register_exchanges(collective: str) -> None:
    """Register all algorithms by exchanges in groups for one collective."""
    for name, (summary, time, source, stages, facts) in _FAMILY.items():
        if name.startswith(f"{collective}/"):
            facts = {"order": fixed_if_asked, "source": source, **facts}
            register_combining(name, summary, time, partial(_program, stages), **facts)


def _program(
    stages: Callable[[Problem, Settings], tuple[Stage, ...]], problem: Problem, settings: Settings
) -> Program:
    return Exchange(problem, stages(problem, settings))
