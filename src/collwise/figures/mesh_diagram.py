"""The ranks as a mesh or a torus, sources marked; the load of its links in colours."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrow, FancyBboxPatch, Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from collwise.errors import InvalidArgument
from collwise.figures.schedule_frame import schedule_title
from collwise.figures.style import BLUE, FAINT, INK, MUTED, PAPER, VERMILION, WIDTH, look
from collwise.model.topology import Embedded, Mesh, Topology, Torus
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing

HEAT = LinearSegmentedColormap.from_list("load", ["#f7e0a3", "#eca63c", VERMILION, "#611500"])
"""The colours of links, from one that is hardly used to the busiest."""
NODE_DISTANCE = 0.9
"""Inches from one node to the next, where there is room."""
CLOSE = 0.42
"""Inches from one node to the next where no links are drawn between them."""
COLOUR_BAR = 1.5
"""Inches beside the mesh, for the colours of its links."""
MAX_INCHES = 10.0
"""The greatest height of a mesh in inches."""


class MeshStyle(NamedTuple):
    """How large things are drawn, in units of the distance between nodes; outlines in points.

    half: half of a node's side.   lane: how far a link runs to the right of the line between its
    nodes.   width: of arrows, compared with those of a mesh that has much room.
    """

    half: float
    lane: float
    width: float
    outline: float


ROOMY = MeshStyle(0.24, 0.085, 1.0, 0.9)
DENSE = MeshStyle(0.29, 0.11, 1.4, 0.5)
TINY = MeshStyle(0.15, 0.15, 2.6, 0.0)
NO_LINKS = MeshStyle(0.43, 0.0, 0.0, 0.9)


Point: TypeAlias = NDArray[np.float64]
"""A point of the mesh: its column and its row."""


def can_be_drawn(topology: Topology | None) -> bool:
    """Whether a topology, or the one it embeds ranks in, is a mesh or a 2-D torus; None is not."""
    nodes = _nodes(topology)
    return isinstance(nodes, Mesh) or (isinstance(nodes, Torus) and len(nodes.sizes) == 2)


def _nodes(topology: Topology | None) -> Topology | None:
    """The topology itself, or the one in which an `Embedded` places its ranks."""
    return topology.topology if isinstance(topology, Embedded) else topology


@look()
def mesh_diagram(timing: Timing, schedule: Schedule, topology: Topology | None = None) -> Figure:
    """The ranks as a mesh, sources (or the root) marked.

    topology: one that `can_be_drawn`; None for the mesh that algorithms assume, without links.
    The colour and width of a link's arrow say for which share of the time until completion the link
    was held.  An unused link is a thin line, and a link around a torus two stubs.
    """
    problem = schedule.problem
    nodes = _nodes(topology)
    rows, columns = nodes.shape if nodes else problem.shape
    distance = NODE_DISTANCE if topology else CLOSE
    distance = min(distance, (WIDTH - COLOUR_BAR) / columns, MAX_INCHES / rows)
    bar_below = rows * distance < 2.2  # too low for a colour bar beside it
    height = max(rows * distance, 0.5) + 1.2 + 0.6 * bool(topology and bar_below)
    figure = Figure((min(max(columns * distance + COLOUR_BAR, 6.6), WIDTH), height))
    figure.set_layout_engine("compressed")  # the colour bar stays beside the mesh
    axes = figure.subplots()
    title = schedule_title(schedule, formatting.time(timing.completion))
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, weight="bold")
    margin = 0.75 if isinstance(nodes, Torus) else 0.5
    axes.set_xlim(-margin, columns - 1 + margin)
    axes.set_ylim(rows - 1 + margin, -margin)
    axes.set_aspect("equal")
    axes.set_axis_off()
    style = TINY if distance < 0.2 else DENSE if distance < 0.3 else ROOMY
    style = style if topology else NO_LINKS
    places = topology.places if isinstance(topology, Embedded) else range(problem.ranks)
    positions = [divmod(node, columns) for node in places]
    handles = _draw_nodes(axes, problem, positions, 72 * distance, style)
    if nodes:
        handles += _draw_links(axes, timing, nodes, style, bar_below=bar_below)
    figure.legend(handles=handles, loc="outside lower left", ncols=4)
    return figure


def _draw_nodes(
    axes: Axes,
    problem: Problem,
    positions: Sequence[tuple[int, int]],
    distance_points: float,
    style: MeshStyle,
) -> list[Artist]:
    """Draw a box for each rank, numbered if there is room.   positions: (row, column) by rank."""
    marked, kind = {source.rank for source in problem.sources}, "source"
    if problem.kind.rooted:
        marked, kind = {problem.root}, "root"
    plain = (PAPER, MUTED) if style.outline else (FAINT, FAINT)
    groups = {kind: (marked, BLUE, BLUE), "rank": ({*range(problem.ranks)} - marked, *plain)}
    side = 2 * style.half
    rounded = f"round,pad=0,rounding_size={0.125 * side}"
    handles: list[Artist] = []
    for label, (ranks, face, edge) in groups.items():
        boxes = [
            FancyBboxPatch((column - style.half, row - style.half), side, side, boxstyle=rounded)
            for row, column in (positions[rank] for rank in sorted(ranks))
        ]
        colours: dict[str, Any] = {"facecolor": face, "edgecolor": edge}
        axes.add_collection(PatchCollection(boxes, **colours, linewidth=style.outline, zorder=3))
        if ranks:
            handles.append(Patch(**colours, label=label))
    digits = max(len(str(problem.ranks - 1)), 2)
    fontsize = min(8.5, distance_points * side / (0.66 * digits))
    if fontsize >= 4:
        for rank, (row, column) in enumerate(positions):
            number = axes.text(column, row, str(rank), fontsize=fontsize, zorder=4)
            number.set(ha="center", va="center_baseline", color=PAPER if rank in marked else INK)
    return handles


def _lanes(topology: Topology, style: MeshStyle) -> Iterator[tuple[int, Point, Point]]:
    """Each link's id, begin and end, to the right of the line between its nodes.

    A link that leads around a torus is drawn as two stubs.
    """
    _, columns = topology.shape
    near, far, out = style.half + 0.03, 1 - style.half - 0.03, style.half + 0.40
    for link in range(topology.links):
        try:
            source, target = topology.ends(link)
        except InvalidArgument:
            continue  # this id has no link: it is at the edge of a mesh
        (row, column), (to_row, to_column) = divmod(source, columns), divmod(target, columns)
        way = np.array((to_column - column, to_row - row))
        around = np.abs(way).sum() > 1
        if around:
            way = -np.sign(way)  # out of the picture, and in again on the other side
        beside = style.lane * np.array((-way[1], way[0]))
        begin, end = np.array((column, row)) + beside, np.array((to_column, to_row)) + beside
        yield link, begin + near * way, begin + (out if around else far) * way
        if around:
            yield link, end - out * way, end - near * way


def _draw_links(
    axes: Axes, timing: Timing, topology: Topology, style: MeshStyle, *, bar_below: bool
) -> list[Artist]:
    """Draw used links as arrows, coloured by their load, and other links as thin lines."""
    total = timing.completion
    shares = {link: float(busy / total) for link, busy in timing.link_busy().items() if total}
    lanes = list(_lanes(topology, style))
    idle = [(begin, end) for link, begin, end in lanes if link not in shares]
    axes.add_collection(LineCollection(idle, colors=FAINT, linewidths=0.7 / style.width, zorder=1))
    used = sorted((lane for lane in lanes if lane[0] in shares), key=lambda lane: shares[lane[0]])
    handles: list[Artist] = []
    if used:
        most = max(shares.values())
        norm = Normalize(0, most)
        colours = HEAT(norm([shares[link] for link, *_ in used]))
        arrows = [_arrow(begin, end, shares[link] / most, style.width) for link, begin, end in used]
        axes.add_collection(PolyCollection(arrows, facecolors=colours, linewidths=0, zorder=2))
        place: dict[str, Any] = {"fraction": 0.05, "shrink": 0.9, "aspect": 24, "pad": 0.03}
        if bar_below:
            place = {"orientation": "horizontal", "shrink": 0.5, "aspect": 30, "pad": 0.06}
        percent = FuncFormatter(lambda share, _: f"{100 * share:g} %")
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10])
        bar = axes.figure.colorbar(
            ScalarMappable(norm, HEAT), ax=axes, ticks=ticks, format=percent, **place
        )
        bar.set_label(f"link busy, share of {formatting.time(total)}")
        bar.outline.set_visible(False)
        arrow = Line2D([], [], color=HEAT(0.6), lw=3, marker=">", ms=7, markevery=[-1])
        arrow.set_label("link, in its direction")
        handles.append(arrow)
    if idle:
        handles.append(Line2D([], [], color=FAINT, lw=1.2, label="link that was not used"))
    return handles


def _arrow(begin: Point, end: Point, load: float, width: float) -> NDArray[np.float64]:
    """The corners of an arrow, tip first.   load: 0 to 1; the larger it is, the wider the arrow."""
    way = end - begin
    shaft, head = (0.024 + 0.07 * load) * width, (0.045 + 0.03 * load) * width
    arrow = FancyArrow(*begin, *way, width=shaft, length_includes_head=True, head_width=2 * head)
    arrow.set_data(head_length=min(1.7 * head, 0.6 * float(np.hypot(*way))))
    return np.asarray(arrow.get_xy())
