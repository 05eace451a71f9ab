"""The figures of [vandeGeijn1991]: how data move on 4 nodes, and times on 64."""

from matplotlib.figure import Figure

import collwise as cw
from collwise.figures.combining_steps import combining_steps
from collwise.figures.line_chart import Curve, line_chart
from collwise.papers.exhibits import Exhibit, Simulated
from collwise.papers.measured import combining
from collwise.papers.vandegeijn1991.cube_claims import crossover
from collwise.papers.vandegeijn1991.ipsc import (
    MAX_SHORT,
    SHORT_LENGTHS,
    VERSIONS,
    Times,
    curve_times,
    short_times,
)

STEPPED = cw.Machine.hockney(alpha_s=1, beta_s=0, gamma_s="0.0001")
"""A machine on which a message takes 1 s and combining hardly any, so that seconds count steps."""
MEASURED = combining(
    {version: name for version, (name, _) in VERSIONS.items()}, (1, 16, 64, 256, 1024, 4096, 16384)
)
ITEMS, TIME = "n: items of 4 bytes", "time (ms)"


def _steps(name: str, title: str) -> Figure:
    schedule = cw.ALGORITHMS[name].schedule(4, 16, itemsize=4)
    return combining_steps(cw.ideal(schedule, STEPPED), schedule, title)


def _all_ports() -> Figure:
    schedule = cw.ALGORITHMS["allreduce/all_ports"].schedule(4, 32, itemsize=4, strategy=(1, 1))
    machine = cw.Machine.wormhole(
        send_s=1, receive_s=0, hop_s=0, beta_s=0, gamma_s="0.0001", all_port=True
    )
    timing = cw.ideal(schedule, machine, cw.topology.Hypercube(2))
    return combining_steps(timing, schedule, "Version 3 with all ports, in two parts")


def _curves(times: Times, title: str, marks: dict[str, float], logs: str = "") -> Figure:
    lines = [
        Curve(name, values, "dashes" if name == "hybrid" else "line")
        for name, values in times.items()
    ]
    return line_chart(lines, ITEMS, TIME, title=title, marks=marks, logarithmic=logs, zero=not logs)


EXHIBITS = (
    Exhibit(
        "fig1: Version 1 on 4 nodes",
        "Up a tree to P0, then down again: 2d messages one after another. A cell is a part of a"
        " node's vector, and names the nodes whose parts it combines.",
        lambda: _steps("allreduce/reduce_broadcast", "Version 1: a tree up, and down"),
    ),
    Exhibit(
        "fig2: Version 2 on 4 nodes",
        "Whole vectors in every direction: d messages, but every node combines everything. (Ours"
        " starts with direction 0, so that neighbours in rank are combined.)",
        lambda: _steps("allreduce/recursive_doubling", "Version 2: whole vectors"),
    ),
    Exhibit(
        "fig3: Version 3 on 4 nodes",
        "Halves, quarters, …, then back: 2d messages, and nobody combines a part twice.",
        lambda: _steps("allreduce/halving_doubling", "Version 3: halves"),
    ),
    Exhibit(
        "fig5: Combining to the root on 4 nodes",
        "As Version 3, but parts are gathered at P0.",
        lambda: _steps("reduce/halving_gather", "halving, then gathering"),
    ),
    Exhibit(
        "figports: All ports of a cube of 4 nodes (§7)",
        "The first half of the vector goes through direction 0 first, the second half through"
        " direction 1, both at once.",
        _all_ports,
    ),
    Exhibit(
        "fig7: Time over the length on 64 nodes",
        "α = 525 µs, β = 2 µs, γ = 0.35 µs, the schedules simulated. The hybrid is never"
        " above Version 2 or 3. On MPI (-n): the same algorithms here, beside their predictions.",
        lambda: _curves(
            curve_times(),
            "Combining on 64 nodes of an iPSC/860",
            {"Versions 2 and 3 cross": float(crossover())},
        ),
        measure=MEASURED,
    ),
    Simulated(
        "fig8: The same without padding",
        f"Messages of up to {MAX_SHORT} items start up in 419 µs (our estimate), others in"
        " 480 µs. The hybrid is found by dynamic programming over these costs.",
        lambda: _curves(
            {
                v: {n: times[n] for n in SHORT_LENGTHS if n <= 4096}
                for v, times in short_times().items()
            },
            "Combining on 64 nodes of an iPSC/860, short messages start up faster",
            {f"n = {MAX_SHORT}": float(MAX_SHORT)},
            "xy",
        ),
        measure=MEASURED,
    ),
)
