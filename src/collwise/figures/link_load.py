"""A mesh with its sources; the load of its links as a heat map."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from collwise.errors import InvalidArgument
from collwise.figures.style import BLUE, FAINT, INK, MUTED, PAPER, VERMILION, WIDTH, look
from collwise.figures.titles import title
from collwise.model.topology import Embedded, Mesh, Topology, Torus
from collwise.schedule.problem import Problem
from collwise.system import formatting
from collwise.timing import Timing

HEAT = LinearSegmentedColormap.from_list("load", ["#f7e0a3", "#eca63c", VERMILION, "#611500"])
"""From links that are hardly used to the busiest."""
CELL = 0.9
"""Inches from one node to the next, where there is room."""
CLOSE = 0.42
"""The same where no links are drawn between them."""
BAR = 1.5
"""Inches beside the mesh, for the colours of its links."""
MOST_INCHES = 10.0
"""How high a mesh may be."""


class _Drawn(NamedTuple):
    """How large things are drawn, in units of the way to the next node; outlines in points.

    half: of a node's side.   lane: how far a link runs to the right of the line between its nodes,
    as cars do.   width: of arrows, compared with those of a mesh that has much room.
    """

    half: float
    lane: float
    width: float
    outline: float


ROOMY = _Drawn(0.24, 0.085, 1.0, 0.9)
DENSE = _Drawn(0.29, 0.11, 1.4, 0.5)
TINY = _Drawn(0.15, 0.15, 2.6, 0.0)
ALONE = _Drawn(0.43, 0.0, 0.0, 0.9)
"""Nodes without links."""


class _Lane(NamedTuple):
    """A link as it is drawn: from one point to another, in units of the way to the next node."""

    link: int
    begin: tuple[float, float]
    end: tuple[float, float]


def can_be_drawn(topology: Topology | None) -> bool:
    """Whether a topology is a mesh, or a torus of two dimensions, that lies flat on paper."""
    base = _base(topology)
    return isinstance(base, Mesh) or (isinstance(base, Torus) and len(base.sizes) == 2)


@look()
def mesh(
    problem: Problem,
    timing: Timing | None = None,
    topology: Topology | None = None,
    name: str = "",
) -> Figure:
    """The ranks of a problem as a mesh, sources (or the root) marked.

    timing, topology: with both, and if `can_be_drawn`, each link is an arrow whose colour and width
    say for which share of the time until completion it was held; links that were not used are thin
    lines.  Links that lead around a torus are drawn as two stubs.   name: the algorithm's.
    """
    linked = timing is not None and can_be_drawn(topology)
    rows, columns = _shape(topology) if linked else _seen(problem)
    cell = min(CELL if linked else CLOSE, (WIDTH - BAR) / columns, MOST_INCHES / rows)
    level = rows * cell < 2.2  # too low for a scale beside it
    height = max(rows * cell, 0.5) + 1.2 + 0.6 * (linked and level)
    figure = Figure((min(max(columns * cell + BAR, 6.6), WIDTH), height))
    axes = figure.subplots()
    complete = "" if timing is None else formatting.time(timing.completion)
    told = title(problem, name, complete)
    figure.suptitle(told, x=0.01, ha="left", fontsize=10, weight="bold")
    room = 0.75 if linked and isinstance(_base(topology), Torus) else 0.5
    axes.set_xlim(-room, columns - 1 + room)
    axes.set_ylim(rows - 1 + room, -room)
    axes.set_aspect("equal")
    axes.set_axis_off()
    drawn = ALONE if not linked else TINY if cell < 0.2 else DENSE if cell < 0.3 else ROOMY
    handles = _draw_nodes(axes, problem, topology if linked else None, columns, cell, drawn)
    if linked and timing is not None and topology is not None:
        handles += _draw_links(axes, timing, topology, drawn, level=level)
    figure.legend(handles=handles, loc="outside lower left", ncols=4)
    return figure


def _base(topology: Topology | None) -> Topology | None:
    return topology.topology if isinstance(topology, Embedded) else topology


def _shape(topology: Topology | None) -> tuple[int, int]:
    base = _base(topology)
    if isinstance(base, Torus):
        return base.sizes[0], base.sizes[1]
    assert isinstance(base, Mesh)
    return base.shape


def _seen(problem: Problem) -> tuple[int, int]:
    """The mesh in which algorithms see the ranks; one row where they see none."""
    return problem.shape if problem.kind.has_sources else (1, problem.ranks)


def _draw_nodes(
    axes: Axes,
    problem: Problem,
    topology: Topology | None,
    columns: int,
    cell: float,
    drawn: _Drawn,
) -> list[Patch | Line2D]:
    """Boxes with the ranks in them, where there is room.  cell: inches from one to the next."""
    seats: Sequence[int] = range(problem.ranks)
    if isinstance(topology, Embedded):
        seats = topology.places
    marked = {source.rank for source in problem.sources}
    word = "source"
    if problem.kind.rooted:
        marked, word = {problem.root}, "root"
    half = drawn.half
    blank = PAPER if drawn.outline else FAINT
    boxes: dict[bool, list[FancyBboxPatch]] = {True: [], False: []}
    for rank, node in enumerate(seats):
        row, column = divmod(node, columns)
        corner = (column - half, row - half)
        style = f"round,pad=0,rounding_size={0.25 * half}"
        boxes[rank in marked].append(FancyBboxPatch(corner, 2 * half, 2 * half, boxstyle=style))
    for is_marked, some in boxes.items():
        face, edge = (BLUE, BLUE) if is_marked else (blank, MUTED)
        made = PatchCollection(some, facecolor=face, edgecolor=edge, linewidth=drawn.outline)
        made.set_zorder(3)
        axes.add_collection(made)
    points = 72 * cell * 2 * half
    size = min(8.5, points / (0.66 * max(len(str(problem.ranks - 1)), 2)))
    if size >= 4:
        for rank, node in enumerate(seats):
            row, column = divmod(node, columns)
            label = axes.text(column, row, str(rank), fontsize=size, zorder=4)
            label.set(ha="center", va="center_baseline", color=PAPER if rank in marked else INK)
    handles: list[Patch | Line2D] = []
    if marked:
        handles.append(Patch(facecolor=BLUE, edgecolor=BLUE, label=word))
    if len(marked) < problem.ranks:
        edge = MUTED if drawn.outline else FAINT
        handles.append(Patch(facecolor=blank, edgecolor=edge, label="rank"))
    return handles


def _lanes(topology: Topology, drawn: _Drawn) -> Iterator[_Lane]:
    """Every link, to the right of the line between its nodes; those around a torus as two stubs."""
    base = _base(topology)
    assert base is not None
    _, columns = _shape(topology)
    for link in range(base.links):
        try:
            source, target = base.ends(link)
        except InvalidArgument:
            continue  # an id at the edge of a mesh
        (row, column), (to_row, to_column) = divmod(source, columns), divmod(target, columns)
        down, right = to_row - row, to_column - column
        around = abs(down) + abs(right) > 1
        if around:  # the other way, and out of the picture
            down, right = -((down > 0) - (down < 0)), -((right > 0) - (right < 0))
        x, y = column - drawn.lane * down, row + drawn.lane * right
        near, far = drawn.half + 0.03, 1 - drawn.half - 0.03
        if not around:
            yield _Lane(
                link, (x + near * right, y + near * down), (x + far * right, y + far * down)
            )
            continue
        out = drawn.half + 0.40
        yield _Lane(link, (x + near * right, y + near * down), (x + out * right, y + out * down))
        x, y = to_column - drawn.lane * down, to_row + drawn.lane * right
        yield _Lane(link, (x - out * right, y - out * down), (x - near * right, y - near * down))


def _draw_links(
    axes: Axes, timing: Timing, topology: Topology, drawn: _Drawn, *, level: bool
) -> list[Patch | Line2D]:
    """Arrows where links were used, coloured by their load, and thin lines where they were not."""
    end = timing.completion
    shares = {link: float(busy / end) for link, busy in timing.link_busy().items()} if end else {}
    lanes = list(_lanes(topology, drawn))
    idle = [(lane.begin, lane.end) for lane in lanes if lane.link not in shares]
    axes.add_collection(LineCollection(idle, colors=FAINT, linewidths=0.7 / drawn.width, zorder=1))
    used = sorted((lane for lane in lanes if lane.link in shares), key=lambda a: shares[a.link])
    handles: list[Patch | Line2D] = []
    if used:
        most = max(shares.values())
        norm = Normalize(0, most)
        loads = [shares[lane.link] for lane in used]
        arrows = [_arrow(lane, shares[lane.link] / most, drawn.width) for lane in used]
        axes.add_collection(
            PolyCollection(arrows, facecolors=HEAT(norm(loads)), linewidths=0, zorder=2)
        )
        where: dict[str, Any] = {"fraction": 0.05, "shrink": 0.9, "aspect": 24, "pad": 0.03}
        if level:
            where = {"orientation": "horizontal", "shrink": 0.5, "aspect": 30, "pad": 0.06}
        bar = axes.figure.colorbar(ScalarMappable(norm, HEAT), ax=axes, **where)
        bar.set_label(f"link busy, share of {formatting.time(end)}")
        bar.locator = MaxNLocator(5, steps=[1, 2, 5, 10])
        bar.formatter = FuncFormatter(lambda share, _: f"{100 * share:g} %")
        bar.update_ticks()
        bar.outline.set_visible(False)
        arrow = Line2D([], [], color=HEAT(0.6), lw=3, marker=">", ms=7, markevery=[-1])
        arrow.set_label("link, in its direction")
        handles.append(arrow)
    if idle:
        handles.append(Line2D([], [], color=FAINT, lw=1.2, label="link that was not used"))
    return handles


def _arrow(lane: _Lane, load: float, width: float) -> NDArray[np.float64]:
    """Corners of an arrow along a lane, the wider the larger its load (0 to 1)."""
    begin, end = np.array(lane.begin), np.array(lane.end)
    along = (end - begin) / np.hypot(*(end - begin))
    side = np.array((-along[1], along[0]))
    shaft, head = (0.012 + 0.035 * load) * width, (0.045 + 0.03 * load) * width
    neck = end - min(1.7 * head, 0.6 * float(np.hypot(*(end - begin)))) * along
    return np.array(
        [
            begin + shaft * side,
            neck + shaft * side,
            neck + head * side,
            end,
            neck - head * side,
            neck - shaft * side,
            begin - shaft * side,
        ]
    )
