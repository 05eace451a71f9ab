"""The figures and tables of [Bruck1996], computed here; some are also measured on MPI."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from matplotlib.figure import Figure

import collwise as cw
from collwise.figures.christmas_tree import christmas_tree
from collwise.figures.delay_diagram import delay_diagram
from collwise.figures.line_chart import Curve, line_chart
from collwise.figures.tree_diagram import tree_diagram
from collwise.model.machine import Cost
from collwise.papers.bruck1996.delta import IN_ROWS, ORDERS, PACKET, curve, model_sweep, sweep
from collwise.papers.bruck1996.postal_claims import TABLE1, TABLE2, best_alphas, in_thousandths
from collwise.papers.exhibits import Exhibit, Rows, Simulated
from collwise.papers.measured import alpha_sweep, latencies
from collwise.system import formatting


def _tree(name: str, lam: int, /, **settings: Any) -> Figure:
    """Figs 1 and 2: the tree of a broadcast algorithm for 8 ranks."""
    schedule = cw.ALGORITHMS[f"broadcast/{name}"].schedule(8, 1, **settings)
    machine = cw.Machine.postal(t0_s=1, lam=lam)
    return tree_diagram(cw.simulate(schedule, machine).timing, schedule, Fraction(1))


def _christmas_tree(lam: str) -> Figure:
    ranges = {n: cw.postal.alpha_range(n, lam) for n in range(2, 251)}
    times = {n: cw.postal.broadcast_time(n, lam) for n in ranges}
    title = f"λ = {lam}: the α that split n ranks optimally"
    return christmas_tree(ranges, cw.postal.alpha_intersection(250, lam), times, title=title)


LIMIT = cw.postal.asymptotic_corners("1.95").top


def _tops(lam: str, most: int) -> dict[int, float]:
    """The α at the tops of the triangles, by number of ranks."""
    table = cw.postal.alpha_table(most, lam)
    return {top: float(alpha) for top, alpha in zip(table.tops, table.alphas, strict=True)}


def _us(time: Callable[[Cost], Fraction]) -> dict[int, float]:
    """A time of the simulated Delta in µs, by message size."""
    return {fit.nbytes: 1e6 * float(time(fit.cost)) for fit in curve()}


def _over_size(lines: list[Curve], y: str, title: str, logarithmic: str) -> Figure:
    """Figs 3, 4 and 5: curves of the simulated Delta over the message size."""
    ticks = {fit.nbytes: f"{fit.nbytes:,}" for fit in curve()[::2]}
    x = "message size (bytes)"
    return line_chart(lines, x, y, title=title, logarithmic=logarithmic, ticks=ticks)


def _latencies(ways: dict[str, bool]) -> Figure:
    """Figs 3 and 5: λ by each experiment.   ways: `blocking`, by the name of the way of sending."""
    lines = [
        Curve(
            f"{way}experiment {i + 1}",
            {f.nbytes: float(cost.lam) for f in curve(blocking) if (cost := f.experiments[i])},
            ("line", "points")[i],
        )
        for way, blocking in ways.items()
        for i in (0, 1)
    ]
    return _over_size(lines, "λ", "λ of the simulated Delta, as both experiments measure it", "x")


def _over_alpha(lines: list[Curve], title: str, unit: str = "ms", **options: Any) -> Figure:
    """Figs 10 to 14: times of the α-broadcast."""
    x, y = "α: the share of the ranks that a source keeps", f"broadcast time ({unit})"
    return line_chart(lines, x, y, title=title, zero=True, **options)


def _swept(nbytes: int) -> Figure:
    """Figs 10, 11, 13: the α-broadcast on 8 × 8, in random orders."""
    lines = [
        Curve("with links", sweep(nbytes)),
        Curve("the postal model alone", model_sweep(nbytes), "dashes"),
    ]
    title = f"{formatting.size(nbytes)} to 64 ranks in random orders on a simulated mesh of 8 × 8"
    return _over_alpha(lines, title, marks={"binomial": 0.5})


def _predicted() -> Figure:
    """Fig 12: the model's steps for 64 ranks at λ = 1.8."""
    times = in_thousandths(range(500, 750))
    low, high = map(float, best_alphas(times))
    return _over_alpha(
        [Curve("steps", {float(a): float(t) for a, t in times.items()}, "steps")],
        "512 B to 64 ranks at λ = 1.8: predicted by the postal model",
        "in t0",
        marks={"binomial": 0.5, "best": low},
        band=(low, high),
    )


def _table(name: str, printed: tuple[float, ...], ours: Callable[[int], float]) -> Rows:
    return [
        {name: str(k), "paper": f"{x:.3f}", "computed": f"{ours(k):.6f}"}
        for k, x in enumerate(printed, 1)
    ]


MEASURED_SWEEP = (
    " On MPI (-n): the schedule of every α as a persistent request, medians of the slowest rank."
)

