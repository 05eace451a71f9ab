"""The figures of [Hambrusch1998], simulated on the preset "paragon"."""

from collections.abc import Mapping

from matplotlib.figure import Figure

import collwise as cw
from collwise.figures.line_chart import Curve, line_chart
from collwise.figures.source_mesh import source_meshes
from collwise.papers.exhibits import Exhibit
from collwise.papers.hambrusch1998.runs import (
    Curves,
    by_distribution,
    by_length,
    by_ranks,
    by_shape,
    by_sources,
    gains_by_length,
    gains_by_sources,
    of_80_kb,
    on_the_t3d,
)

TIME, SOURCES, LENGTH = "time (ms)", "s: number of sources", "message of a source (bytes)"
SAVED = "time saved by repositioning (%)"


def _chart(curves: Curves, x: str, y: str = TIME, title: str = "", logs: str = "") -> Figure:
    """A line for every name."""
    lines = [Curve(name, values) for name, values in curves.items()]
    ticks = {at: f"{at:,}" for at in next(iter(curves.values()))} if "x" in logs else None
    zero = y == TIME and "y" not in logs
    level = None if y == TIME else 0.0
    return line_chart(
        lines, x, y, title=title, logarithmic=logs, ticks=ticks, level=level, zero=zero
    )


def _by_name(times: Mapping[str, Mapping[str, float]], x: str, title: str) -> Figure:
    """Points over names: a row of markers for every algorithm.  times: by what x shows."""
    names = list(times)
    lines = [
        Curve(a, {float(i): times[name][a] for i, name in enumerate(names)}, "points")
        for a in times[names[0]]
    ]
    ticks = {float(i): name.replace("_", " ") for i, name in enumerate(names)}
    return line_chart(lines, x, TIME, title=title, ticks=ticks, zero=True)


def _shapes() -> Figure:
    times = by_shape()
    shapes = {
        shape: {f"s = {s}": times[s][shape] for s in times} for shape in next(iter(times.values()))
    }
    title = "br_lin from equal sources, 4 KB each: 120 ranks in five meshes"
    return _by_name(shapes, "rows × columns", title)


EXHIBITS = (
    Exhibit(
        id="fig1",
        title="Sources on a 10 × 10 mesh",
        caption="Row, cross and right diagonal distributions of 30 sources.",
        draw=lambda: source_meshes(
            (10, 10),
            {
                title: cw.sources.distribute(name, (10, 10), 30)
                for title, name in (
                    ("Row R(30)", "row"),
                    ("Cross Cr(30)", "cross"),
                    ("Right diagonal Dr(30)", "right_diagonal"),
                )
            },
        ),
    ),
    Exhibit(
        id="fig2",
        title="Time over the number of sources",
        caption="two_step waits at one rank for all data; the three that branch grow slowly.",
        kind="simulated",
        draw=lambda: _chart(by_sources(), SOURCES, title="10 × 10, equal distribution, 4 KB"),
    ),
    Exhibit(
        id="fig3",
        title="Time over the length",
        caption="Both axes logarithmic: slope 1 is linear growth, a flat line is start-up.",
        kind="simulated",
        draw=lambda: _chart(by_length(), LENGTH, title="10 × 10, Dr(30)", logs="xy"),
    ),
    Exhibit(
        id="fig4",
        title="Time over the number of ranks",
        caption="√p sources on right diagonals: xor sends a message to everybody, and falls back.",
        kind="simulated",
        draw=lambda: _chart(by_ranks(), "p: ranks", title="square meshes, Dr(√p), 4 KB", logs="xy"),
    ),
    Exhibit(
        id="fig5",
        title="Time by distribution",
        caption="br_xy_source does not mind which of the first four; br_xy_dim pays on rows.",
        kind="simulated",
        draw=lambda: _by_name(by_distribution(), "distribution", "10 × 10, s = 30, 4 KB"),
    ),
    Exhibit(
        id="fig6",
        title="80 KB in all",
        caption="The more sources share the same data, the faster it is broadcast.",
        kind="simulated",
        draw=lambda: _chart(of_80_kb(), SOURCES, title="10 × 10, Dr(s), 80 KB in all"),
    ),
    Exhibit(
        id="fig7",
        title="Time by the shape of the mesh",
        caption="The same ranks, sources and bytes: the shape alone changes the time.",
        kind="simulated",
        draw=_shapes,
    ),
    Exhibit(
        id="fig8",
        title="What repositioning saves, over the number of sources",
        caption="Above the line it pays to move the data first.",
        kind="simulated",
        draw=lambda: _chart(gains_by_sources(), SOURCES, SAVED, "16 × 16, 6 KB"),
    ),
    Exhibit(
        id="fig9",
        title="What repositioning saves, over the length",
        caption="Above the line it pays to move the data first.",
        kind="simulated",
        draw=lambda: _chart(gains_by_length(), LENGTH, SAVED, "16 × 16, 75 sources", "x"),
    ),
    Exhibit(
        id="t3d",
        title="The three on a T3D",
        caption="A torus of 4 × 4 × 8 that algorithms see as a mesh of 8 × 16: the paper's figures"
        " of the T3D are lost; that times depend on the distribution shows.",
        kind="simulated",
        draw=lambda: _by_name(
            on_the_t3d(), "distribution", "T3D, 4 × 4 × 8 seen as 8 × 16, s = 32, 4 KB"
        ),
    ),
)
