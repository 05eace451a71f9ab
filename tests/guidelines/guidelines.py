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


def broadcast_is_one_source(asked: Asked) -> str | None:
    """broadcast(n) = s_to_p with n bytes at the root alone."""
    broadcast = asked.plan(collective="broadcast", root=0)
    nbytes = [broadcast.problem.nbytes]
    s_to_p = asked.plan(collective="s_to_p", sources=[0], nbytes=nbytes)
    return _at_most(s_to_p, broadcast) or _at_most(broadcast, s_to_p)


def sources_add_time(asked: Asked) -> str | None:
    """s_to_p takes no less with further sources."""
    nbytes = asked.more["nbytes"]
    others = [0, *range(asked.ranks // 2, asked.ranks, 3)]
    one = asked.plan(collective="s_to_p", sources=[0], nbytes=nbytes)
    more = asked.plan(collective="s_to_p", sources=others, nbytes=nbytes)
    return _at_most(one, more)


def reduce_is_broadcast(asked: Asked, within: Fraction = Fraction(1)) -> str | None:
    """The same time, where combining is free and operators commute."""
    if (asked.machine.combine(1) or 0) or not asked.machine.independent_ports:
        return None
    broadcast = asked.plan(collective="broadcast")
    reduce = asked.plan(collective="reduce", op="max", dtype="uint8")
    return _at_most(reduce, broadcast, within=within) or _at_most(broadcast, reduce, within=within)


def allreduce_in_two(asked: Asked) -> str | None:
    """allreduce <= reduce + broadcast."""
    combining: dict[str, Any] = {"op": "sum", "dtype": "float64"}
    return _at_most(
        asked.plan(collective="allreduce", **combining),
        asked.plan(collective="reduce", **combining),
        asked.plan(collective="broadcast"),
    )


def reduce_scatter_in_allreduce(asked: Asked) -> str | None:
    """reduce-scatter <= allreduce."""
    combining: dict[str, Any] = {"op": "sum", "dtype": "float64"}
    return _at_most(
        asked.plan(collective="reduce_scatter_block", **combining),
        asked.plan(collective="allreduce", **combining),
    )


def _more_ranks(collective: str, within: Fraction = Fraction(1)) -> Guideline:
    def more_ranks(asked: Asked) -> str | None:
        combining = _combining(collective)
        return _at_most(
            asked.plan(collective=collective, **combining),
            asked.plan(collective=collective, ranks=asked.ranks + 1, **combining),
            within=within,
        )

    more_ranks.__name__ = f"{collective}_on_more_ranks"
    return more_ranks


broadcast_on_more_ranks = _more_ranks("broadcast")
reduce_on_more_ranks = _more_ranks("reduce")
allreduce_on_more_ranks = _more_ranks("allreduce")


def _combining(collective: str) -> dict[str, Any]:
    return {} if collective == "broadcast" else {"op": "sum", "dtype": "float64"}


def _more_bytes(collective: str) -> Guideline:
    def more_bytes(asked: Asked) -> str | None:
        combining = _combining(collective)
        nbytes = asked.more["nbytes"]
        return _at_most(
            asked.plan(collective=collective, **combining),
            asked.plan(collective=collective, **{**combining, "nbytes": nbytes + 8}),
        )

    more_bytes.__name__ = f"{collective}_of_more_bytes"
    return more_bytes


broadcast_of_more_bytes = _more_bytes("broadcast")
reduce_of_more_bytes = _more_bytes("reduce")
allreduce_of_more_bytes = _more_bytes("allreduce")


def _split(collective: str) -> Guideline:
    def split(asked: Asked) -> str | None:
        combining = _combining(collective)
        nbytes = asked.more["nbytes"]
        first = nbytes // 16 * 8
        if not first:
            return None
        parts = (
            asked.plan(collective=collective, **{**combining, "nbytes": n})
            for n in (first, nbytes - first)
        )
        return _at_most(asked.plan(collective=collective, **combining), *parts, within=WITHIN)

    split.__name__ = f"{collective}_split_in_two"
    return split


broadcast_split = _split("broadcast")
reduce_split = _split("reduce")
allreduce_split = _split("allreduce")

GRID: dict[str, list[Any]] = json.loads(
    Path(__file__).parents[2].joinpath("benchmarks", "settings_grid.json").read_text()
)
"""By parameter, the values that are tried by hand; of `stages`, how many ranks are in a group."""

MANY = 42
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


def _on_the_grid(collective: str) -> Guideline:
    def on_the_grid(asked: Asked) -> str | None:
        more = _combining(collective) if collective in ABOUT["op"] else {}
        if collective in ABOUT["sources"]:
            more = {"sources": range(0, asked.ranks, 2)}
        plan = asked.plan(collective=collective, **more)
        for algorithm in filter(
            lambda one: one.keeps_order(plan.problem), algorithms_for(collective, levels=False)
        ):
            for settings in _settings(algorithm, asked.ranks):
                with suppress(InvalidArgument):  # settings for other numbers of ranks
                    time = algorithm.time_of(plan.problem, plan.machine, settings)
                    if plan.choice.predicted > time * WITHIN:
                        return _said(plan, describe(algorithm.name, settings), time)
        return None

    on_the_grid.__name__ = f"{collective}_on_the_grid"
    return on_the_grid


ON_THE_GRID = tuple(map(_on_the_grid, COLLECTIVES))
"""The plan is at most 2 % slower than any legal algorithm with any setting of the grid."""

GUIDELINES: tuple[Guideline, ...] = (
    broadcast_is_one_source,
    sources_add_time,
    reduce_is_broadcast,
    allreduce_in_two,
    reduce_scatter_in_allreduce,
    broadcast_on_more_ranks,
    reduce_on_more_ranks,
    allreduce_on_more_ranks,
    broadcast_of_more_bytes,
    reduce_of_more_bytes,
    allreduce_of_more_bytes,
    broadcast_split,
    reduce_split,
    allreduce_split,
)

IN_MANY_CASES: tuple[Guideline, ...] = (
    *(
        one
        for one in GUIDELINES
        if one not in (reduce_is_broadcast, reduce_on_more_ranks, allreduce_on_more_ranks)
    ),
    _more_ranks("reduce", Fraction(21, 20)),
    partial(reduce_is_broadcast, within=Fraction(1001, 1000)),
)
"""What holds of hundreds of problems; `docs/design.md` (*What is proved*) says why not more."""
