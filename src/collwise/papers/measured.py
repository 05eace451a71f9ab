"""The papers' experiments on real MPI: λ by size, α, orders of ranks, combining, overheads.

A measurement (`Measure`) is a function that all ranks of a session call.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import collwise as cw
from collwise.measure.race import BY_HAND, Race
from collwise.model.exact import seconds
from collwise.papers.claims import Measure, MeasuredValue
from collwise.schedule.combinators import on_ranks
from collwise.schedule.problem import Problem
from collwise.schedule.program import Written
from collwise.system import formatting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collwise.tuning.session import Session

SIZES = (8, 32, 128, 512, 1024, 2048, 4096, 8192, 16384)
MEASURING_SHARE = 0.3
"""The share of the time in which t0 and λ are measured; the races have the rest."""


def latencies(session: "Session", budget_s: float) -> MeasuredValue:
    """Measure λ and t0 by message size, for blocking and for non-blocking sends.

    The value: by size, the ratios (of λ, of t0) of non-blocking to blocking sends.
    """
    profile = session.measure(budget_s, SIZES)
    modes = {(point.nbytes, point.mode): point for point in profile.points}
    ratios = {
        f"{n} B": (max(free.lam, 1) / max(blocking.lam, 1), free.t0_s / blocking.t0_s)
        for n in SIZES
        if (free := modes.get((n, "nonblocking"))) and (blocking := modes.get((n, "blocking")))
    }

    def draw() -> "Figure":
        from collwise.figures.latency_curves import latency_curves

        return latency_curves(profile)

    return MeasuredValue(draw, ratios)


@cache
def alpha_sweep(nbytes: int) -> Measure:
    """Return a measurement of broadcasts of nbytes where a source keeps the share α of its ranks.

    The value: the median in milliseconds for each α.   The picture also shows predictions.
    """

    def measure(session: "Session", budget_s: float) -> MeasuredValue:
        algorithm = cw.ALGORITHMS["broadcast/alpha"]
        problem = algorithm.problem(ranks := session.private.comm.Get_size(), nbytes)
        machine = session.measure(budget_s * MEASURING_SHARE, [nbytes]).machine
        alphas = {f"{x / 100:g}": {"alpha": Fraction(x, 100)} for x in range(50, 76, 2)}
        race = session.compare(
            problem,
            {label: algorithm.solve(problem, alpha) for label, alpha in alphas.items()},
            {label: seconds(algorithm.time_of(problem, machine, a)) for label, a in alphas.items()},
            budget_s * (1 - MEASURING_SHARE),
        )
        return MeasuredValue(
            _chart(
                {"": {float(label): (race, label) for label in alphas}},
                "α: the share of the ranks that a source keeps",
                "broadcast time (ms)",
                title=f"{formatting.size(nbytes)} to {ranks} ranks, measured here",
                zero=True,
            ),
            {f"α = {label}": 1e3 * race.medians[label].middle for label in alphas},
        )

    return measure


@cache
def random_order(nbytes: int) -> Measure:
    """Return a measurement of the binomial broadcast of nbytes, in rank order and a random order.

    The value: percent of time that rank order saves, with the ends of the 95 % interval.
    """

    def measure(session: "Session", budget_s: float) -> MeasuredValue:
        algorithm = cw.ALGORITHMS["broadcast/binomial"]
        schedule = algorithm.schedule(ranks := session.private.comm.Get_size(), nbytes)
        order = [0, *Random(0).sample(range(1, ranks), ranks - 1)]
        lists = {
            rank: tuple(on_ranks(operations, order))
            for rank, operations in zip(order, schedule.program.every(ranks), strict=True)
        }
        moved = replace(schedule, program=Written(tuple(lists[rank] for rank in range(ranks))))
        both = {"in order": schedule, "random": moved}
        race = session.compare(schedule.problem, both, {}, budget_s)
        saved = race.against("in order", "random")
        return MeasuredValue(
            None, tuple(100 * (1 - x) for x in (saved.middle, saved.high, saved.low))
        )

    return measure


def combining(names: Mapping[str, str], lengths: Sequence[int]) -> Measure:
    """Return a measurement of allreduces of float32; the picture also shows predictions.

    names: algorithms by label.   lengths: numbers of items of 4 bytes.   There is no value.
    """

    def measure(session: "Session", budget_s: float) -> MeasuredValue:
        profile = session.measure(budget_s * MEASURING_SHARE, [4 * n for n in lengths])
        ranks, races = session.private.comm.Get_size(), dict[float, Race]()
        machine = profile.machine_combining("sum", "float32")
        for n in lengths:
            setting: Any = {"ranks": ranks, "nbytes": 4 * n, "machine": machine, "dtype": "float32"}
            plans = {
                a: cw.plan("allreduce", algorithm=name, **setting) for a, name in names.items()
            }
            races[n] = session.compare(
                next(iter(plans.values())).problem,
                {label: plan.schedule for label, plan in plans.items()},
                {label: plan.predicted_s for label, plan in plans.items()},
                budget_s * (1 - MEASURING_SHARE) / len(lengths),
                dtype="float32",
            )
        return MeasuredValue(
            _chart(
                {label: {n: (race, label) for n, race in races.items()} for label in names},
                "n: items of 4 bytes",
                "allreduce time (ms)",
                title=f"Combining on {ranks} ranks, measured here",
                logarithmic="xy",
            )
        )

    return measure


def overheads(names: Sequence[str], nbytes: int) -> Measure:
    """Return a measurement of how much longer our requests take than bare messages of mpi4py.

    names: allgatherv algorithms.   nbytes: of each source's message; every second rank is a source.
    The value: percent of mpi4py's time, by name, with the ends of the 95 % interval.
    """

    def measure(session: "Session", budget_s: float) -> MeasuredValue:
        ranks, lost = session.private.comm.Get_size(), {}
        problem = Problem.of("allgatherv", ranks, nbytes, sources=range(0, ranks, 2))
        for name in names:
            schedule = cw.ALGORITHMS[f"allgatherv/{name}"].solve(problem, {})
            share_s = budget_s / len(names)
            race = session.compare(problem, {name: schedule}, {}, share_s, bare_sends=True)
            slower = race.against(name, name + BY_HAND)
            lost[name] = tuple(100 * (x - 1) for x in (slower.middle, slower.low, slower.high))
        return MeasuredValue(None, lost)

    return measure


def _chart(
    curves: Mapping[str, Mapping[float, tuple[Race, str]]], *words: str, **options: Any
) -> "Callable[[], Figure]":
    """A function that draws every curve's measured medians and its predictions, in milliseconds.

    curves: by name and place on the x axis, a race and the label of a competitor in it.
    words, options: arguments of `line_chart`.
    Matplotlib is loaded where something is drawn, not on every rank.
    """

    def draw() -> "Figure":
        from collwise.figures.line_chart import Curve, line_chart

        lines = []
        for i, (name, points) in enumerate(curves.items()):
            measured = {x: 1e3 * race.medians[label].middle for x, (race, label) in points.items()}
            predicted = {x: 1e3 * race.predicted_s[label] for x, (race, label) in points.items()}
            lines.append(Curve(f"{name} measured", measured, "line", i))
            lines.append(Curve(f"{name} predicted", predicted, "dashes", i))
        return line_chart(lines, *words, **options)

    return draw
