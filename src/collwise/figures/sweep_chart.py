"""Sweeps: times over message sizes, as measured and as predicted."""

from collections.abc import Mapping
from itertools import chain
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.figures import style
from collwise.figures.axes import size_axis, time_axis
from collwise.figures.style import MARKERS, MUTED, PALETTE
from collwise.measure.statistics import Interval

MAX_PANELS = 12
"""Panels that fit one picture."""
Times: TypeAlias = Mapping[int, tuple[Interval, Interval, float | None]]
"""By message size in bytes: the library's seconds, ours, and ours as predicted (or None)."""


@style.look()
def sweep_chart(panels: Mapping[str, Times]) -> Figure:
    """A chart of time over size, both logarithmic; a panel for each title, MAX_PANELS at most.

    Sizes of 0 bytes, or with an interval that reaches 0 s, are left out; a note if none is left.
    """
    drawable = {
        title: {n: of for n, of in times.items() if n > 0 and min(of[0].low, of[1].low) > 0}
        for title, times in panels.items()
    }
    shown = [(title, times) for title, times in drawable.items() if times][:MAX_PANELS]
    if not shown:
        return style.note("No size above 0 bytes was raced.")
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    figure = Figure((style.WIDTH, 0.7 + 3.1 * rows))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, times) in zip(grid.flat, shown, strict=False):
        _draw(axes, title, times)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Axes, title: str, times: Times) -> None:
    """Medians with bars for their intervals, and the predictions as a dotted line."""
    sizes = list(times)
    library, ours, predictions = zip(*times.values(), strict=True)
    predicted = {n: time for n, time in zip(sizes, predictions, strict=True) if time}
    every = [*chain(*library, *ours), *predicted.values()]
    size_axis(axes, sizes)
    time_axis(axes.yaxis, min(every), max(every), "median time")
    for number, (name, curve) in enumerate({"library": library, "collwise": ours}.items()):
        colour, marker = PALETTE[number], MARKERS[number]
        middles, lows, highs = zip(*curve, strict=True)
        axes.vlines(sizes, lows, highs, color=colour, lw=1.2)
        axes.plot(sizes, middles, color=colour, marker=marker, ms=4, label=name)
    axes.plot(list(predicted), list(predicted.values()), ":", color=MUTED, label="predicted")
    axes.set_title(title)
