"""The figures and tables of [Bruck1996], from our own computation."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Any

from matplotlib.figure import Figure

import collwise as cw
from collwise.figures.christmas_tree import christmas_tree
from collwise.figures.delay_diagram import Message, delay_diagram
from collwise.figures.line_chart import Curve, line_chart
from collwise.figures.tree_diagram import tree_diagram
from collwise.papers.bruck1996.census_claims import TABLE1, TABLE2
from collwise.papers.bruck1996.delta import IN_ROWS, ORDERS, PACKET, curve, model_sweep, sweep
from collwise.papers.bruck1996.postal_claims import alpha_steps
from collwise.papers.exhibits import Exhibit, Rows
from collwise.papers.measured import alpha_sweep, latencies
from collwise.system import formatting

LAM = Fraction(5, 2)
"""The λ of Figs 15 and 16."""
SIZE, ALPHA = "message size (bytes)", "α: the share of the ranks that a source keeps"


def _tree(name: str, lam: int) -> Figure:
    settings: dict[str, Any] = {"lam": lam} if name == "postal_tree" else {}
    schedule = cw.ALGORITHMS[f"broadcast/{name}"].schedule(8, 1, **settings)
    machine = cw.Machine.postal(t0_s=1, lam=lam)
    return tree_diagram(cw.simulate(schedule, machine).timing, schedule, Fraction(1))


def _christmas_tree(lam: str) -> Figure:
    ranges = {n: cw.postal.alpha_range(n, lam) for n in range(2, 251)}
    times = {n: cw.postal.broadcast_time(n, lam) for n in ranges}
    title = f"λ = {lam}: the α that split n ranks optimally"
    return christmas_tree(ranges, cw.postal.alpha_intersection(250, lam), times, title=title)


def _convergence() -> Figure:
    """Fig 8: the tops of the triangles for λ = 1.95."""
    table = cw.postal.alpha_table(10**9, "1.95")
    tops = {top: float(alpha) for top, alpha in zip(table.tops, table.alphas, strict=True)}
    limit = cw.postal.asymptotic_corners("1.95").top
    return line_chart(
        [
            Curve("the top of a triangle", tops, "points"),
            Curve(f"β^f = {limit:.4f}", {2: limit, 10**9: limit}, "dashes"),
        ],
        "n: ranks",
        "α at the top",
        title="λ = 1.95: the tops of the triangles converge",
        logarithmic="x",
    )


def _table_sizes() -> Figure:
    """Fig 9: the size of the table of α for λ = 1.293."""
    tops = cw.postal.alpha_table(2**24, "1.293").tops
    return line_chart(
        [Curve("rows", dict(zip(tops, range(1, len(tops) + 1), strict=True)), "steps")],
        "n: ranks",
        "rows of the table",
        title="λ = 1.293: how many α have to be kept for all numbers of ranks up to n",
        logarithmic="x",
    )


def _sizes() -> dict[float, str]:
    return {fit.nbytes: f"{fit.nbytes:,}" for fit in curve()[::2]}


def _latencies(*ways: bool) -> Figure:
    """Figs 3 and 5: λ over the message size, by each experiment; for blocking sends, and others."""
    lines = [
        Curve(
            f"{'' if len(ways) == 1 else way}experiment {i + 1}",
            {f.nbytes: float(law.lam) for f in curve(blocking) if (law := f.experiments[i])},
            ("line", "points")[i],
        )
        for blocking in ways
        for way in ["blocking, " if blocking else "non-blocking, "]
        for i in (0, 1)
    ]
    title = "λ of the simulated Delta, as both experiments measure it"
    return line_chart(lines, SIZE, "λ", title=title, logarithmic="x", ticks=_sizes())


def _times() -> Figure:
    """Fig 4: t0 and λ·t0."""
    lines = [
        Curve("at the receiver: λ·t0", {f.nbytes: 1e6 * float(f.law.latency) for f in curve()}),
        Curve("at the sender: t0", {f.nbytes: 1e6 * float(f.law.t0) for f in curve()}),
    ]
    title = "When a message is sent and received on the simulated Delta"
    return line_chart(lines, SIZE, "time (µs)", title=title, logarithmic="xy", ticks=_sizes())


def _swept(nbytes: int) -> Figure:
    """Figs 10, 11, 13: the α-broadcast on 8 × 8, in random orders."""
    title = f"{formatting.size(nbytes)} to 64 ranks in random orders on a simulated mesh of 8 × 8"
    return line_chart(
        [
            Curve("with links", sweep(nbytes)),
            Curve("the postal model alone", model_sweep(nbytes), "dashes"),
        ],
        ALPHA,
        "broadcast time (ms)",
        title=title,
        marks={"binomial": 0.5},
        zero=True,
    )


def _predicted() -> Figure:
    """Fig 12: the model's steps for 64 ranks at λ = 1.8."""
    times = alpha_steps(64, Fraction(9, 5), range(500, 750))
    best = [float(a) for a, t in times.items() if t == min(times.values())]
    return line_chart(
        [Curve("steps", {float(a): float(t) for a, t in times.items()}, "steps")],
        ALPHA,
        "broadcast time (in t0)",
        title="512 B to 64 ranks at λ = 1.8: predicted by the postal model",
        marks={"binomial": 0.5, "best": best[0]},
        band=(best[0], best[-1]),
        zero=True,
    )


