"""A broadcast as a tree [Bruck1996 Figs 1 and 2], time running downwards."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, pairwise
from math import hypot
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator

from collwise.figures import schedule_frame, style
from collwise.figures.style import BLUE, GREEN, INK, MUTED, PAPER
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing, Transfer

MAX_NODES = 64
"""Trees of more ranks than this cannot be read."""
MAX_LABELLED_EDGES = 31
COLUMN, WIDE_COLUMN = 0.46, 0.62
"""Inches between columns, if there are few; WIDE_COLUMN where time is not to scale."""
BETWEEN_NODES, LETTER = 0.3, 0.065
"""Inches of an edge that its two nodes cover, and inches for each letter of its text."""
CLOSE = 0.015
"""The least time between two nodes in one column, as a share of the whole time."""
FLATTEST = 0.27
"""The least height of a tree, as a part of its width."""
MAX_INCHES = 13.0
"""The greatest height of a tree in inches."""
ROW, SPREAD, APART = 0.28, 4.0, 0.55
"""Inches, where time is not to scale: the least height of a row; further height that rows share in
proportion to their times; the least distance between two nodes in one column."""
HALO = [withStroke(linewidth=2.5, foreground=PAPER)]
Place: TypeAlias = tuple[float, float]
"""Where a node stands: its column from the left, and its time."""


@style.look()
def tree_diagram(
    timing: Timing, schedule: Schedule, t0: Fraction | None = None, crossings: Sequence[str] = ()
) -> Figure:
    """The first message that each rank receives, as a tree; a node stands at the time of receipt.

    A node shows its rank and the time of that receipt; an edge may show when its send starts.
    With more than MAX_NODES ranks, or where messages form no tree, the picture is the number of
    ranks that have everything, over time.
    t0: the unit of times, in exact seconds; None for seconds.
    crossings: the legend's words for messages of each level, such as "inside a node".
    """
    if not timing.completion:
        return schedule_frame.nothing_to_draw(timing, schedule)
    scale = formatting.scale_for(timing.completion, t0)
    title = schedule_frame.schedule_title(schedule, scale.text_with_unit(timing.completion))
    root = schedule.problem.root
    first = _first_messages(timing)
    children = _children(first, root)
    if children is None or len(children) > MAX_NODES:
        return _draw_growth(timing, scale, title, is_tree=children is not None)
    return _draw_tree(timing, scale, title, first, children, schedule.problem, crossings)


def _first_messages(timing: Timing) -> dict[int, Transfer]:
    """For each rank that receives messages, the first one."""
    first: dict[int, Transfer] = {}
    for transfer in sorted(timing.transfers, key=lambda t: (t.received, t.start)):
        first.setdefault(transfer.target, transfer)
    return first


def _children(first: dict[int, Transfer], root: int) -> dict[int, list[int]] | None:
    """By rank, those that get their first message from it, in that order; None if no tree."""
    children: dict[int, list[int]] = {rank: [] for rank in (root, *first)}
    for rank, transfer in first.items():
        if rank != root:
            children.setdefault(transfer.source, []).append(rank)
    reached = [root]
    for rank in reached:
        reached += children[rank]
    return children if len(reached) == len(children) else None


class _Rows:
    """Heights of times where a linear scale would be too coarse: every time has a row.

    With levels, ranks of one node are informed almost at once, long after those of another node.
    """

    def __init__(self, times: Sequence[float]) -> None:
        """times: the times that occur, starting with 0, in rising order, each once."""
        row = min(ROW, (MAX_INCHES - SPREAD) / len(times))
        self.height = SPREAD + row * (len(times) - 1)
        heights = [i * row + SPREAD * time / times[-1] for i, time in enumerate(times)]
        margin = times[-1]  # above and below
        self._times = [-margin, *times, 2 * margin]
        self._heights = [-1.0, *heights, self.height + 1]

    def height_of(self, time: Any) -> Any:
        """The height of a time, in inches below the root."""
        return np.interp(time, self._times, self._heights)

    def time_at(self, height: Any) -> Any:
        return np.interp(height, self._heights, self._times)


def _columns(
    children: dict[int, list[int]], heights: dict[int, float], root: int, close: float
) -> dict[int, int]:
    """The column of each rank, from left to right: the column of the last rank that it informs.

    If it informs none, or their two nodes would overlap there, it gets a new column on the right.
    The earlier a rank is informed, the farther left of its parent it stands, so edges do not cross.
    close: the difference in height up to which nodes overlap.
    """
    columns: dict[int, int] = {}
    leaf_columns = count()

    def place(rank: int) -> None:
        for child in children[rank]:
            place(child)
        below = [r for r in children[rank][-1:] if heights[r] - heights[rank] > close]
        columns[rank] = columns[below[0]] if below else next(leaf_columns)

    place(root)
    return columns


def _draw_tree(
    timing: Timing,
    scale: formatting.Scale,
    title: str,
    first: dict[int, Transfer],
    children: dict[int, list[int]],
    problem: Problem,
    crossings: Sequence[str],
) -> Figure:
    root, placement = problem.root, problem.placement
    times = {r: 0.0 if r == root else scale.value(first[r].received) for r in children}
    end = max(times.values())
    columns = _columns(children, times, root, CLOSE * end)
    edges = [(parent, child) for parent, ranks in children.items() for child in ranks]
    needed = max(
        _inches(columns[parent] == columns[child], times[child] - times[parent], end)
        for parent, child in edges
    )
    uneven = placement is not None and needed > MAX_INCHES
    rows = _Rows(sorted(set(times.values()))) if uneven else None
    if rows is not None:
        scale = scale.telling_apart([message.received for message in first.values()])
        heights = {rank: float(rows.height_of(time)) for rank, time in times.items()}
        columns = _columns(children, heights, root, APART)
    places = {rank: (float(column), times[rank]) for rank, column in columns.items()}
    broad = 1 + max(columns.values())
    pitch = COLUMN if broad <= 18 else 0.4 if broad <= 40 else 0.3
    if rows is not None:  # the next node may be beside the text below this one
        pitch = WIDE_COLUMN
    width = max(1.4 + pitch * broad, 7.0)
    height = rows.height if rows else min(max(2.6, needed, FLATTEST * width), MAX_INCHES)
    beside = not rows and height < 0.75 * needed  # too close for the times to stand below
    figure = Figure((width, height + 0.9))
    axes = figure.subplots()
    spare = ((width - 0.9) / pitch - broad) / 2
    axes.set_xlim(-0.5 - spare, broad - 0.5 + spare)
    if rows is not None:
        axes.set_yscale("function", functions=(rows.height_of, rows.time_at))
        axes.set_ylim(rows.time_at(height + 0.42), rows.time_at(-0.25))
    else:
        axes.set_ylim(end + 0.42 * end / height, -0.25 * end / height)

    def inches(time: float) -> float:
        return float(rows.height_of(time)) if rows else time * height / end

    labelled = len(edges) <= MAX_LABELLED_EDGES and not beside
    for parent, child in edges:
        ends = places[parent], places[child]
        start = scale.text(first[child].start) if labelled else ""
        across = pitch * abs(columns[parent] - columns[child])
        down = inches(times[child]) - inches(times[parent])
        if hypot(across, down) < BETWEEN_NODES + LETTER * len(start):
            start = ""
        colour = schedule_frame.level_colour(placement, parent, child)
        _draw_edge(axes, *ends, start, colour, gid=f"edge-{parent}-{child}")
    for rank, at in places.items():
        time = scale.text(Fraction(0) if rank == root else first[rank].received)
        radius = 8.5 if len(places) <= 32 else 7.5
        _draw_node(axes, at, rank, time, radius, is_root=rank == root, beside=beside)
        if placement is not None:
            group = f"{placement.group(1, rank)}"
            mark = style.beside(axes, group, at, (-radius - 1, radius - 2), fontsize=6.5)
            mark.set(color=MUTED, ha="right", path_effects=HALO, zorder=3.5)
    axes.set_title(title)
    moments = sorted(set(times.values()))
    ticks = FixedLocator(moments) if rows else _time_ticks(moments)
    schedule_frame.time_axis(
        axes.yaxis, scale, ticks, "time received, not to scale" if rows else "time received"
    )
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    several = len(timing.transfers) > len(edges)
    when = "when it receives its first message" if several else "when it has everything"
    remark = f"in a circle: the rank; {'beside' if beside else 'below'} it: {when}"
    if labelled:
        remark += "; on an edge: when its send starts"
    if several:
        most = max(Counter(t.target for t in timing.transfers).values())
        remark += f"\nonly the first of up to {most} messages into each rank is drawn"
    if placement is not None:
        group = crossings[0].removeprefix("inside a ") if crossings else "group"
        remark += f"\nat its upper left: the number of the rank's {group}"
        for colour, label in schedule_frame.level_labels(placement, crossings):
            axes.plot([], [], color=colour, lw=1, label=label)
        figure.legend(loc="outside lower right", fontsize=7.5)
    figure.supxlabel(remark, fontsize=8, color=MUTED, x=0.01, ha="left")
    return figure


def _inches(in_line: bool, between: float, end: float) -> float:
    """How many inches high a picture of `end` units of time must be to keep two nodes apart.

    in_line: whether one node stands above the other.   between: the time from receipt to receipt.
    """
    return (0.6 if in_line else 0.25) * end / max(between, end / 60)


def _draw_edge(axes: Axes, parent: Place, child: Place, start: str, colour: str, gid: str) -> None:
    axes.plot(*zip(parent, child, strict=True), color=colour, lw=1, zorder=2, gid=gid)
    scale = axes.transScale  # with rows, the middle of an edge is not at the mean of its times
    above, below = scale.transform((parent, child))
    x, y = scale.inverted().transform(below + 0.38 * (above - below))
    text = axes.text(x, y, start, color=BLUE, fontsize=7.5, zorder=3, path_effects=HALO)
    text.set(ha="center", va="center")


def _draw_node(
    axes: Axes, at: Place, rank: int, time: str, radius: float, *, is_root: bool, beside: bool
) -> None:
    face, ink = (GREEN, PAPER) if is_root else (PAPER, INK)
    axes.plot(*at, "o", ms=2 * radius, color=face, mec=GREEN, mew=1.3, zorder=4, gid=f"node-{rank}")
    number = axes.annotate(str(rank), at, fontsize=radius - 1, color=ink, zorder=5)
    number.set(ha="center", va="center_baseline")
    away = (radius + 2, 0) if beside else (2, -radius - 0.5)
    when = style.beside(axes, time, at, away, fontsize=7.5, color=INK)
    when.set(va="center_baseline" if beside else "top", path_effects=HALO, zorder=3.5)


def _draw_growth(timing: Timing, scale: formatting.Scale, title: str, *, is_tree: bool) -> Figure:
    """The number of ranks that have everything, over time; for a schedule that is no small tree."""
    last = {t.target: t.received for t in sorted(timing.transfers, key=lambda t: t.received)}
    ranks, completions = len(timing.finish), sorted(last.values())
    others = ranks - len(completions)  # they have everything from the start
    figure = Figure((style.WIDTH, 3.6))
    axes = figure.subplots()
    times = [0.0, *map(scale.value, completions)]
    axes.step(times, range(others, ranks + 1), where="post", color=BLUE)
    axes.set_yscale("log", base=2)
    axes.set_ylim(max(others, 1) / 1.2, ranks * 1.3)
    axes.set_xlim(0, 1.03 * times[-1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel("ranks that have everything")
    schedule_frame.time_axis(axes.xaxis, scale, MaxNLocator(10))
    axes.set_title(title)
    reason = "too many for a tree" if is_tree else "data reaches them from more than one rank"
    remark = axes.text(0.01, 0.95, f"{formatting.count(ranks, 'rank')}: {reason}", va="top")
    remark.set(transform=axes.transAxes, color=MUTED, fontsize=8.5)
    return figure


def _time_ticks(times: Sequence[float]) -> Locator:
    """Ticks at the times that occur, if they are few: the grid shows which ranks are level."""
    close = min((b - a for a, b in pairwise(times)), default=0)
    few = len(times) <= 14 and close >= times[-1] / 25
    return FixedLocator([*times]) if few else MaxNLocator(10)
