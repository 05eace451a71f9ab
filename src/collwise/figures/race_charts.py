"""The results of races: predicted against measured times, and speed-ups over the library's own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import isfinite
from statistics import median

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures import style
from collwise.figures.axes import ratio_axis, size_axis, time_axis
from collwise.figures.style import FAINT, INK, MUTED, PAPER, WASH
from collwise.measure.race import Race
from collwise.measure.statistics import Interval, misprediction
from collwise.system import formatting

GOOD = (0.9, 1.1)
"""A prediction is good if what was measured is within these multiples of it."""


def comparable_races(races: Iterable[Race]) -> list[Race]:
    """The races in which everybody took some time and the library's own ran."""
    return [
        race
        for race in races
        if all(times and min(times) > 0 for times in race.samples.values())
        and any(name in race.samples for name in race.libraries)
    ]


@style.look()
def predicted_against_measured(races: Sequence[Race]) -> Figure:
    """Every competitor's predicted time against its measured median; on the diagonal they agree."""
    points = [
        (race.nbytes, _short_name(label), race.predicted_s[label], measured)
        for race in comparable_races(races)
        for label, measured in race.medians.items()
        if race.nbytes > 0 and race.predicted_s.get(label, 0) > 0 and measured.middle > 0
    ]
    if not points:
        return style.note("No race with predicted times: there is nothing to compare.")
    figure = Figure((style.WIDTH, 5.0))
    left, right = figure.subplots(1, 2)
    ends = [t for *_, predicted, measured in points for t in (predicted, measured.middle)]
    time_axis(left.xaxis, min(ends), max(ends), "predicted")
    time_axis(left.yaxis, min(ends), max(ends), "measured median")
    diagonal = left.get_xlim()
    left.fill_between(diagonal, *([t * s for t in diagonal] for s in GOOD), color=WASH, lw=0)
    left.plot(diagonal, diagonal, color=INK, lw=1)
    ratios = [measured.middle / predicted for *_, predicted, measured in points]
    ratio_axis(right.yaxis, min(*ratios, GOOD[0]), max(*ratios, GOOD[1]), "measured / predicted")
    size_axis(right, [nbytes for nbytes, *_ in points])
    low, high = right.get_xlim()
    beside = (high / low) ** 0.014  # competitors of one size stand side by side
    right.axhspan(*GOOD, color=WASH, lw=0)
    right.axhline(1, color=INK, lw=1)
    looks = _looks(name for _, name, *_ in points)
    for nbytes, name, predicted, measured in points:
        _draw_point(left, predicted, measured, *looks[name])
        ratio = Interval(*(time / predicted for time in measured))
        place = list(looks).index(name) - (len(looks) - 1) / 2
        _draw_point(right, nbytes * beside**place, ratio, *looks[name])
    factor = median(misprediction(predicted, measured.middle) for *_, predicted, measured in points)
    left.set_title("Time of each competitor")
    right.set_title(
        f"Off by a factor of {factor:.2f} in the median of {formatting.count(len(points), 'time')}"
    )
    handles = [*_name_handles(looks), Line2D([], [], color=INK, lw=1, label="as predicted")]
    handles.append(Patch(color=WASH, label="within 10 %"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


@style.look()
def speedups(races: Sequence[Race], blocking: Sequence[Race] = ()) -> Figure:
    """How many times as fast as the library's own the best schedule was, over the message size.

    races: of persistent calls.   blocking: of blocking ones, for a second panel.
    """
    forms = {"persistent calls": _with_speedup(races), "blocking calls": _with_speedup(blocking)}
    forms = {form: shown for form, shown in forms.items() if shown}
    if not forms:
        return style.note("No race against the library's own: there is no speed-up to show.")
    every = [race for shown in forms.values() for race in shown]
    gains = [race.speedup(race.best) for race in every]
    middles = [gain.middle for gain in gains]
    reach = max(max(middles) / min(middles), 2.0) ** 0.5
    low = max(min(gain.low for gain in gains), min(middles) / reach)
    high = min(max(gain.high for gain in gains), max(middles) * reach)
    looks = _looks(_short_name(race.best) for race in every)
    figure = Figure((style.WIDTH, 3.8))
    panels = figure.subplots(1, len(forms), sharey=True, squeeze=False)[0]
    for axes, (form, shown) in zip(panels, forms.items(), strict=True):
        label = "speed-up over the library's own" if axes is panels[0] else ""
        ratio_axis(axes.yaxis, low, high, label)
        size_axis(axes, [race.nbytes for race in shown])
        axes.set_title(form)
        _draw_speedups(axes, shown, looks)
    handles = _name_handles(looks)
    chosen = {"clearly ahead: chosen": MUTED, "not clearly: library's own stays": PAPER}
    for text, face in chosen.items():
        handles.append(Line2D([], [], ls="", marker="o", color=MUTED, mfc=face, label=text))
    handles.append(Patch(color=WASH, label="slower than the library's own"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _with_speedup(races: Iterable[Race]) -> list[Race]:
    """Those in which a schedule ran beside the library's own."""
    return [
        race
        for race in comparable_races(races)
        if race.best not in race.libraries and race.nbytes > 0
    ]


def _draw_speedups(axes: Axes, races: Sequence[Race], looks: Mapping[str, tuple[str, str]]) -> None:
    """A point with its interval for every race, joined where they differ in the size only."""
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)
    ordered = sorted(races, key=lambda r: (r.collective, r.ranks, r.root, r.nbytes))
    for _, group in groupby(ordered, key=lambda r: (r.collective, r.ranks, r.root)):
        line = [(r.nbytes, r.medians[r.library].middle / r.medians[r.best].middle) for r in group]
        axes.plot(*zip(*line, strict=True), color=FAINT, lw=1.4, zorder=1.5)
    for race in races:
        look = looks[_short_name(race.best)]
        chosen = race.winner not in race.libraries
        _draw_point(axes, race.nbytes, race.speedup(race.best), *look, filled=chosen)


def _draw_point(
    axes: Axes, x: float, y: Interval, colour: str, marker: str, filled: bool = True
) -> None:
    """A point with its interval; an end that is not known reaches to the edge of the picture."""
    bottom, top = axes.get_ylim()
    low, high = max(y.low, bottom), min(y.high, top) if isfinite(y.high) else top
    axes.plot([x, x], [low, high], color=colour, lw=1.2, zorder=2.1)
    face = colour if filled else PAPER
    axes.plot(x, y.middle, marker, color=colour, mfc=face, ms=6.5, zorder=2.2)


def _short_name(label: str) -> str:
    """A competitor without its collective and its settings, which differ from size to size."""
    return style.plain(re.sub(r"\([^()]*=[^()]*\)", "", label).rpartition("/")[2], 34)


def _looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for every name, in order of first appearance."""
    colours, markers = style.PALETTE, style.MARKERS
    return {
        name: (colours[i % len(colours)], markers[(i + i // len(colours)) % len(markers)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def _name_handles(looks: Mapping[str, tuple[str, str]]) -> list[Artist]:
    return [
        Line2D([], [], ls="", color=colour, marker=marker, label=name)
        for name, (colour, marker) in looks.items()
    ]
