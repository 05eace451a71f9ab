"""Curves over the message size: what was measured of the machine, and what the races came to."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isfinite
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures import words
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
from collwise.measure.race import Interval, Race
from collwise.model.profile import MeasuredSize, Mode, Profile

MODES: dict[Mode, tuple[str, str, str]] = {
    "nonblocking": ("non-blocking sends", BLUE, "-"),
    "blocking": ("blocking sends", VERMILION, "--"),
}
"""How each way of sending is called and drawn."""

EXPERIMENTS = (("experiment 1 alone", "^"), ("experiment 2 alone", "v"))
NEAR = 0.1
"""Predictions within this share of what was measured count as good."""


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
        _draw_mode(upper, lower, [p for p in profile.points if p.mode == mode], mode)
    _lam_axis(upper, profile.points)
    times = [t for p in profile.points for t in (p.t0_s, p.t0_s * max(p.lam, 1))]
    time_axis(lower.yaxis, min(times), max(times), "time")
    size_axis(lower, [p.nbytes for p in profile.points])
    upper.set_title("Latency λ = (time until received) / t0")
    lower.set_title("t0, for which the sender is busy, and λ·t0, after which it is received")
    figure.legend(handles=_mode_legend(profile, modes), loc="outside lower center", ncols=4)
    return figure


def _draw_mode(upper: Axes, lower: Axes, points: Sequence[MeasuredSize], mode: Mode) -> None:
    _, colour, dash = MODES[mode]
    segments = [list(group) for _, group in groupby(points, key=lambda p: p.segment)]
    for segment in segments:
        sizes = [p.nbytes for p in segment]
        upper.plot(sizes, [p.lam for p in segment], dash, color=colour, marker="o")
        lower.plot(sizes, [p.t0_s for p in segment], dash, color=colour, marker="o")
        held = [p.t0_s * max(p.lam, 1) for p in segment]
        lower.plot(sizes, held, dash, color=colour, marker="D", markerfacecolor="none", lw=0.8)
    for p in points:
        if p.lam_interval is not None:
            upper.plot([p.nbytes] * 2, p.lam_interval, color=colour, lw=4, alpha=0.3)
        if p.t0_interval_s is not None and p.t0_interval_s[0] > 0:
            lower.plot([p.nbytes] * 2, p.t0_interval_s, color=colour, lw=4, alpha=0.3)
        for lam, (_, marker) in zip(p.lam_experiments, EXPERIMENTS, strict=True):
            if lam is not None:
                upper.plot(p.nbytes, lam, marker, color=colour, markerfacecolor="none", ms=4.5)
    for before, after in zip(segments, segments[1:], strict=False):
        change = (before[-1].nbytes * after[0].nbytes) ** 0.5
        for axes in (upper, lower):
            axes.axvline(change, color=colour, ls=":", lw=1.1)


def _lam_axis(axes: Axes, points: Sequence[MeasuredSize]) -> None:
    """λ from just below 1, or below what was measured, up to the highest; wild intervals are cut."""
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
        text, colour, dash = MODES[mode]
        handles.append(Line2D([], [], color=colour, ls=dash, marker="o", label=f"{text}: λ, t0"))
        handles.append(
            Line2D(
                [], [], color=colour, ls=dash, lw=0.8, marker="D", mfc="none", label=f"{text}: λ·t0"
            )
        )
    for number, (text, marker) in enumerate(EXPERIMENTS):
        if any(p.lam_experiments[number] is not None for p in profile.points):
            handles.append(Line2D([], [], color=MUTED, ls="", marker=marker, mfc="none", label=text))
    if any(p.lam_interval or p.t0_interval_s for p in profile.points):
        handles.append(Line2D([], [], color=MUTED, lw=4, alpha=0.4, label="95 % interval"))
    if any(p.segment for p in profile.points):
        handles.append(Line2D([], [], color=MUTED, lw=1.1, ls=":", label="the protocol changes"))
    handles.append(Patch(color=WASH, label="λ < 1: used as 1"))
    return handles


@look()
def predicted_against_measured(races: Sequence[Race]) -> Figure:
    """Every competitor's predicted time against its measured median; on the diagonal they agree."""
    points = [
        (label, race.predicted_s[label], found)
        for race in usable(races)
        for label, found in race.medians.items()
        if race.predicted_s.get(label, 0) > 0 and found.middle > 0
    ]
    if not points:
        return note("No race with predicted times: there is nothing to compare.")
    figure = Figure((WIDTH, 5.0))
    axes = figure.subplots()
    ends = [t for _, predicted, found in points for t in (predicted, found.middle)]
    time_axis(axes.xaxis, min(ends), max(ends), "predicted")
    time_axis(axes.yaxis, min(ends), max(ends), "measured (median of the slowest rank's time)")
    axes.set_box_aspect(1)
    line = axes.get_xlim()
    below, above = ([t * share for t in line] for share in (1 - NEAR, 1 + NEAR))
    axes.fill_between(line, below, above, color=WASH, lw=0)
    axes.plot(line, line, color=INK, lw=1)
    axes.set_ylim(line)
    names = _styles(_family(label) for label, *_ in points)
    for label, predicted, found in points:
        colour, marker = names[_family(label)]
        _point(axes, predicted, found, colour, marker, filled=True)
    errors = [abs(predicted / found.middle - 1) for _, predicted, found in points]
    axes.set_title(f"Median error {median(errors):.0%} over {words.count(len(points), 'time')}")
    handles = _name_legend(names)
    handles += [Line2D([], [], color=INK, lw=1, label="as predicted")]
    handles += [Patch(color=WASH, label=f"within {NEAR:.0%}")]
    figure.legend(handles=handles, loc="outside right upper")
    return figure