def _congestion() -> Figure:
    """Fig 14: random orders against the one that is free of congestion."""
    lines = [
        Curve("random orders (the mean of five)", sweep(65536, ORDERS)),
        Curve("row by row from the source: no congestion", sweep(65536, IN_ROWS)),
    ]
    title = "64 KiB to 64 ranks on a simulated mesh of 8 × 8"
    return line_chart(lines, ALPHA, "broadcast time (ms)", title=title, zero=True)


def _delayed(receive: bool) -> Figure:
    """Figs 15 and 16: three messages, each delayed at its end or at its beginning."""
    apart = 1.0 if receive else float(LAM / floor(LAM))
    messages = []
    for i in range(4):
        start, arrives = i * apart, i * apart + float(LAM)
        used = start + ceil(LAM) if receive else arrives
        messages.append(Message(start, start + 1, start + apart, arrives, used))
    what = (
        "delay-receive: as if λ were 3" if receive else "delay-send: as if λ were 2 steps of 1.25"
    )
    return delay_diagram(messages, f"λ = 2.5, {what}")


def _growth() -> Figure:
    return line_chart(
        [
            Curve("any λ", {x / 20: cw.postal.growth(Fraction(x, 20)) for x in range(20, 201)}),
            Curve("Table 1", dict(enumerate(TABLE1, 1)), "points"),
        ],
        "λ",
        "γ(λ), per t0",
        title="By how much the informed ranks grow in a step",
    )


def _break_even() -> Figure:
    return line_chart(
        [
            Curve("computed", {k: cw.postal.break_even(k) - k for k in range(1, 10)}),
            Curve("Table 2", {k: x - k for k, x in enumerate(TABLE2, 1)}, "points"),
        ],
        "⌊λ⌋",
        "break-even λ − ⌊λ⌋",
        title="Below the curve delay-send grows faster, above it delay-receive",
    )


def _table(name: str, first: int, printed: tuple[float, ...], ours: Callable[[int], float]) -> Rows:
    return [
        {name: str(k), "paper": f"{x:.3f}", "computed": f"{ours(k):.6f}"}
        for k, x in enumerate(printed, first)
    ]


MEASURED_SWEEP = (
    " On MPI (-n): the schedule of every α as a persistent request, medians of the slowest rank."
)

