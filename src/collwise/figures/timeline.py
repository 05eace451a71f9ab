"""A schedule in time: a row per rank, what it sends, and when messages arrive."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from collwise.figures import schedule_frame, style
from collwise.figures.style import BLUE, FAINT, GREEN, INK, MUTED, OCHRE, PAPER, VERMILION, WASH
from collwise.model.placement import Placement
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing

MAX_LABELLED_ROWS = 32
MAX_ARROWS = 130
"""The most messages drawn as arrows from send to receipt; more are drawn as lines without heads."""
MAX_FLIGHTS = 1200
"""With more messages there are no arrows or lines, and sends of a rank that touch are one bar."""
_ARROW, _DIGIT, _MARGIN = 0.082, 0.062, 0.05
"""Inches: the widths of an arrow and of a digit in a bar's label, and of the room around them."""
_DOT = 0.055
"""Inches that labels keep from the middle of a dot: its radius, or the tip of the arrow to it."""
MAX_LETTERS = 104
"""A legend with more letters is too wide for one line."""
_LEAST_BAR = 0.2
"""Inches: shorter bars have no labels."""

Bar = tuple[float, float, int]
"""A bar: the times of its start and its end, and its row."""


class _Message(NamedTuple):
    """A message: its ranks, and on the time axis the start and end of its send, and its receipt."""

    source: int
    target: int
    start: float
    sent: float
    received: float


