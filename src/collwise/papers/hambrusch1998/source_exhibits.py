"""The figures of [Hambrusch1998]: sources, and times simulated on "paragon" and "t3d"."""

from collections.abc import Mapping

from matplotlib.figure import Figure

import collwise as cw
from collwise.figures.line_chart import Curve, line_chart
from collwise.figures.source_mesh import source_meshes
from collwise.papers.exhibits import Exhibit, Simulated
from collwise.papers.hambrusch1998 import runs

TIME, SOURCES, LENGTH = "time (ms)", "s: number of sources", "message of a source (bytes)"
SAVED = "time saved by repositioning (%)"


def _chart(curves: runs.Curves, x: str, y: str = TIME, title: str = "", logs: str = "") -> Figure:
    """A chart with a line for every name in `curves`."""
    lines = [Curve(name, values) for name, values in curves.items()]
    ticks = {at: f"{at:,}" for at in next(iter(curves.values()))} if "x" in logs else None
    zero = y == TIME and "y" not in logs
    level = None if y == TIME else 0.0
    return line_chart(
        lines, x, y, title=title, logarithmic=logs, ticks=ticks, level=level, zero=zero
    )


def _by_name(times: Mapping[str, Mapping[str, float]], x: str, title: str) -> Figure:
    """A chart with names on the x axis.  times: milliseconds by name, then by curve."""
    names = list(times)
    lines = [
        Curve(a, {float(i): times[name][a] for i, name in enumerate(names)}, "points")
        for a in times[names[0]]
    ]
    ticks = {float(i): name.replace("_", " ") for i, name in enumerate(names)}
    return line_chart(lines, x, TIME, title=title, ticks=ticks, zero=True)


def _shapes() -> Figure:
    times = runs.by_shape()
    shapes = {
        shape: {f"s = {s}": times[s][shape] for s in times} for shape in next(iter(times.values()))
    }
    title = "br_lin from equal sources, 4 KB each: 120 ranks in five meshes"
    return _by_name(shapes, "rows × columns", title)


EXHIBITS = (
    Exhibit(
        "fig1: Sources on a 10 × 10 mesh",
        "Row, cross and right diagonal distributions of 30 sources.",
        lambda: source_meshes(
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
    Simulated(
        "fig2: Time over the number of sources",
        "two_step waits at one rank for all data; the three that branch grow slowly.",
        lambda: _chart(runs.by_sources(), SOURCES, title="10 × 10, equal distribution, 4 KB"),
    ),
    Simulated(
        "fig3: Time over the length",
        "Both axes logarithmic: slope 1 is linear growth, a flat line is start-up.",
        lambda: _chart(runs.by_length(), LENGTH, title="10 × 10, Dr(30)", logs="xy"),
    ),
    Simulated(
        "fig4: Time over the number of ranks",
        "√p sources on right diagonals: xor sends a message to everybody, and falls back.",
        lambda: _chart(runs.by_ranks(), "p: ranks", title="square meshes, Dr(√p), 4 KB", logs="xy"),
    ),
    Simulated(
        "fig5: Time by distribution",
        "br_xy_source does not mind which of the first four; br_xy_dim pays on rows.",
        lambda: _by_name(runs.by_distribution(), "distribution", "10 × 10, s = 30, 4 KB"),
    ),
    Simulated(
        "fig6: 80 KB in all",
        "The more sources share the same data, the faster it is broadcast.",
        lambda: _chart(runs.of_80_kb(), SOURCES, title="10 × 10, Dr(s), 80 KB in all"),
    ),
    Simulated(
        "fig7: Time by the shape of the mesh",
        "The same ranks, sources and bytes: the shape alone changes the time.",
        _shapes,
    ),
    Simulated(
        "fig8: What repositioning saves, over the number of sources",
        "Above the line it pays to move the data first.",
        lambda: _chart(runs.gains_by_sources(), SOURCES, SAVED, "16 × 16, 6 KB"),
    ),
    Simulated(
        "fig9: What repositioning saves, over the length",
        "Above the line it pays to move the data first.",
        lambda: _chart(runs.gains_by_length(), LENGTH, SAVED, "16 × 16, 75 sources", "x"),
    ),
    Simulated(
        "t3d: The three on a T3D",
        "A torus of 4 × 4 × 8 that algorithms see as a mesh of 8 × 16: the paper's figures"
        " of the T3D are lost; that times depend on the distribution shows.",
        lambda: _by_name(
            runs.on_the_t3d(), "distribution", "T3D, 4 × 4 × 8 seen as 8 × 16, s = 32, 4 KB"
        ),
    ),
)
