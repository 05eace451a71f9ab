"""A schedule in time: a row per rank, what it sends, and when messages arrive."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from collwise.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MUTED,
    NO_TIME,
    NOTHING,
    PAPER,
    VERMILION,
    WASH,
    WIDTH,
    look,
    note,
)
from collwise.figures.titles import title
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing, Transfer

MOST_LABELLED_ROWS = 32
MOST_ARROWS = 130
"""Of more messages than this the flights are lines without heads."""
MOST_FLIGHTS = 1200
"""Of more messages than this no flights are drawn, and a rank's sends in a row are one bar."""
_ARROW, _DIGIT, _MARGIN = 0.082, 0.062, 0.05
"""Inches: parts of a label in a bar, and the room around it."""
_DOT = 0.055
"""Inches: the radius of a large dot, and of the tip of the arrow into it."""
_LEAST_BAR = 0.2
"""Inches: shorter bars have no labels."""


@look()
def timeline(
    timing: Timing, t0: Fraction | None = None, schedule: Schedule | None = None
) -> Figure:
    """A Gantt chart: bars while a send keeps its rank's port busy, arrows while a message flies.

    A dot is a receipt; a large one, the last receipt of its rank.  On a network with links, thin
    bars show for how long a send waited for them.  Times are in a unit of seconds, or in units of
    t0 (exact seconds) if it is given.   schedule: what was timed, for the title, and for who has
    data from the start; without it, who sends before anything was received.
    """
    if not timing.completion:
        above = title(schedule.problem, schedule.algorithm) if schedule is not None else ""
        return note(NO_TIME if timing.transfers else NOTHING, title=above)
    scale = formatting.scale_for(timing.completion, t0)
    ranks = len(timing.finish)
    labelled = ranks <= MOST_LABELLED_ROWS
    row = 0.27 if labelled else max(5.5 / ranks, 0.004)
    figure = Figure((WIDTH, 1.65 + max(row * ranks, 0.6)))
    axes = figure.subplots()
    end = scale.value(timing.completion)
    axes.set_xlim(-0.01 * end, 1.04 * end)
    axes.set_ylim(ranks - 0.4, -0.6)
    _draw_rows(axes, timing, scale, _givers(schedule))
    _draw_sends(axes, timing, scale)
    _draw_waits(axes, timing, scale)
    _draw_flights(axes, timing.transfers, scale)
    _draw_receipts(axes, timing.transfers, scale, small=not labelled)
    axes.axvline(end, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    complete = scale.text_with_unit(timing.completion)
    above = f"Complete after {complete}"
    if schedule is not None:
        above = title(schedule.problem, schedule.algorithm, complete)
    axes.set_title(above)
    axes.set_xlabel(f"time ({scale.name})")
    axes.set_ylabel("rank")
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: scale.text(x * scale.length_s)))
    axes.yaxis.set_minor_locator(NullLocator())
    if labelled:
        axes.yaxis.set_major_locator(FixedLocator(range(ranks)))
        axes.tick_params(axis="y", length=0)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    figure.legend(handles=_legend(timing), loc="outside lower center", ncols=5)
    return figure


def _givers(schedule: Schedule | None) -> Collection[int]:
    """The ranks that have data from the start, as far as the problem says."""
    if schedule is None:
        return ()
    problem = schedule.problem
    if problem.kind.combines:
        return range(problem.ranks)
    return {source.rank for source in problem.sources} or {problem.root}


def _draw_rows(
    axes: Axes, timing: Timing, scale: formatting.Scale, givers: Collection[int]
) -> None:
    """A base line per rank, broad from the moment it holds something to pass on."""
    end, ranks = scale.value(timing.completion), len(timing.finish)
    since = {**_held(timing), **dict.fromkeys(givers, Fraction(0))}
    held = [(scale.value(start), end, rank) for rank, start in since.items()]
    axes.add_collection(
        PolyCollection(_boxes(held, 0.75), facecolors=WASH, edgecolors="none", zorder=0.5)
    )
    if ranks <= 2 * MOST_LABELLED_ROWS:
        lines = [((0, rank), (end, rank)) for rank in range(ranks)]
        axes.add_collection(LineCollection(lines, colors=FAINT, linewidths=0.6))


