"""A broadcast as a tree [Bruck1996 Figs 1 and 2], time running downwards."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from collwise.figures import words
from collwise.figures.style import BLUE, GREEN, INK, MUTED, PAPER, WIDTH, look, note, plain
from collwise.schedule.data import Schedule
from collwise.schedule.timing import Timing, Transfer

MOST_NODES = 64
"""Trees of more ranks than this cannot be read."""
MOST_LABELLED_EDGES = 31
COLUMN = 0.46
"""Inches between leaves side by side; less where there are many."""


@look()
def tree(timing: Timing, schedule: Schedule, t0: Fraction | None = None) -> Figure:
    """The first message that each rank receives, as a tree: a node's height is when it came.

    A node carries its rank, and beside it when it has everything; an edge, when the send starts.
    Times are in a unit of seconds, or in units of t0 (exact seconds) if it is given.  Beyond
    MOST_NODES ranks, how many ranks have everything is drawn over time instead.
    """
    title = f"{plain(schedule.algorithm or 'schedule')}\n{_problem(schedule)}"
    if not timing.transfers:
        return note("Nothing is sent: no rank lacks anything.", title=title)
    scale = words.scale_for(timing.completion, t0)
    title += f", complete after {scale.text_with_unit(timing.completion)}"
    first = _first_messages(timing)
    children = _children(first, schedule.problem.root)
    if children is None or len(children) > MOST_NODES:
        return _growth(timing, scale, title, is_tree=children is not None)
    return _draw(timing, scale, title, first, children, schedule.problem.root)


def _problem(schedule: Schedule) -> str:
    p = schedule.problem
    return f"{words.size(p.nbytes)}, root {p.root}, {words.count(p.ranks, 'rank')}"


def _first_messages(timing: Timing) -> dict[int, Transfer]:
    """By rank, the first message it receives."""
    first: dict[int, Transfer] = {}
    for transfer in sorted(timing.transfers, key=lambda t: (t.received, t.start)):
        first.setdefault(transfer.target, transfer)
    return first


def _children(first: dict[int, Transfer], root: int) -> dict[int, list[int]] | None:
    """By rank, whom it informs, in the order of receipt; None if that is no tree from the root."""
    children: dict[int, list[int]] = {root: []}
    for rank in first:
        children.setdefault(rank, [])
    for rank, transfer in first.items():  # in order of receipt, so parents come first
        if rank != root:
            children.setdefault(transfer.source, []).append(rank)
    reached, heads = {root}, [root]
    while heads:
        heads = [child for head in heads for child in children[head]]
        reached |= set(heads)
    return children if reached == set(children) else None


def _columns(children: dict[int, list[int]], root: int) -> dict[int, int]:
    """Where each rank stands, from left to right: above the last rank it informs.

    The earlier a rank is informed the farther left it stands of its parent, so edges do not cross.
    """
    columns: dict[int, int] = {}
    free = 0

    def place(rank: int) -> int:
        nonlocal free
        if not children[rank]:
            free += 1
            columns[rank] = free - 1
        for child in children[rank]:
            columns[rank] = place(child)
        return columns[rank]

    place(root)
    return columns


def _draw(
    timing: Timing,
    scale: words.Scale,
    title: str,
    first: dict[int, Transfer],
    children: dict[int, list[int]],
    root: int,
) -> Figure:
    columns = _columns(children, root)
    count = 1 + max(columns.values())
    height = {r: scale.value(first[r].received) if r in first and r != root else 0 for r in columns}
    complete = _complete(timing)
    end = max(height.values())
    pitch = COLUMN if count <= 18 else 0.4 if count <= 40 else 0.3
    needed = max(
        (0.6 if columns[c] == columns[r] else 0.25) / max(height[c] - height[r], end / 60)
        for r in children
        for c in children[r]
    )
    inches = min(max(2.6, needed * end), 13)
    beside = inches / (needed * end) < 0.75  # too close for the times to stand below
    width = max(1.4 + pitch * count, 7.0)
    figure = Figure((width, inches + 0.9))
    axes = figure.subplots()
    spare = ((width - 0.9) / pitch - count) / 2
    axes.set_xlim(-0.5 - spare, count - 0.5 + spare)
    axes.set_ylim(end + 0.42 * end / inches, -0.25 * end / inches)
    halo = [withStroke(linewidth=2.5, foreground=PAPER)]
    labelled = len(columns) - 1 <= MOST_LABELLED_EDGES and not beside
    for parent, ranks in children.items():
        for child in ranks:
            ends = (columns[parent], columns[child]), (height[parent], height[child])
            axes.plot(*ends, color=MUTED, lw=1, zorder=2, gid=f"edge-{parent}-{child}")
            if labelled:
                x, y = (b + 0.38 * (a - b) for a, b in ends)
                start = axes.text(x, y, scale.text(first[child].start), color=BLUE, fontsize=7.5)
                start.set(ha="center", va="center", path_effects=halo, zorder=3)
    radius = 8.5 if len(columns) <= 32 else 7.5
    for rank, x in columns.items():
        face = GREEN if rank == root else PAPER
        axes.plot(x, height[rank], "o", ms=2 * radius, color=face, mec=GREEN, mew=1.3, zorder=4)
        number = axes.annotate(str(rank), (x, height[rank]), fontsize=radius - 1, zorder=5)
        number.set(ha="center", va="center_baseline", color=PAPER if rank == root else INK)
        axes.annotate(
            scale.text(complete.get(rank, Fraction(0))),
            (x, height[rank]),
            (radius + 2, 0) if beside else (2, -radius - 0.5),
            textcoords="offset points",
            fontsize=7.5,
            va="center_baseline" if beside else "top",
            color=INK,
            path_effects=halo,
            zorder=3.5,
        )
    axes.set_title(title)
    axes.set_ylabel(f"time received ({scale.unit})")
    _time_ticks(axes.yaxis, scale, sorted(set(height.values())))
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    remark = f"in a node: the rank; {'beside' if beside else 'below'} it: when it has everything"
    if labelled:
        remark += "; on an edge: when its send starts"
    if len(timing.transfers) > len(first):
        many = max(sum(t.target == r for t in timing.transfers) for r in first)
        remark += f"\nonly the first of up to {many} messages into each rank is drawn"
    figure.supxlabel(f"{remark}", fontsize=8, color=MUTED, x=0.01, ha="left")
    return figure


def _growth(timing: Timing, scale: words.Scale, title: str, *, is_tree: bool) -> Figure:
    """How many ranks have everything by when: for a schedule that is no small tree."""
    ends = sorted(_complete(timing).values())
    ranks = len(timing.finish)
    others = ranks - len(ends)  # they have everything from the start
    figure = Figure((WIDTH, 3.6))
    axes = figure.subplots()
    times = [0.0, *(scale.value(t) for t in ends)]
    axes.step(times, [others, *range(others + 1, ranks + 1)], where="post", color=BLUE)
    axes.set_yscale("log", base=2)
    axes.set_ylim(max(others, 1) / 1.2, ranks * 1.3)
    axes.set_xlim(0, 1.03 * times[-1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel("ranks that have everything")
    axes.set_xlabel(f"time ({scale.unit})")
    axes.set_title(title)
    reason = "too many for a tree" if is_tree else "data reaches them from more than one rank"
    axes.text(
        *(0.01, 0.95),
        f"{words.count(ranks, 'rank')}: {reason}",
        transform=axes.transAxes,
        color=MUTED,
        va="top",
        fontsize=8.5,
    )
    return figure


def _complete(timing: Timing) -> dict[int, Fraction]:
    """By rank, when its last message is received; ranks that receive none are left out."""
    last: dict[int, Fraction] = {}
    for transfer in timing.transfers:
        last[transfer.target] = max(last.get(transfer.target, Fraction(0)), transfer.received)
    return last


def _time_ticks(axis: Axis, scale: words.Scale, times: Sequence[float]) -> None:
    """Ticks at the times that occur, if they are few: the grid shows who is level with whom."""
    close = min((b - a for a, b in pairwise(times)), default=0)
    if len(times) <= 14 and close >= times[-1] / 25:
        axis.set_major_locator(FixedLocator([*times]))
    else:
        axis.set_major_locator(MaxNLocator(10))
    axis.set_major_formatter(FuncFormatter(lambda y, _: scale.text(y * scale.length_s)))
