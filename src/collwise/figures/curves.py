"""Curves over the message size: what was measured of the machine, and what the races came to."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import isfinite
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures.axes import ratio_axis, size_axis, time_axis
from collwise.figures.style import (
    BLUE,
    FAINT,
    INK,
    MARKERS,
    MUTED,
    PALETTE,
    PAPER,
    VERMILION,
    WASH,
    WIDTH,
    look,
    note,
    plain,
)
from collwise.measure.race import Race
from collwise.measure.statistics import Interval
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, Mode
from collwise.system import formatting


class ModeStyle(NamedTuple):
    """How a way of sending is called and drawn."""

    text: str
    colour: str
    dash: str
    shift: float
    """Its points stand beside their sizes, so that both modes can be seen: by this factor."""
    dots: float
    """The phase of its dotted lines, which may coincide with the other's."""


MODES: dict[Mode, ModeStyle] = {
    "nonblocking": ModeStyle("non-blocking", BLUE, "-", 0.94, 0),
    "blocking": ModeStyle("blocking", VERMILION, "--", 1 / 0.94, 3),
}

EXPERIMENTS = (("experiment 1", "^"), ("experiment 2", "v"))
NEAR = (0.9, 1.1)
"""Measured within these multiples of what was predicted counts as good."""


@look()
def latency_curves(profile: Profile) -> Figure:
    """λ(m) above and t0(m) below, over the message size, for each way of sending.

    Lines break where the library changes its protocol; intervals are 95 %; the two experiments that
    a point combines stand beside it as triangles.
    """
    figure = Figure((WIDTH, 6.2))
    upper, lower = figure.subplots(2, 1, sharex=True)
    modes = [mode for mode in MODES if any(p.mode == mode for p in profile.points)]
    for mode in modes:
        _draw_mode(upper, lower, [p for p in profile.points if p.mode == mode], MODES[mode])
    _lam_axis(upper, profile.points)
    times = [t for p in profile.points for t in (p.t0_s, p.t0_s * max(p.lam, 1))]
    time_axis(lower.yaxis, min(times), max(times), "time")
    size_axis(lower, [p.nbytes for p in profile.points])
    upper.set_title("λ = (time until the message is received) / t0")
    lower.set_title("t0: the sender is busy; λ·t0: the message is received")
    figure.legend(handles=_mode_legend(profile, modes), loc="outside lower center", ncols=5)
    return figure


def _draw_mode(upper: Axes, lower: Axes, points: Sequence[MeasuredSize], style: ModeStyle) -> None:
    colour = style.colour
    segments = [list(group) for _, group in groupby(points, key=lambda p: p.segment)]
    for segment in segments:
        sizes = [p.nbytes * style.shift for p in segment]
        held = [p.t0_s * max(p.lam, 1) for p in segment]
        for axes, values in ((upper, [p.lam for p in segment]), (lower, [p.t0_s for p in segment])):
            axes.plot(sizes, values, style.dash, color=colour, marker="o", zorder=2.2)
        lower.plot(sizes, held, style.dash, color=colour, marker="D", mfc="none", lw=0.8)
    for p in points:
        x = p.nbytes * style.shift
        if p.lam_interval is not None:
            upper.plot([x, x], p.lam_interval, color=colour, lw=4, alpha=0.3)
        if p.t0_interval_s is not None:
            low = max(p.t0_interval_s[0], p.t0_s / 1000)  # the scale is logarithmic
            lower.plot([x, x], [low, p.t0_interval_s[1]], color=colour, lw=4, alpha=0.3)
        for lam, (_, marker) in zip(p.lam_experiments, EXPERIMENTS, strict=True):
            if lam is not None:
                upper.plot(x, lam, marker, color=colour, mfc="none", ms=5.5, mew=0.8)
    for before, after in pairwise(segments):
        change = (before[-1].nbytes * after[0].nbytes) ** 0.5
        for axes in (upper, lower):
            axes.axvline(change, color=colour, ls=(style.dots, (2, 4)), lw=1.2)