def _held(timing: Timing) -> dict[int, Fraction]:
    """By rank, since when it holds something: its first receipt, or 0 if it sends before that."""
    held: dict[int, Fraction] = {}
    for transfer in timing.transfers:
        seen = held.get(transfer.target, transfer.received)
        held[transfer.target] = min(seen, transfer.received)
    for transfer in timing.transfers:
        if transfer.source not in held or transfer.start < held[transfer.source]:
            held[transfer.source] = Fraction(0)
    return held


def _draw_sends(axes: Axes, timing: Timing, scale: formatting.Scale) -> None:
    """Bars while ports are busy; with the receiver's rank inside where there is room."""
    inch = scale.value(timing.completion) / (WIDTH - 1.2)
    bars = []
    merged = len(timing.transfers) > MOST_FLIGHTS
    for rank, sends in _by_source(timing.transfers).items():
        times = [(scale.value(t.start), scale.value(t.sent)) for t in sends]
        bars += [(start, end, rank) for start, end in (_joined(times) if merged else times)]
    labelled = len(timing.finish) <= MOST_LABELLED_ROWS
    fine = len(timing.finish) > 2 * MOST_LABELLED_ROWS  # rows so thin that edges hide them
    apart = not merged and min(end - start for start, end, _ in bars) > 0.06 * inch
    axes.add_collection(
        PolyCollection(
            _boxes(bars, 0.56 if labelled else 0.84),
            facecolors=BLUE,
            edgecolors=BLUE if fine else PAPER,
            linewidths=0.4 if fine else 0.6 if apart else 0,
            zorder=2,
        )
    )
    if labelled and not merged:
        _label_sends(axes, timing, scale, inch)


def _label_sends(axes: Axes, timing: Timing, scale: formatting.Scale, inch: float) -> None:
    """In each bar the rank that it sends to, beside the receipts that fall into it.

    inch: in units of the scale.
    """
    halo = [withStroke(linewidth=2, foreground=BLUE)]
    dots: dict[int, list[float]] = {}
    for t in sorted(timing.transfers, key=lambda t: t.received):
        dots.setdefault(t.target, []).append(scale.value(t.received))
    for t in timing.transfers:
        start, end = scale.value(t.start), scale.value(t.sent)
        for text in (f"→{t.target}", str(t.target)):
            width = (_MARGIN + _ARROW * text.startswith("→") + _DIGIT * len(str(t.target))) * inch
            place = _free(start, end, dots.get(t.source, []), width, _DOT * inch)
            if place is not None and end - start > _LEAST_BAR * inch:
                label = axes.text(place, t.source, text, color=PAPER, fontsize=7, zorder=3)
                label.set(ha="center", va="center_baseline", path_effects=halo)
                break


def _free(
    start: float, end: float, dots: Sequence[float], width: float, radius: float
) -> float | None:
    """The middle of a place for a label within a bar, as near to the bar's own as can be.

    dots: in order, where others are in its row.   None where there is no place.
    """
    first, last = bisect_left(dots, start - radius), bisect_right(dots, end + radius)
    inside = dots[first:last]
    begins = [start, *(dot + radius for dot in inside)]
    ends = [*(dot - radius for dot in inside), end]
    middle = (start + end) / 2
    places = [
        min(max(middle, low + width / 2), high - width / 2)
        for low, high in zip(begins, ends, strict=True)
        if high - low >= width
    ]
    return min(places, key=lambda place: abs(place - middle), default=None)


def _waits(timing: Timing) -> list[tuple[Fraction, Fraction, int]]:
    """From when to when, and in whose row, messages waited for links that others held."""
    both = zip(timing.transfers, timing.passages, strict=False)
    return [(p.ready, p.start, t.source) for t, p in both if p.start > p.ready]


