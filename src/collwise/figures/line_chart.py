"""Line charts: one or several curves over a common x axis."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from collwise.figures.axes import decimal_ticks
from collwise.figures.style import INK, MARKERS, MUTED, PALETTE, WASH, WIDTH, beside, look, plain

LineLook: TypeAlias = Literal["line", "steps", "points", "dashes"]
MAX_MARKED = 40
"""A line of more points than this has no markers, or small ones."""
STYLES = {"points": "", "dashes": "--"}
THIN_DASHES = (0, (6, 6))
ALIKE = 0.01
"""Two values look the same if they differ by less than this share of the larger one."""
BESIDE = 0.11
"""The distance between markers over one name, as a share of the distance between names."""


class Curve(NamedTuple):
    """A curve: its label, its values by place on the x axis, and its look.

    look: "line" has a marker at every value, unless values are many; "points" has markers only.
    colour: the number of a colour of the palette; the next one if None.
    """

    label: str
    values: Mapping[Any, float]
    look: LineLook = "line"
    colour: int | None = None


@look()
def line_chart(
    lines: Sequence[Curve],
    x: str,
    y: str,
    *,
    title: str = "",
    logarithmic: str = "",
    ticks: Mapping[Any, str] | None = None,
    marks: Mapping[str, float] | None = None,
    level: float | None = None,
    band: tuple[float, float] | None = None,
    zero: bool = False,
) -> Figure:
    """Curves, with a legend if there are several.

    A line that would hide an earlier one is thin and in dashes; markers over names stand side by
    side.

    x, y: what the axes show, with their units.   logarithmic: "x", "y", "xy" or "".
    ticks: by place on the x axis, the texts of ticks, which may be names instead of numbers.
    marks: by word, the place of a vertical line beside which the word stands.
    band: a range of x that is shaded.   level: the value of a horizontal line.
    zero: whether the y axis starts at 0.
    """
    figure = Figure((WIDTH, 4.4))
    axes = figure.subplots()
    named = ticks is not None and all(line.look == "points" for line in lines)
    for i, line in enumerate(lines):
        colour = PALETTE[(i if line.colour is None else line.colour) % len(PALETTE)]
        many = len(line.values) > MAX_MARKED
        marked = line.look == "points" or (line.look == "line" and not many)
        hides = line.look == "line" and any(_alike(line, other) for other in lines[:i])
        shift = BESIDE * (i - (len(lines) - 1) / 2) if named else 0
        axes.plot(
            [at + shift for at in line.values],
            list(line.values.values()),
            linestyle=THIN_DASHES if hides else STYLES.get(line.look, "-"),
            linewidth=1 if hides else 1.6,
            drawstyle="steps-post" if line.look == "steps" else "default",
            marker=MARKERS[i % len(MARKERS)] if marked else "",
            ms=2.5 if many or hides else 4.5,
            color=colour,
            label=plain(line.label),
        )
    for letter in logarithmic:
        axes.set(**{f"{letter}scale": "log"})
        axis = axes.xaxis if letter == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
        axis.set_major_locator(FixedLocator(decimal_ticks(*axis.get_view_interval())))
        axis.set_minor_locator(NullLocator())
    if band:
        axes.axvspan(*band, color=WASH, lw=0, zorder=0)
    for word, at in (marks or {}).items():
        axes.axvline(at, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=1)
        place = ("data", "axes fraction")
        beside(axes, word, (at, 1), (4, -4), va="top", color=MUTED, xycoords=place)
    if ticks is not None:
        axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels(list(ticks.values()))
    if level is not None:
        axes.axhline(level, color=INK, lw=0.9)
    if zero:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    if len(lines) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(lines), 5))
    return figure


def _alike(line: Curve, other: Curve) -> bool:
    """Whether a line looks like another one at more than half of its own values."""
    pairs = [(value, other.values[at]) for at, value in line.values.items() if at in other.values]
    same = sum(abs(a - b) <= ALIKE * max(abs(a), abs(b)) for a, b in pairs)
    return same > len(line.values) / 2