EXHIBITS = (
    Exhibit(
        "fig1a: The binomial tree for 8 ranks, λ = 1",
        "One port, no latency: the informed ranks double in every step.",
        lambda: _tree("binomial", 1),
    ),
    Exhibit(
        "fig1b: The same tree at λ = 2",
        "A rank can send on only two steps after it was sent to: six steps in all.",
        lambda: _tree("binomial", 2),
    ),
    Exhibit(
        "fig2: The λ-tree for 8 ranks, λ = 2",
        "The root keeps sending; ranks that are informed late serve few: five steps.",
        lambda: _tree("postal_tree", 2, lam=2),
    ),
    Simulated(
        "fig3: λ over the message size",
        "Largest at a packet of 512 bytes, then λ falls to 1. Both experiments agree.",
        lambda: _latencies({"": True}),
        measure=latencies,
    ),
    Simulated(
        "fig4: Times at the sender and at the receiver",
        "Above 512 bytes the receiver is later by a constant, so that λ falls.",
        lambda: _over_size(
            [
                Curve("at the receiver: λ·t0", _us(lambda cost: cost.latency)),
                Curve("at the sender: t0", _us(lambda cost: cost.gap)),
            ],
            "time (µs)",
            "When a message is sent and received on the simulated Delta",
            "xy",
        ),
        measure=latencies,
    ),
    Simulated(
        "fig5: λ of blocking and of non-blocking sends",
        "Non-blocking sends as the paper explains them: links carry a message while the"
        " next is copied, so that t0 is shorter, and λ larger. On MPI (-n) both are measured.",
        lambda: _latencies({"non-blocking, ": False, "blocking, ": True}),
        measure=latencies,
    ),
    Exhibit(
        "fig6: Legal α for λ = 2",
        "A bar for every n: the α that split n ranks optimally. Every triangle holds the n"
        " with the same time, which stands beside it; at its top the split is forced. A straight"
        " line passes through all.",
        lambda: _christmas_tree("2"),
    ),
    Exhibit(
        "fig7: Legal α for λ = 1.95",
        "No line passes through all: a table of α is needed.",
        lambda: _christmas_tree("1.95"),
    ),
    Exhibit(
        "fig8: The tops of the triangles for λ = 1.95",
        "Every point is the top of a triangle; they converge to β^f, slowly.",
        lambda: line_chart(
            [
                Curve("the top of a triangle", _tops("1.95", 10**9), "points"),
                Curve(f"β^f = {LIMIT:.4f}", {2: LIMIT, 10**9: LIMIT}, "dashes"),
            ],
            "n: ranks",
            "α at the top",
            title="λ = 1.95: the tops of the triangles converge",
            logarithmic="x",
        ),
    ),
    Exhibit(
        "fig9: The size of the table of α for λ = 1.293",
        "Only the tops of the triangles have to be kept: about log² n at most.",
        lambda: line_chart(
            [Curve("rows", {top: i for i, top in enumerate(_tops("1.293", 2**24), 1)}, "steps")],
            "n: ranks",
            "rows of the table",
            title="λ = 1.293: how many α have to be kept for all numbers of ranks up to n",
            logarithmic="x",
        ),
    ),
    *(
        Simulated(
            f"fig{number}: {formatting.size(nbytes)} to 64 ranks over α",
            caption + MEASURED_SWEEP,
            partial(_swept, nbytes),
            measure=alpha_sweep(nbytes),
        )
        for number, nbytes, caption in (
            (10, 16384, "λ is about 1.05: the binomial tree is as good as any."),
            (11, PACKET, "λ is about 1.8: the best α is about 0.6."),
        )
    ),
    Exhibit(
        "fig12: Predicted time over α, 512 bytes",
        "The best α, from 0.555 to 0.592, take 9.2 t0; the binomial tree takes 10.8.",
        _predicted,
    ),
    Simulated(
        "fig13: Measured time over α, 512 bytes",
        "The shape of Fig 12, with the links of the mesh." + MEASURED_SWEEP,
        lambda: _swept(PACKET),
        measure=alpha_sweep(PACKET),
    ),
    Simulated(
        "fig14: Congestion",
        "In random orders messages wait for links; row by row from the source they never do.",
        lambda: _over_alpha(
            [
                Curve("random orders (the mean of five)", sweep(65536, ORDERS)),
                Curve("row by row from the source: no congestion", sweep(65536, IN_ROWS)),
            ],
            "64 KiB to 64 ranks on a simulated mesh of 8 × 8",
        ),
    ),
    Exhibit(
        "fig15: Delay-receive for λ = 2.5",
        "Every message is taken when it would have come at λ = 3.",
        lambda: delay_diagram(2.5, 1, 3, "λ = 2.5, delay-receive: as if λ were 3"),
    ),
    Exhibit(
        "fig16: Delay-send for λ = 2.5",
        "Sends are 1.25 t0 apart, so that λ is two of them.",
        lambda: delay_diagram(2.5, 1.25, 2.5, "λ = 2.5, delay-send: as if λ were 2 steps of 1.25"),
    ),
    Exhibit(
        "fig17: γ(λ)",
        "By this factor the number of informed ranks grows per t0, in the long run.",
        lambda: line_chart(
            [
                Curve("any λ", {x / 20: cw.postal.growth(Fraction(x, 20)) for x in range(20, 201)}),
                Curve("Table 1", dict(enumerate(TABLE1, 1)), "points"),
            ],
            "λ",
            "γ(λ), per t0",
            title="By how much the informed ranks grow in a step",
        ),
    ),
    Exhibit(
        "fig18: Break-even points",
        "Between them the better way of handling a λ that is no integer changes.",
        lambda: line_chart(
            [
                Curve("computed", {k: cw.postal.break_even(k) - k for k in range(1, 10)}),
                Curve("Table 2", {k: x - k for k, x in enumerate(TABLE2, 1)}, "points"),
            ],
            "⌊λ⌋",
            "break-even λ − ⌊λ⌋",
            title="Below the curve delay-send grows faster, above it delay-receive",
        ),
    ),
    Exhibit("table1: γ(λ)", "", lambda: _table("λ", TABLE1, cw.postal.growth)),
    Exhibit("table2: The break-even λ", "", lambda: _table("⌊λ⌋", TABLE2, cw.postal.break_even)),
)