@look()
def speedups(races: Sequence[Race]) -> Figure:
    """How many times as fast as the library's own the best schedule was, over the message size."""
    shown = [race for race in usable(races) if race.best not in race.libraries and race.nbytes > 0]
    if not shown:
        return note("No race against the library's own: there is no speed-up to show.")
    gains = [race.speedup(race.best) for race in shown]
    figure = Figure((WIDTH, 3.8))
    axes = figure.subplots()
    middles = [gain.middle for gain in gains]
    reach = max(max(middles) / min(middles), 2.0) ** 0.5
    low = max(min(g.low for g in gains), min(middles) / reach)
    high = min(max(g.high for g in gains), max(middles) * reach)
    ratio_axis(axes.yaxis, low, high, "speed-up over the library's own")
    size_axis(axes, [race.nbytes for race in shown])
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)
    for line in _lines(shown):
        heights = [race.medians[race.library].middle / race.medians[race.best].middle for race in line]
        axes.plot([race.nbytes for race in line], heights, color=FAINT, lw=1.4, zorder=1.5)
    names = _styles(_family(race.best) for race in shown)
    for race, gain in zip(shown, gains, strict=True):
        colour, marker = names[_family(race.best)]
        _point(axes, race.nbytes, gain, colour, marker, filled=race.winner not in race.libraries)
    handles = _name_legend(names)
    for text, face in (("clearly ahead: chosen", MUTED), ("not clearly: library's own stays", PAPER)):
        handles.append(
            Line2D([], [], ls="", marker="o", color=MUTED, markerfacecolor=face, label=text)
        )
    handles.append(Patch(color=WASH, label="slower than the library's own"))
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def usable(races: Iterable[Race]) -> list[Race]:
    """The races that can be judged: every competitor has samples, and the library's own ran."""
    return [
        race
        for race in races
        if all(race.samples.values()) and any(name in race.samples for name in race.libraries)
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
    axes: Axes, x: float, y: Interval, colour: str, marker: str, *, filled: bool
) -> None:
    """A point with its interval; an end that is not known reaches to the edge of the picture."""
    bottom, top = axes.get_ylim()
    low = max(y.low, bottom)
    high = min(y.high, top) if isfinite(y.high) else top
    axes.plot([x, x], [low, high], color=colour, lw=1.2, zorder=2.1)
    face = colour if filled else PAPER
    axes.plot(x, y.middle, marker, color=colour, markerfacecolor=face, ms=6.5, zorder=2.2)
