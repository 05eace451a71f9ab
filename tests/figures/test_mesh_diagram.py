import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.figure import Figure

from collwise.algorithms.registry import ALGORITHMS
from collwise.figures.mesh_diagram import HEAT, ROOMY, can_be_drawn, mesh_diagram
from collwise.figures.report_pictures import schedule_figures
from collwise.figures.style import svg
from collwise.figures.timeline import timeline
from collwise.model.machine import Machine
from collwise.model.topology import Complete, Embedded, Hypercube, Mesh, Topology, Torus
from collwise.schedule.operations import Block, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import Timing, ideal
from tests.figures.examples import legend, texts

HOCKNEY = Machine.hockney(alpha_s=1, beta_s=1)


def one_way(topology: Topology, pairs: list[tuple[int, int]]) -> tuple[Timing, Schedule]:
    """Messages of a byte from rank 0, which has data, one after another: each takes 2 s."""
    problem = Problem.of("allgatherv", topology.size, 1, sources=[0])
    lists: list[list[Send | Recv]] = [[] for _ in range(topology.size)]
    for source, target in pairs:
        lists[source].append(Send(target, (Block(0, 0, 1),)))
        lists[target].append(Recv(source, (Block(0, 0, 1),)))
    schedule = Schedule(problem, Written(tuple(map(tuple, lists))))
    return ideal(schedule, HOCKNEY, topology), schedule


def arrows(figure: Figure) -> list[tuple[float, float, float, float]]:
    """Where arrows begin and end: x and y of both."""
    found = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]
    corners = [np.asarray(path.vertices, float) for c in found for path in c.get_paths()]
    return [(*((a[3] + a[4]) / 2).tolist(), *a[0].tolist()) for a in corners]


def boxes(figure: Figure) -> list[int]:
    """How many boxes: of sources, of other ranks."""
    found = [c for c in figure.axes[0].collections if isinstance(c, PatchCollection)]
    return [len(c.get_paths()) for c in found]


def idle(figure: Figure) -> int:
    """How many links are thin lines."""
    (lines,) = (c for c in figure.axes[0].collections if isinstance(c, LineCollection))
    return len(lines.get_segments())


def test_the_ranks_of_an_allgatherv_broadcast() -> None:
    schedule = ALGORITHMS["allgatherv/ring"].schedule(12, 2048, sources=[1, 6], shape=(3, 4))
    figure = mesh_diagram(ideal(schedule, HOCKNEY), schedule)
    assert figure.get_suptitle().startswith(
        "allgatherv/ring\n2 KiB from each of 2 sources, 12 ranks, c"
    )
    assert boxes(figure) == [2, 10]
    assert texts(figure) == [str(rank) for rank in range(12)]
    assert [text.get_position() for text in figure.axes[0].texts][6] == (2, 1)
    assert legend(figure) == ["source", "rank"]
    assert not arrows(figure)
    assert len(figure.axes) == 1


def test_an_arrow_for_every_link_that_was_used() -> None:
    """From rank 0 right to rank 1 and on to 2, then down to 3: along the right-hand side."""
    timing, schedule = one_way(Mesh(2, 3), [(0, 1), (1, 2), (0, 3)])
    figure = mesh_diagram(timing, schedule, Mesh(2, 3))
    begin, end, lane = ROOMY.half + 0.03, 1 - ROOMY.half - 0.03, ROOMY.lane
    assert sorted(arrows(figure)) == [
        pytest.approx((-lane, begin, -lane, end)),
        pytest.approx((begin, lane, end, lane)),
        pytest.approx((1 + begin, lane, 1 + end, lane)),
    ]
    assert idle(figure) == 14 - 3
    assert legend(figure) == ["source", "rank", "link, in its direction", "link that was not used"]
    assert (
        figure.axes[1].get_ylabel() or figure.axes[1].get_xlabel() == "link busy, share of 4.00 s"
    )


def test_colours_and_widths_say_how_busy() -> None:
    """Two messages over the first link, of which one goes on over the second."""
    timing, schedule = one_way(Mesh(1, 3), [(0, 1), (0, 2)])
    busy = timing.link_busy()
    assert [float(b / timing.completion) for b in busy.values()] == [1, 0.5]
    figure = mesh_diagram(timing, schedule, Mesh(1, 3))
    (made,) = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    colours = np.asarray(made.get_facecolor())
    assert np.allclose(colours, [HEAT(0.5), HEAT(1.0)])
    corners = [np.asarray(path.vertices, float) for path in made.get_paths()]
    narrow, wide = (abs(a[3, 1] - a[4, 1]) for a in corners)
    assert wide > 1.3 * narrow
    assert figure.axes[1].get_xlim() == (0, 1)  # the scale of colours ends with the busiest


def test_links_around_a_torus_are_stubs() -> None:
    """From the first column to the last: out to the left, and in from the right."""
    topology = Torus(2, 4)
    timing, schedule = one_way(topology, [(0, 3)])
    made = sorted(arrows(mesh_diagram(timing, schedule, topology)))
    (x, _, to_x, _), (from_x, _, end_x, _) = made
    assert -0.7 < to_x < x < 0
    assert 3 < end_x < from_x < 3.7