def _lam_axis(axes: Axes, points: Sequence[MeasuredSize]) -> None:
    """λ from just below 1 or what was measured, up to the highest; wild intervals are cut."""
    middles = [lam for p in points for lam in (p.lam, *p.lam_experiments) if lam is not None]
    ends = [end for p in points if p.lam_interval for end in p.lam_interval]
    low, high = min(1.0, *middles), max(1.0, *middles)
    if high > 12:
        ratio_axis(axes.yaxis, max(low, 0.1), high, "λ, in units of t0")
    else:
        reach = max(high - low, 0.5)
        low, high = max(min([low, *ends]), low - reach / 2), min(max([high, *ends]), high + reach)
        room = max(0.06 * (high - low), 0.05)
        axes.set_ylim(low - room, high + room)
        axes.set_ylabel("λ, in units of t0")
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)


def _mode_legend(profile: Profile, modes: Sequence[Mode]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for mode in modes:
        text, colour, dash, *_ = MODES[mode]
        for marker, width, face, what in (("o", 1.6, colour, "λ, t0"), ("D", 0.8, "none", "λ·t0")):
            line = Line2D([], [], color=colour, ls=dash, lw=width, marker=marker, mfc=face)
            line.set_label(f"{text}: {what}")
            handles.append(line)
    for number, (text, marker) in enumerate(EXPERIMENTS):
        if any(p.lam_experiments[number] is not None for p in profile.points):
            handles.append(
                Line2D([], [], color=MUTED, ls="", marker=marker, mfc="none", label=text)
            )
    if any(p.lam_interval or p.t0_interval_s for p in profile.points):
        handles.append(Line2D([], [], color=MUTED, lw=4, alpha=0.4, label="95 % interval"))
    if any(p.segment for p in profile.points):
        change = Line2D([], [], color=MUTED, lw=1.2, ls=(0, (2, 4)), label="protocol changes")
        handles.append(change)
    handles.append(Patch(color=WASH, label="λ < 1: used as 1"))
    return handles


@look()
def predicted_against_measured(races: Sequence[Race]) -> Figure:
    """Every competitor's predicted time against its measured median; on the diagonal they agree."""
    points = [
        (race, label, race.predicted_s[label], found)
        for race in usable(races)
        for label, found in race.medians.items()
        if race.nbytes > 0 and race.predicted_s.get(label, 0) > 0 and found.middle > 0
    ]
    if not points:
        return note("No race with predicted times: there is nothing to compare.")
    figure = Figure((WIDTH, 5.0))
    left, right = figure.subplots(1, 2)
    ends = [t for _, _, predicted, found in points for t in (predicted, found.middle)]
    time_axis(left.xaxis, min(ends), max(ends), "predicted")
    time_axis(left.yaxis, min(ends), max(ends), "measured median")
    line = left.get_xlim()
    left.fill_between(line, *([t * s for t in line] for s in NEAR), color=WASH, lw=0)
    left.plot(line, line, color=INK, lw=1)
    ratios = [found.middle / predicted for _, _, predicted, found in points]
    ratio_axis(right.yaxis, min(*ratios, NEAR[0]), max(*ratios, NEAR[1]), "measured / predicted")
    size_axis(right, [race.nbytes for race, *_ in points])
    low, high = right.get_xlim()
    beside = (high / low) ** 0.014  # competitors of one size stand side by side
    right.axhspan(*NEAR, color=WASH, lw=0)
    right.axhline(1, color=INK, lw=1)
    names = _styles(_family(label) for _, label, *_ in points)
    for race, label, predicted, found in points:
        _point(left, predicted, found, *names[_family(label)])
        share = Interval(*(time / predicted for time in found))
        place = list(names).index(_family(label)) - (len(names) - 1) / 2
        _point(right, race.nbytes * beside**place, share, *names[_family(label)])
    error = median(abs(1 / ratio - 1) for ratio in ratios)
    left.set_title("Time of each competitor")
    right.set_title(f"Median error {error:.0%} over {formatting.count(len(points), 'time')}")
    handles = _name_legend(names)
    handles += [Line2D([], [], color=INK, lw=1, label="as predicted")]
    handles += [Patch(color=WASH, label="within 10 %")]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


@look()
def speedups(races: Sequence[Race], blocking: Sequence[Race] = ()) -> Figure:
    """How many times as fast as the library's own the best schedule was, over the message size.

    races: of persistent calls.   blocking: of blocking ones, for a picture of its own beside.
    """
    forms = {"persistent calls": _compared(races), "blocking calls": _compared(blocking)}
    forms = {form: shown for form, shown in forms.items() if shown}
    if not forms:
        return note("No race against the library's own: there is no speed-up to show.")
    figure = Figure((WIDTH, 3.8))
    every = [(race, race.speedup(race.best)) for shown in forms.values() for race in shown]
    middles = [gain.middle for _, gain in every]
    reach = max(max(middles) / min(middles), 2.0) ** 0.5
    low = max(min(gain.low for _, gain in every), min(middles) / reach)
    high = min(max(gain.high for _, gain in every), max(middles) * reach)
    names = _styles(_family(race.best) for race, _ in every)
    panels = figure.subplots(1, len(forms), sharey=True, squeeze=False)[0]
    for axes, (form, shown) in zip(panels, forms.items(), strict=True):
        title = "speed-up over the library's own" if axes is panels[0] else ""
        ratio_axis(axes.yaxis, low, high, title)
        size_axis(axes, [race.nbytes for race in shown])
        axes.set_title(form)
        _draw_speedups(axes, shown, names)
    handles = _name_legend(names)
    for text, face in (
        ("clearly ahead: chosen", MUTED),
        ("not clearly: library's own stays", PAPER),
    ):
        handles.append(
            Line2D([], [], ls="", marker="o", color=MUTED, markerfacecolor=face, label=text)
        )
    handles.append(Patch(color=WASH, label="slower than the library's own"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _compared(races: Iterable[Race]) -> list[Race]:
    """Those of which a speed-up can be drawn."""
    return [race for race in usable(races) if race.best not in race.libraries and race.nbytes > 0]


def _draw_speedups(axes: Axes, shown: Sequence[Race], names: Mapping[str, tuple[str, str]]) -> None:
    """A point with its interval for every race, joined where they differ in the size only."""
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)
    for line in _lines(shown):
        heights = [
            race.medians[race.library].middle / race.medians[race.best].middle for race in line
        ]
        axes.plot([race.nbytes for race in line], heights, color=FAINT, lw=1.4, zorder=1.5)
    for race in shown:
        colour, marker = names[_family(race.best)]
        chosen = race.winner not in race.libraries
        _point(axes, race.nbytes, race.speedup(race.best), colour, marker, chosen)


def usable(races: Iterable[Race]) -> list[Race]:
    """The races that can be judged: all took some time, and the library's own was among them."""
    return [
        race
        for race in races
        if all(times and min(times) > 0 for times in race.samples.values())
        and any(name in race.samples for name in race.libraries)
    ]


def _lines(races: Iterable[Race]) -> Iterator[list[Race]]:
    """The races that differ in nothing but the size, by size."""
    ordered = sorted(races, key=lambda r: (r.collective, r.ranks, r.root, r.nbytes))
    for _, group in groupby(ordered, key=lambda r: (r.collective, r.ranks, r.root)):
        yield list(group)


def _family(label: str) -> str:
    """The competitor without its collective and its settings, which differ from size to size."""
    return plain(re.sub(r"\([^()]*=[^()]*\)", "", label).rpartition("/")[2], 34)


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for every name, in order of first appearance."""
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        turn = len(found)
        shift = turn + turn // len(PALETTE)
        found.setdefault(name, (PALETTE[turn % len(PALETTE)], MARKERS[shift % len(MARKERS)]))
    return found


def _name_legend(names: dict[str, tuple[str, str]]) -> list[Line2D | Patch]:
    return [
        Line2D([], [], ls="", color=colour, marker=marker, label=name)
        for name, (colour, marker) in names.items()
    ]


def _point(
    axes: Axes, x: float, y: Interval, colour: str, marker: str, filled: bool = True
) -> None:
    """A point with its interval; an end that is not known reaches to the edge of the picture."""
    bottom, top = axes.get_ylim()
    low = max(y.low, bottom)
    high = min(y.high, top) if isfinite(y.high) else top
    axes.plot([x, x], [low, high], color=colour, lw=1.2, zorder=2.1)
    face = colour if filled else PAPER
    axes.plot(x, y.middle, marker, color=colour, markerfacecolor=face, ms=6.5, zorder=2.2)
