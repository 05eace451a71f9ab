"""Sweeps: times over message sizes, as measured and as predicted."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collwise.figures import style
from collwise.figures.axes import size_axis, time_axis
from collwise.figures.style import MARKERS, MUTED, PALETTE
from collwise.measure.statistics import Interval

MAX_PANELS = 12
"""Panels that fit one picture."""


class SweepPanel(NamedTuple):
    """One collective on one number of ranks: times in seconds, by size in bytes.

    measured: medians with intervals, by whose they are.   predicted: by the model, of our schedule.
    """

    title: str
    measured: Mapping[str, Mapping[int, Interval]]
    predicted: Mapping[int, float]


@style.look()
def sweep_chart(panels: Sequence[SweepPanel]) -> Figure:
    """Time over size, both logarithmic; a panel for each collective and number of ranks.

    Sizes and times of 0 are not shown.
    """
    shown = [panel for panel in map(_drawable, panels) if any(panel.measured.values())]
    if not shown:
        return style.note("No size above 0 bytes was raced.")
    shown = shown[:MAX_PANELS]
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    figure = Figure((style.WIDTH, 0.7 + 3.1 * rows))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, shown, strict=False):
        _draw(axes, panel)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    handles = {line.get_label(): line for axes in grid.flat for line in axes.lines}
    named = [line for label, line in handles.items() if not str(label).startswith("_")]
    figure.legend(handles=named, loc="outside lower center", ncols=4)
    return figure


def _drawable(panel: SweepPanel) -> SweepPanel:
    """The panel without what has no place on logarithmic axes."""
    measured = {
        name: {n: time for n, time in times.items() if n > 0 and time.low > 0}
        for name, times in panel.measured.items()
    }
    predicted = {n: time for n, time in panel.predicted.items() if n > 0 and time > 0}
    return panel._replace(measured=measured, predicted=predicted)


def _draw(axes: Axes, panel: SweepPanel) -> None:
    """Medians with bars for their intervals, and the predictions as a dotted line."""
    times = [time for curve in panel.measured.values() for time in curve.values()]
    every = [*(t.low for t in times), *(t.high for t in times), *panel.predicted.values()]
    size_axis(axes, {n for curve in panel.measured.values() for n in curve})
    time_axis(axes.yaxis, min(every), max(every), "median time")
    for number, (name, curve) in enumerate(panel.measured.items()):
        colour = PALETTE[number]
        middles = [time.middle for time in curve.values()]
        axes.vlines(
            list(curve),
            [time.low for time in curve.values()],
            [time.high for time in curve.values()],
            color=colour,
            lw=1.2,
        )
        axes.plot(list(curve), middles, color=colour, marker=MARKERS[number], ms=4, label=name)
    ordered = dict(sorted(panel.predicted.items()))
    axes.plot(list(ordered), list(ordered.values()), ":", color=MUTED, label="predicted")
    axes.set_title(panel.title)
