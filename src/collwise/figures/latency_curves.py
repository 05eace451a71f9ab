"""Curves of the measured λ and t0 over the message size, for blocking and non-blocking sends."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from collwise.figures.axes import ratio_axis, size_axis, time_axis
from collwise.figures.style import BLUE, INK, MUTED, VERMILION, WASH, WIDTH, look
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, Mode


class ModeStyle(NamedTuple):
    """The name and the look of a way of sending: non-blocking or blocking."""

    text: str
    colour: str
    dash: str
    shift: float
    """The factor that moves points away from their sizes, so that both modes can be seen."""
    dot_phase: float
    """The phase of this mode's dotted lines, which may coincide with the other mode's."""


MODES: dict[Mode, ModeStyle] = {
    "nonblocking": ModeStyle("non-blocking", BLUE, "-", 0.94, 0),
    "blocking": ModeStyle("blocking", VERMILION, "--", 1 / 0.94, 3),
}
EXPERIMENTS = (("experiment 1", "^"), ("experiment 2", "v"))


@look()
def latency_curves(profile: Profile) -> Figure:
    """λ(m) above, t0(m) and λ·t0 below, over the message size m, for each way of sending.

    Lines break where the library changes its protocol.  Intervals are 95 %.  A point of λ combines
    two experiments; triangles show the λ of each.
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
    handles = _legend_handles(profile.points, modes)
    figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def _draw_mode(upper: Axes, lower: Axes, points: Sequence[MeasuredSize], style: ModeStyle) -> None:
    colour = style.colour
    segments = [list(group) for _, group in groupby(points, key=lambda p: p.segment)]
    for segment in segments:
        sizes = [p.nbytes * style.shift for p in segment]
        for axes, values in ((upper, [p.lam for p in segment]), (lower, [p.t0_s for p in segment])):
            axes.plot(sizes, values, style.dash, color=colour, marker="o", zorder=2.2)
        latencies = [p.t0_s * max(p.lam, 1) for p in segment]
        lower.plot(sizes, latencies, style.dash, color=colour, marker="D", mfc="none", lw=0.8)
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
            axes.axvline(change, color=colour, ls=(style.dot_phase, (2, 4)), lw=1.2)


def _lam_axis(axes: Axes, points: Sequence[MeasuredSize]) -> None:
    """Set up the λ axis around 1 and the λ, logarithmic if one is above 12; cut long intervals."""
    lams = [lam for p in points for lam in (p.lam, *p.lam_experiments) if lam is not None]
    ends = [end for p in points if p.lam_interval for end in p.lam_interval]
    low, high = min(1.0, *lams), max(1.0, *lams)
    if high > 12:
        ratio_axis(axes.yaxis, max(low, 0.1), high, "")
    else:
        reach = max(high - low, 0.5)
        low, high = max(min([low, *ends]), low - reach / 2), min(max([high, *ends]), high + reach)
        margin = max(0.06 * (high - low), 0.05)
        axes.set_ylim(low - margin, high + margin)
    axes.set_ylabel("λ, in units of t0")
    axes.axhspan(axes.get_ylim()[0], 1, color=WASH, lw=0)
    axes.axhline(1, color=INK, lw=1)


def _legend_handles(points: Sequence[MeasuredSize], modes: Sequence[Mode]) -> list[Artist]:
    """An entry of the legend for each kind of mark that occurs."""
    looks: list[dict[str, Any]] = []
    for mode in modes:
        text, colour, dash, *_ = MODES[mode]
        looks.append({"label": f"{text}: λ, t0", "color": colour, "ls": dash, "marker": "o"})
        hollow = {"color": colour, "ls": dash, "lw": 0.8, "marker": "D", "mfc": "none"}
        looks.append({"label": f"{text}: λ·t0", **hollow})
    for number, (text, marker) in enumerate(EXPERIMENTS):
        if any(p.lam_experiments[number] is not None for p in points):
            looks.append({"label": text, "ls": "", "marker": marker, "mfc": "none"})
    if any(p.lam_interval or p.t0_interval_s for p in points):
        looks.append({"label": "95 % interval", "lw": 4, "alpha": 0.4})
    if any(p.segment for p in points):
        looks.append({"label": "protocol changes", "lw": 1.2, "ls": (0, (2, 4))})
    lines = [Line2D([], [], **{"color": MUTED, **look}) for look in looks]
    return [*lines, Patch(color=WASH, label="λ < 1: used as 1")]