def test_a_torus_is_in_the_middle() -> None:
    """Together with the scale beside it."""
    figure = mesh_diagram(*one_way(Torus(4, 4), [(0, 1), (0, 5)]), Torus(4, 4))
    figure.draw_without_rendering()
    axes, bar = (axes.get_window_extent() for axes in figure.axes)
    assert axes.x0 == pytest.approx(figure.bbox.width - bar.x1, abs=0.12 * figure.bbox.width)
    assert bar.x0 - axes.x1 < 0.1 * figure.bbox.width


def test_nodes_without_a_rank_pass_on() -> None:
    """Ranks 0 and 1 at the ends of a row of three."""
    topology = Embedded(Mesh(1, 3), [2, 0])
    timing, schedule = one_way(topology, [(0, 1)])
    figure = mesh_diagram(timing, schedule, topology)
    assert [text.get_position()[0] for text in figure.axes[0].texts] == [2, 0]
    assert len(arrows(figure)) == 2
    assert boxes(figure) == [1, 1]


def test_the_root_is_marked() -> None:
    schedule = ALGORITHMS["broadcast/binomial"].schedule(6, 8, 4)
    figure = mesh_diagram(ideal(schedule, HOCKNEY, Mesh(2, 3)), schedule, Mesh(2, 3))
    assert boxes(figure) == [1, 5]
    assert legend(figure)[0] == "root"
    reduced = ALGORITHMS["allreduce/ring"].schedule(6, 48, itemsize=8)
    figure = mesh_diagram(ideal(reduced, HOCKNEY, Mesh(2, 3)), reduced, Mesh(2, 3))
    assert "root" not in legend(figure)


@pytest.mark.parametrize(
    ("topology", "flat"),
    [
        (None, False),
        (Mesh(2, 3), True),
        (Torus(2, 3), True),
        (Torus(2, 3, 4), False),
        (Hypercube(3), False),
        (Complete(4), False),
        (Embedded(Mesh(2, 3), [0, 5]), True),
        (Embedded(Hypercube(3), [0, 5]), False),
    ],
)
def test_what_lies_flat(topology: Topology | None, flat: bool) -> None:
    assert can_be_drawn(topology) is flat


@pytest.mark.parametrize(
    ("name", "topology", "in_space", "scales"),
    [
        ("reduce/binomial", None, [], 0),
        ("reduce/binomial", Mesh(2, 4), ["Mesh"], 1),
        ("broadcast/binomial", Hypercube(3), ["Tree"], 0),
        ("allreduce/recursive_doubling", Torus(2, 2, 2), [], 0),
        ("allgatherv/ring", Mesh(2, 4), ["Mesh"], 1),
        ("allgatherv/ring", Complete(8), ["Mesh"], 0),
    ],
)
def test_what_is_drawn_in_space(
    name: str, topology: Topology | None, in_space: list[str], scales: int
) -> None:
    """Links and how busy they are, where they lie flat; else the mesh of ranks, or a tree."""
    sources = [1] if "allgatherv" in name else None
    schedule = ALGORITHMS[name].schedule(8, 64, sources=sources)
    figures = schedule_figures(ideal(schedule, HOCKNEY, topology), schedule, topology=topology)
    assert [*figures] == [*in_space, "Timeline"]
    assert [len(figures[kind].axes) for kind in in_space] == [1 + scales] * len(in_space)


@pytest.mark.parametrize("shape", [(1, 1), (40, 3), (2, 90), (33, 33)])
def test_any_mesh(shape: tuple[int, int]) -> None:
    ranks = shape[0] * shape[1]
    schedule = ALGORITHMS["allgatherv/br_lin"].schedule(ranks, 9, sources=[0], shape=shape)
    timing = ideal(schedule, HOCKNEY, Mesh(*shape))
    figure = mesh_diagram(timing, schedule, Mesh(*shape))
    width, height = figure.get_size_inches()
    assert width < 10
    assert height < 12
    assert svg(figure).endswith("</svg>")


def test_a_timeline_shows_who_waits_for_links() -> None:
    """Ranks 0 and 1 of a line both send to the right, through the link from 1 to 2."""
    problem = Problem.of("allgatherv", 4, 1, sources=[0, 1])
    lists = (
        (Send(2, (Block(0, 0, 1),)),),
        (Send(3, (Block(1, 0, 1),)),),
        (Recv(0, (Block(0, 0, 1),)),),
        (Recv(1, (Block(1, 0, 1),)),),
    )
    schedule = Schedule(problem, Written(lists))
    figure = timeline(ideal(schedule, HOCKNEY, Mesh(1, 4)), schedule)
    assert "waiting for links" in legend(figure)
    bars = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]
    (box,) = (np.asarray(p.vertices, float) for p in bars[-1].get_paths())
    assert (box[:4, 0].min(), box[:4, 0].max(), round(box[:4, 1].mean())) == (0, 2, 1)
    assert "waiting for links" not in legend(timeline(*one_way(Mesh(1, 3), [(0, 2)])))
