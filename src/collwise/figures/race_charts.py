"""The results of races: speed-ups over the library's own collective, measured and predicted."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import nan
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures import style
from collwise.figures.axes import ratio_axis, size_axis
from collwise.figures.style import FAINT, INK, MUTED, PAPER, WASH
from collwise.measure.race import Race
from collwise.profiles.records import Form
from collwise.schedule.collectives import kind_of

_HOLLOW: dict[str, Any] = {"color": MUTED, "mfc": "none", "ms": 4.5}


def comparable_races(races: Iterable[Race]) -> list[Race]:
    """The races in which the library's own collective ran and all measured times are above 0."""
    return [
        race
        for race in races
        if all(times and min(times) > 0 for times in race.samples.values())
        and any(name in race.samples for name in race.libraries)
    ]


@style.look()
def speedups(
    races: Mapping[Form, Sequence[Race]],
    bounds_s: Mapping[int, float] = MappingProxyType({}),
) -> Figure:
    """A chart of speed-ups over message size: the library's time over that of `race.best`.

    `race.best` is the fastest besides the defaults, perhaps another algorithm of the library.
    races: by form of calls, the races for a panel; candidates have the labels of plans.
    bounds_s: for each size, a lower bound in seconds.
    A race is left out if it has 0 bytes or a time of 0, or if only defaults or no default ran.
    """
    forms = {form: shown for form, every in races.items() if (shown := _with_speedup(every))}
    if not forms:
        return style.note("No race against the library's own: there is no speed-up to show.")
    all_shown = [race for shown in forms.values() for race in shown]
    gains = [race.speedup(race.best) for race in all_shown]
    predicted = [gain for r in all_shown if (gain := _over_library(r, r.predicted_s.get(r.best)))]
    middles = [gain.middle for gain in gains]
    reach = max(max(middles) / min(middles), 2.0) ** 0.5
    low = max(min(gain.low for gain in gains), min(middles) / reach)
    high = min(max(gain.high for gain in gains), max(middles) * reach)
    low, high = min([low, *predicted]), max([high, *predicted])
    looks = _looks(_short_name(race.best) for race in all_shown)
    figure = Figure((style.WIDTH, 3.8))
    panels = figure.subplots(1, len(forms), sharey=True, squeeze=False)[0]
    for axes, (form, shown) in zip(panels, forms.items(), strict=True):
        label = "speed-up over the library's own" if axes is panels[0] else ""
        ratio_axis(axes.yaxis, low, high, label)
        has_sources = kind_of(shown[0].collective).has_sources
        what = "bytes of all sources together" if has_sources else "message size"
        size_axis(axes, [race.nbytes for race in shown], what)
        axes.set_title(f"{form} calls")
        _draw_speedups(axes, shown, looks, bounds_s)
    chosen = {"clearly ahead: chosen": MUTED, "not clearly: library's own stays": PAPER}
    points = [*((*look, look[0], name) for name, look in looks.items()),
              *((MUTED, "o", face, text) for text, face in chosen.items())]  # fmt: skip
    handles: list[Artist] = [
        Line2D([], [], ls="", color=colour, marker=marker, mfc=face, label=label)
        for colour, marker, face, label in points
    ]
    if predicted:
        handles.append(Line2D([], [], ls=":", marker="D", label="as predicted", **_HOLLOW))
    if bounds_s:
        handles.append(Line2D([], [], color=MUTED, lw=1, label="limit by the model"))
    handles.append(Patch(color=WASH, label="slower than the library's own"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _with_speedup(races: Iterable[Race]) -> list[Race]:
    """The comparable races of > 0 bytes in which one besides the library's defaults finished."""
    return [
        race
        for race in comparable_races(races)
        if race.best not in race.libraries and race.nbytes > 0
    ]


def _over_library(race: Race, time_s: float | None) -> float | None:
    """The library's measured time over `time_s`; None if `time_s` is None or 0."""
    return race.medians[race.library].middle / time_s if time_s else None


def _draw_speedups(
    axes: Axes,
    races: Sequence[Race],
    looks: Mapping[str, tuple[str, str]],
    bounds_s: Mapping[int, float],
) -> None:
    """Draw each race's speed-up with its interval, and lines: measured, predicted, bound."""
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)
    ordered = sorted(races, key=lambda r: (r.collective, r.ranks, r.root, r.nbytes))
    for _, group in groupby(ordered, key=lambda r: (r.collective, r.ranks, r.root)):
        joined = list(group)
        sizes = [race.nbytes for race in joined]
        measured = [_over_library(r, r.medians[r.best].middle) or nan for r in joined]
        axes.plot(sizes, measured, color=FAINT, lw=1.4, zorder=1.5)
        ideal = [_over_library(r, r.predicted_s.get(r.best)) or nan for r in joined]
        axes.plot(sizes, ideal, ":D", lw=0.9, zorder=1.8, **_HOLLOW)
        limits = [_over_library(r, bounds_s.get(r.nbytes)) or nan for r in joined]
        axes.plot(sizes, limits, color=MUTED, lw=1, zorder=1.6)
    bottom, top = axes.get_ylim()
    for race in races:
        colour, marker = looks[_short_name(race.best)]
        gain = race.speedup(race.best)
        ends = np.clip((gain.low, gain.high), bottom, top)
        axes.plot([race.nbytes] * 2, ends, color=colour, lw=1.2, zorder=2.1)
        face = PAPER if race.winner in race.libraries else colour
        axes.plot(race.nbytes, gain.middle, marker, color=colour, mfc=face, ms=6.5, zorder=2.2)


def _short_name(label: str) -> str:
    """A competitor's name without its collective and its settings, which differ by size."""
    return style.plain(re.sub(r"\([^()]*=[^()]*\)", "", label).rpartition("/")[2], 34)


def _looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for every name, in order of first appearance."""
    colours, markers = style.PALETTE, style.MARKERS
    return {
        name: (colours[i % len(colours)], markers[(i + i // len(colours)) % len(markers)])
        for i, name in enumerate(dict.fromkeys(names))
    }