@style.look()
def timeline(
    timing: Timing,
    schedule: Schedule,
    t0: Fraction | None = None,
    crossings: Sequence[str] = (),
    title: str = "",
) -> Figure:
    """A Gantt chart: bars while a send keeps its rank busy, arrows while a message flies.

    A dot is a receipt, and a large dot is the last receipt of its rank.  Bars of another colour
    show combining.  On a network with links, thin bars show how long a send waited for links.
    t0: the unit of times, in exact seconds; None for seconds.   crossings: the legend's words for
    messages of each level, such as "inside a node".   title: replaces algorithm and problem.
    """
    if not timing.completion:
        return schedule_frame.nothing_to_draw(timing, schedule)
    scale = formatting.scale_for(timing.completion, t0)
    messages = [
        _Message(t.source, t.target, *map(scale.value, (t.start, t.sent, t.received)))
        for t in timing.transfers
    ]
    waits = [
        (scale.value(p.ready), scale.value(p.start), t.source)
        for t, p in zip(timing.transfers, timing.passages, strict=False)
        if p.start > p.ready
    ]
    combines = [
        (scale.value(c.start), scale.value(c.end), c.rank)
        for c in timing.combines
        if c.end > c.start
    ]
    ranks, end = len(timing.finish), scale.value(timing.completion)
    labelled = ranks <= MAX_LABELLED_ROWS
    row = 0.27 if labelled else max(5.5 / ranks, 0.004)
    figure = Figure((style.WIDTH, 1.65 + max(row * ranks, 0.6)))
    axes = figure.subplots()
    axes.set_xlim(-0.01 * end, 1.04 * end)
    margin = 0.6 if labelled else 0.012 * ranks
    axes.set_ylim(ranks - 1 + margin, -margin)
    _draw_rows(axes, messages, schedule.problem, end)
    _draw_sends(axes, messages, ranks, end)
    if combines:
        height = 0.56 if labelled else 0.84
        _draw_boxes(axes, combines, height, facecolors=OCHRE, linewidths=0, zorder=1.9)
    if waits:
        _draw_boxes(axes, waits, 0.22, facecolors=VERMILION, linewidths=0, zorder=2.2)
    if len(messages) <= MAX_FLIGHTS:
        _draw_flights(axes, messages, schedule.problem.placement)
    _draw_receipts(axes, messages, small=not labelled)
    axes.axvline(end, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    axes.set_title(
        title or schedule_frame.schedule_title(schedule, scale.text_with_unit(timing.completion))
    )
    schedule_frame.time_axis(axes.xaxis, scale, MaxNLocator(10, steps=[1, 2, 5, 10]))
    axes.set_ylabel("rank")
    axes.grid(visible=False, axis="y")
    axes.yaxis.set_minor_locator(NullLocator())
    if labelled:
        axes.yaxis.set_major_locator(FixedLocator(range(ranks)))
        axes.tick_params(axis="y", length=0)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    placement = schedule.problem.placement
    lines = schedule_frame.level_labels(placement, crossings) or [(MUTED, "under way")]
    handles = _legend_handles(lines if len(messages) <= MAX_FLIGHTS else [])
    marks = (("combining", OCHRE, combines), ("waiting for links", VERMILION, waits))
    handles += [Patch(color=colour, label=label) for label, colour, boxes in marks if boxes]
    letters = sum(len(str(handle.get_label())) for handle in handles)
    columns = 6 if letters <= MAX_LETTERS else 4
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return figure


def _draw_rows(axes: Axes, messages: Sequence[_Message], problem: Problem, end: float) -> None:
    """Shade each rank's row from 0 or its first receipt on; draw lines in rows if they are few."""
    since = {m.target: m.received for m in sorted(messages, key=lambda m: -m.received)}
    since |= {rank: 0.0 for rank in range(problem.ranks) if problem.input_of(rank)}
    holding = [(start, end, rank) for rank, start in since.items()]
    _draw_boxes(axes, holding, 0.75, facecolors=WASH, edgecolors="none", zorder=0.5)
    if problem.ranks <= 2 * MAX_LABELLED_ROWS:
        lines = [((0, rank), (end, rank)) for rank in range(problem.ranks)]
        axes.add_collection(LineCollection(lines, colors=FAINT, linewidths=0.6))


def _draw_sends(axes: Axes, messages: Sequence[_Message], ranks: int, end: float) -> None:
    """Draw bars for sends, joined if many; write the receiver's rank inside where there is room."""
    inch = end / (style.WIDTH - 1.2)
    bars = sorted((m.start, m.sent, m.source) for m in messages)
    merged = len(messages) > MAX_FLIGHTS
    if merged:
        bars = _joined(bars)
    labelled = ranks <= MAX_LABELLED_ROWS
    fine = ranks > 2 * MAX_LABELLED_ROWS  # rows so thin that edges hide them
    shortest = min((end - start for start, end, _ in bars), default=0)
    _draw_boxes(
        *(axes, bars, 0.56 if labelled else 0.84),
        facecolors=BLUE,
        edgecolors=BLUE if fine else PAPER,
        linewidths=0.4 if fine else 0.6 if shortest > 0.06 * inch and not merged else 0,
        zorder=2,
    )
    if labelled and not merged:
        _label_sends(axes, messages, inch)


def _label_sends(axes: Axes, messages: Sequence[_Message], inch: float) -> None:
    """Write the receiver's rank into each bar with room, clear of the dots of receipts there.

    inch: an inch in units of the time axis.
    """
    halo = [withStroke(linewidth=2, foreground=BLUE)]
    dots: dict[int, list[float]] = {}
    for m in sorted(messages, key=lambda m: m.received):
        dots.setdefault(m.target, []).append(m.received)
    for m in messages:
        if m.sent - m.start <= _LEAST_BAR * inch:
            continue
        for text in (f"→{m.target}", str(m.target)):
            width = (_MARGIN + _ARROW * text.startswith("→") + _DIGIT * len(str(m.target))) * inch
            x = _label_place(m.start, m.sent, dots.get(m.source, []), width, _DOT * inch)
            if x is not None:
                label = axes.text(x, m.source, text, color=PAPER, fontsize=7, zorder=3)
                label.set(ha="center", va="center_baseline", path_effects=halo)
                break


def _label_place(
    start: float, end: float, dots: Sequence[float], width: float, radius: float
) -> float | None:
    """The middle of a label within a bar, as near to the bar's own middle as dots allow.

    start, end: of the bar.   dots: the middles of the dots in the bar's row, in order.
    width: of the label.   radius: of a dot.   None if the label has no room between dots.
    """
    inside = dots[bisect_left(dots, start - radius) : bisect_right(dots, end + radius)]
    begins = [start, *(dot + radius for dot in inside)]
    ends = [*(dot - radius for dot in inside), end]
    middle = (start + end) / 2
    places = [
        min(max(middle, low + width / 2), high - width / 2)
        for low, high in zip(begins, ends, strict=True)
        if high - low >= width
    ]
    return min(places, key=lambda place: abs(place - middle), default=None)


def _draw_boxes(axes: Axes, bars: Iterable[Bar], height: float, **look: Any) -> None:
    """Draw a box for each bar.   height: of a box, in rows."""
    half = height / 2
    corners = [
        [(start, row - half), (end, row - half), (end, row + half), (start, row + half)]
        for start, end, row in bars
    ]
    axes.add_collection(PolyCollection(corners, **look))


def _draw_flights(axes: Axes, messages: Sequence[_Message], placement: Placement | None) -> None:
    """Draw each message from the end of its send to its receipt, in the colour of its level."""
    colours = [schedule_frame.level_colour(placement, m.source, m.target) for m in messages]
    flights = [((m.sent, m.source), (m.received, m.target)) for m in messages]
    if len(messages) > MAX_ARROWS:
        width = 0.5 if len(messages) < 400 else 0.3
        axes.add_collection(LineCollection(flights, colors=colours, linewidths=width, zorder=1.5))
        return
    for (begin, end), colour in zip(flights, colours, strict=True):
        look = {"shrinkA": 0, "shrinkB": 3, "color": colour, "lw": 0.8, "zorder": 2.5}
        style.draw_arrow(axes, begin, end, **look)


def _draw_receipts(axes: Axes, messages: Sequence[_Message], *, small: bool) -> None:
    """Draw a large dot for each rank's last receipt, smaller ones for others if not too many."""
    last = {m.target: m.received for m in sorted(messages, key=lambda m: m.received)}
    early = [(m.received, m.target) for m in messages if m.received < last[m.target]]
    size, edge = (2.0, 0.0) if small else (5.5, 0.8)
    look: dict[str, Any] = {"color": GREEN, "mec": PAPER}
    if early and len(messages) <= MAX_FLIGHTS:
        share = 0.7 if len(messages) <= MAX_ARROWS else 0.5
        times, rows = zip(*early, strict=True)
        axes.plot(times, rows, "o", ms=share * size, mew=0.6 * edge, zorder=3, **look)
    axes.plot(list(last.values()), list(last), "o", ms=size, mew=edge, zorder=3.5, **look)


def _legend_handles(lines: Sequence[tuple[str, str]]) -> list[Artist]:
    handles: list[Artist] = [Patch(color=BLUE, label="sending: the sender is busy")]
    handles += [Line2D([], [], color=colour, lw=0.8, label=label) for colour, label in lines]
    received = "received (large: its last message)"
    handles.append(Line2D([], [], ls="", marker="o", color=GREEN, label=received))
    return [*handles, Patch(color=WASH, label="holds data")]


def _joined(bars: Iterable[Bar]) -> list[Bar]:
    """The bars; bars that touch in the same row are joined into one."""
    joined: list[Bar] = []
    for start, end, row in sorted(bars, key=lambda bar: (bar[2], bar[0])):
        if joined and joined[-1][2] == row and start <= joined[-1][1] * (1 + 1e-9):
            joined[-1] = joined[-1][0], max(end, joined[-1][1]), row
        else:
            joined.append((start, end, row))
    return joined