def _draw_waits(axes: Axes, timing: Timing, scale: formatting.Scale) -> None:
    """Thin bars while a message could go but for its links."""
    bars = [(scale.value(ready), scale.value(start), rank) for ready, start, rank in _waits(timing)]
    if bars:
        boxes = PolyCollection(_boxes(bars, 0.22), facecolors=VERMILION, linewidths=0, zorder=2.2)
        axes.add_collection(boxes)


def _boxes(
    bars: Iterable[tuple[float, float, int]], height: float
) -> list[list[tuple[float, float]]]:
    """Corners of a box for each (start, end, row)."""
    half = height / 2
    return [
        [(start, row - half), (end, row - half), (end, row + half), (start, row + half)]
        for start, end, row in bars
    ]


def _draw_flights(axes: Axes, transfers: Sequence[Transfer], scale: formatting.Scale) -> None:
    """From the end of each send to its receipt."""
    if len(transfers) > MOST_FLIGHTS:
        return
    ends = [
        ((scale.value(t.sent), t.source), (scale.value(t.received), t.target)) for t in transfers
    ]
    if len(transfers) > MOST_ARROWS:
        width = 0.5 if len(transfers) < 400 else 0.3
        axes.add_collection(LineCollection(ends, colors=MUTED, linewidths=width, zorder=1.5))
        return
    for begin, end in ends:
        axes.add_patch(
            FancyArrowPatch(
                begin,
                end,
                arrowstyle="-|>,head_length=3.2,head_width=1.5",
                mutation_scale=1,
                shrinkA=0,
                shrinkB=3,
                color=MUTED,
                lw=0.8,
                zorder=2.5,
            )
        )


def _draw_receipts(
    axes: Axes, transfers: Sequence[Transfer], scale: formatting.Scale, *, small: bool
) -> None:
    """Dots where messages arrive; the last of each rank is larger."""
    last: dict[int, float] = {}
    for t in transfers:
        last[t.target] = max(last.get(t.target, 0.0), scale.value(t.received))
    dots = [(scale.value(t.received), t.target) for t in transfers]
    early = [(time, rank) for time, rank in dots if time < last[rank]]
    size, edge = (2.0, 0.0) if small else (5.5, 0.8)
    if early and len(transfers) <= MOST_FLIGHTS:
        few = len(transfers) <= MOST_ARROWS
        line = axes.plot(*zip(*early, strict=True), "o", color=GREEN, zorder=3)
        share = 0.7 if few else 0.5
        line[0].set(markersize=share * size, markeredgecolor=PAPER, markeredgewidth=0.6 * edge)
    line = axes.plot(list(last.values()), list(last), "o", color=GREEN, zorder=3.5)
    line[0].set(markersize=size, markeredgecolor=PAPER, markeredgewidth=edge)


def _legend(timing: Timing) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [Patch(color=BLUE, label="sending: the port is busy (t0)")]
    if len(timing.transfers) <= MOST_FLIGHTS:
        handles.append(Line2D([], [], color=MUTED, lw=0.8, label="under way"))
    handles.append(
        Line2D([], [], ls="", marker="o", color=GREEN, label="received (large: its last message)")
    )
    handles.append(Patch(color=WASH, label="holds data"))
    if _waits(timing):
        handles.append(Patch(color=VERMILION, label="waiting for links"))
    return handles


def _by_source(transfers: Iterable[Transfer]) -> dict[int, list[Transfer]]:
    found: dict[int, list[Transfer]] = {}
    for transfer in sorted(transfers, key=lambda t: t.start):
        found.setdefault(transfer.source, []).append(transfer)
    return found


def _joined(bars: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Bars that touch become one; in order of their beginning."""
    joined: list[tuple[float, float]] = []
    for start, end in bars:
        if joined and start <= joined[-1][1] * (1 + 1e-9):
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
