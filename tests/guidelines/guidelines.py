"""Self-consistent performance guidelines (Träff, Gropp, Thakur): nobody should do better by hand.

Each takes a problem as it was asked and returns a sentence that names both plans where it is
violated, or None.  They compare predicted times, exactly.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import collwise as cw
from collwise.algorithms.exchanges import cube_dimension
from collwise.algorithms.registry import algorithms_for, describe
from collwise.errors import InvalidArgument
from collwise.schedule.collectives import ABOUT, COLLECTIVES
from tests.algorithms.examples import stages_for
from tests.guidelines.random_problems import Asked

Guideline: TypeAlias = Callable[[Asked], str | None]
WITHIN = Fraction(102, 100)
"""A split vector, or a setting by hand, may be so much faster: choices of segments are coarse."""


def _said(slower: cw.Plan, faster: str, time: Fraction) -> str:
    took = slower.choice.predicted
    ratio = float(took / time) if time else float("inf")
    label = f"{slower.choice.label}, {slower.problem} on {slower.machine.describe()}"
    return f"{label}, takes {float(took):.4g} s, {ratio:.3f} times as long as {faster}"


def _at_most(plan: cw.Plan, *others: cw.Plan, within: Fraction = Fraction(1)) -> str | None:
    """A violation if a plan is slower than others one after another."""
    time = sum((other.choice.predicted for other in others), Fraction(0))
    if plan.choice.predicted <= time * within:
        return None
    labels = (f"{o.choice.label} on {o.problem.ranks} ranks" for o in others)
    return _said(plan, " and then ".join(labels), time)


def _plan(asked: Asked, collective: str, **changes: Any) -> cw.Plan:
    """The plan of a collective for what is asked; where vectors are combined, sums of floats."""
    combining = {"op": "sum", "dtype": "float64"} if COLLECTIVES[collective].combines else {}
    return asked.plan(collective=collective, **combining | changes)


def broadcast_is_one_source(asked: Asked) -> str | None:
    """broadcast(n) = allgatherv with n bytes at the root alone."""
    broadcast = _plan(asked, "broadcast", root=0)
    allgatherv = _plan(asked, "allgatherv", sources=[0], nbytes=[broadcast.problem.nbytes])
    return _at_most(allgatherv, broadcast) or _at_most(broadcast, allgatherv)


def sources_add_time(asked: Asked) -> str | None:
    """allgatherv takes no less with further sources."""
    others = [0, *range(asked.ranks // 2, asked.ranks, 3)]
    return _at_most(*(_plan(asked, "allgatherv", sources=sources) for sources in ([0], others)))


def reduce_is_broadcast(asked: Asked, within: Fraction = Fraction(1)) -> str | None:
    """The same time, where combining is free and operators commute."""
    if (asked.machine.combine(1) or 0) or not asked.machine.independent_ports:
        return None
    broadcast, reduce = _plan(asked, "broadcast"), _plan(asked, "reduce", op="max", dtype="uint8")
    return _at_most(reduce, broadcast, within=within) or _at_most(broadcast, reduce, within=within)


def allreduce_in_two(asked: Asked) -> str | None:
    """allreduce <= reduce + broadcast."""
    return _at_most(*(_plan(asked, name) for name in ("allreduce", "reduce", "broadcast")))


def reduce_scatter_in_allreduce(asked: Asked) -> str | None:
    """reduce-scatter <= allreduce."""
    return _at_most(_plan(asked, "reduce_scatter_block"), _plan(asked, "allreduce"))


def on_more_ranks(collective: str, asked: Asked, within: Fraction = Fraction(1)) -> str | None:
    """p <= p + 1."""
    more = _plan(asked, collective, ranks=asked.ranks + 1)
    return _at_most(_plan(asked, collective), more, within=within)


def of_more_bytes(collective: str, asked: Asked) -> str | None:
    """n <= n + 8."""
    more = _plan(asked, collective, nbytes=asked.more["nbytes"] + 8)
    return _at_most(_plan(asked, collective), more)


def split_in_two(collective: str, asked: Asked) -> str | None:
    """Whole <= one half, and then the other."""
    if not (first := asked.more["nbytes"] // 16 * 8):
        return None
    sizes = first, asked.more["nbytes"] - first
    parts = (_plan(asked, collective, nbytes=nbytes) for nbytes in sizes)
    return _at_most(_plan(asked, collective), *parts, within=WITHIN)


GRID: dict[str, list[Any]] = json.loads(
    Path(__file__).parents[2].joinpath("benchmarks", "settings_grid.json").read_text()
)
"""By parameter, the values that are tried by hand; of `stages`, how many ranks are in a group."""

MANY = 24
"""Settings of one algorithm; of more so many are tried, at random."""


def _settings(algorithm: cw.Algorithm, ranks: int) -> Iterable[dict[str, Any]]:
    """Those on the grid, or some; none where a parameter is another algorithm."""
    grid = {
        **GRID,
        "strategy": list(product((0, 1), repeat=cube_dimension(ranks))),
        "stages": [stages_for(ranks, radix) for radix in GRID["stages"]],
    }
    values = list(product(*(grid.get(name, []) for name in algorithm.parameters)))
    some = Random(ranks).sample(values, min(MANY, len(values)))
    return (dict(zip(algorithm.parameters, one, strict=True)) for one in some)


def on_the_grid(collective: str, asked: Asked) -> str | None:
    """The plan is at most 2 % slower than any legal algorithm with any setting of the grid."""
    sources = {"sources": range(0, asked.ranks, 2)} if collective in ABOUT["sources"] else {}
    plan = _plan(asked, collective, **sources)
    for algorithm in algorithms_for(collective, levels=False):
        if not algorithm.keeps_order(plan.problem):
            continue
        for settings in _settings(algorithm, asked.ranks):
            with suppress(InvalidArgument):  # settings for other numbers of ranks
                time = algorithm.time_of(plan.problem, plan.machine, settings)
                if plan.choice.predicted > time * WITHIN:
                    return _said(plan, describe(algorithm.name, settings), time)
    return None


GUIDELINES: dict[str, Guideline] = {
    one.__name__: one
    for one in (
        broadcast_is_one_source,
        sources_add_time,
        reduce_is_broadcast,
        allreduce_in_two,
        reduce_scatter_in_allreduce,
    )
}
GUIDELINES |= {
    f"{collective}_{one.__name__}": partial(one, collective)
    for one, collective in product(
        (on_more_ranks, of_more_bytes, split_in_two), ("broadcast", "reduce", "allreduce")
    )
}

IN_MANY_CASES = GUIDELINES | {
    "reduce_is_broadcast": partial(reduce_is_broadcast, within=Fraction(1001, 1000)),
    "reduce_on_more_ranks": partial(on_more_ranks, "reduce", within=Fraction(21, 20)),
}
"""What holds of hundreds of problems; `docs/design.md` (*What is proved*) says why not more."""
del IN_MANY_CASES["allreduce_on_more_ranks"]