EXHIBITS = (
    Exhibit(
        id="fig1a",
        title="The binomial tree for 8 ranks, λ = 1",
        caption="One port, no latency: the informed ranks double in every step.",
        draw=lambda: _tree("binomial", 1),
    ),
    Exhibit(
        id="fig1b",
        title="The same tree at λ = 2",
        caption="A rank can send on only two steps after it was sent to: six steps in all.",
        draw=lambda: _tree("binomial", 2),
    ),
    Exhibit(
        id="fig2",
        title="The λ-tree for 8 ranks, λ = 2",
        caption="The root keeps sending; ranks that are informed late serve few: five steps.",
        draw=lambda: _tree("postal_tree", 2),
    ),
    Exhibit(
        id="fig3",
        title="λ over the message size",
        caption="Largest at a packet of 512 bytes, then λ falls to 1. Both experiments agree.",
        kind="simulated",
        draw=lambda: _latencies(True),
        measure=latencies,
    ),
    Exhibit(
        id="fig4",
        title="Times at the sender and at the receiver",
        caption="Above 512 bytes the receiver is later by a constant, so that λ falls.",
        kind="simulated",
        draw=_times,
        measure=latencies,
    ),
    Exhibit(
        id="fig5",
        title="λ of blocking and of non-blocking sends",
        caption="Non-blocking sends as the paper explains them: links carry a message while the"
        " next is copied, so that t0 is shorter, and λ larger. On MPI (-n) both are measured.",
        kind="simulated",
        draw=lambda: _latencies(False, True),
        measure=latencies,
    ),
    Exhibit(
        id="fig6",
        title="Legal α for λ = 2",
        caption="A bar for every n: the α that split n ranks optimally. Every triangle holds the n"
        " with the same time, which stands beside it; at its top the split is forced. A straight"
        " line passes through all.",
        draw=lambda: _christmas_tree("2"),
    ),
    Exhibit(
        id="fig7",
        title="Legal α for λ = 1.95",
        caption="No line passes through all: a table of α is needed.",
        draw=lambda: _christmas_tree("1.95"),
    ),
    Exhibit(
        id="fig8",
        title="The tops of the triangles for λ = 1.95",
        caption="Every point is the top of a triangle; they converge to β^f, slowly.",
        draw=_convergence,
    ),
    Exhibit(
        id="fig9",
        title="The size of the table of α for λ = 1.293",
        caption="Only the tops of the triangles have to be kept: about log² n at most.",
        draw=_table_sizes,
    ),
    *(
        Exhibit(
            id=f"fig{number}",
            title=f"{formatting.size(nbytes)} to 64 ranks over α",
            caption=caption + MEASURED_SWEEP,
            kind="simulated",
            draw=partial(_swept, nbytes),
            measure=alpha_sweep(nbytes),
        )
        for number, nbytes, caption in (
            (10, 16384, "λ is about 1.05: the binomial tree is as good as any."),
            (11, PACKET, "λ is about 1.8: the best α is about 0.6."),
        )
    ),
    Exhibit(
        id="fig12",
        title="Predicted time over α, 512 bytes",
        caption="The best α, from 0.555 to 0.592, take 9.2 t0; the binomial tree takes 10.8.",
        draw=_predicted,
    ),
    Exhibit(
        id="fig13",
        title="Measured time over α, 512 bytes",
        caption="The shape of Fig 12, with the links of the mesh." + MEASURED_SWEEP,
        kind="simulated",
        draw=lambda: _swept(PACKET),
        measure=alpha_sweep(PACKET),
    ),
    Exhibit(
        id="fig14",
        title="Congestion",
        caption="In random orders messages wait for links; row by row from the source they never"
        " do.",
        kind="simulated",
        draw=_congestion,
    ),
    Exhibit(
        id="fig15",
        title="Delay-receive for λ = 2.5",
        caption="Every message is taken when it would have come at λ = 3.",
        draw=lambda: _delayed(True),
    ),
    Exhibit(
        id="fig16",
        title="Delay-send for λ = 2.5",
        caption="Sends are 1.25 t0 apart, so that λ is two of them.",
        draw=lambda: _delayed(False),
    ),
    Exhibit(
        id="fig17",
        title="γ(λ)",
        caption="By this factor the number of informed ranks grows per t0, in the long run.",
        draw=_growth,
    ),
    Exhibit(
        id="fig18",
        title="Break-even points",
        caption="Between them the better way of handling a λ that is no integer changes.",
        draw=_break_even,
    ),
    Exhibit(
        id="table1",
        title="γ(λ)",
        caption="",
        draw=lambda: _table("λ", 1, TABLE1, cw.postal.growth),
    ),
    Exhibit(
        id="table2",
        title="The break-even λ",
        caption="",
        draw=lambda: _table("⌊λ⌋", 1, TABLE2, cw.postal.break_even),
    ),
)
