"""The times of all algorithms for one problem, beside the lower bound."""

from collections.abc import Mapping
from fractions import Fraction

from matplotlib.figure import Figure

from collwise.figures.schedule_frame import time_axis
from collwise.figures.style import BLUE, FAINT, GREEN, INK, MUTED, WIDTH, beside, look, plain
from collwise.system import formatting


@look()
def candidate_bars(
    times: Mapping[str, Fraction], bound: Fraction, chosen: str, t0: Fraction | None = None
) -> Figure:
    """A bar for every algorithm, the chosen one in colour.

    times: by algorithm, exact seconds.   bound: the lower bound, in exact seconds.
    chosen: an algorithm of `times`.   t0: the unit of times, in exact seconds; None for seconds.
    Where the slowest is far behind, bars are cut at ten times the fastest.
    """
    figure = Figure((WIDTH, 1.1 + 0.26 * len(times)))
    axes = figure.subplots()
    most = min(max(times.values()), 10 * max(min(times.values()), bound))
    scale = formatting.scale_for(most or Fraction(1), t0)
    for row, (name, time) in enumerate(times.items()):
        colour = GREEN if name == chosen else BLUE
        axes.barh(row, scale.value(min(time, most)), 0.7, color=colour)
        text = scale.text(time) if time <= most else f"{scale.text(time)} →"
        beside(axes, text, (scale.value(min(time, most)), row), (4, 0), va="center", color=INK)
    axes.axvline(scale.value(bound), color=MUTED, lw=1, ls=(0, (4, 3)))
    text = f"no schedule can be faster: {scale.text(bound)}"
    beside(axes, text, (scale.value(bound), -0.5), (4, 4), color=MUTED)
    axes.set_yticks(range(len(times)), [plain(name) for name in times])
    axes.set_ylim(len(times) - 0.4, -1.2)
    axes.set_xlim(0, 1.09 * scale.value(most))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_color(FAINT)
    time_axis(axes.xaxis, scale, axes.xaxis.get_major_locator())
    return figure
