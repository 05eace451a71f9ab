from fractions import Fraction
from itertools import pairwise

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import collwise as cw
from collwise.figures.timeline import timeline
from collwise.figures.tree_diagram import tree_diagram
from collwise.model.level_presets import LEVEL_PRESETS
from collwise.model.machine import Machine
from collwise.schedule.operations import Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal
from tests.figures.examples import MACHINE, T0, drawn, laid_out, marked, texts, xs, ys


def _nodes(figure: Figure) -> dict[str, tuple[float, float]]:
    return {
        str(line.get_gid()).removeprefix("node-"): (xs(line)[0], ys(line)[0])
        for line in figure.axes[0].lines
        if str(line.get_gid()).startswith("node-")
    }


def test_figure_2_of_the_paper() -> None:
    """The λ-tree for n = 8, λ = 2 takes five steps; its labels are those of [Bruck1996 Fig 2]."""
    figure = tree_diagram(*drawn("postal_tree", 8, lam=2), T0)
    assert "complete after 5 t0" in figure.axes[0].get_title("left")
    assert sorted(y for _, y in _nodes(figure).values()) == [0, 2, 3, 4, 4, 5, 5, 5]
    assert len(marked(figure, "edge-")) == 7
    ranks, received = [str(r) for r in range(8)], ["0", "2", "3", "4", "4", "5", "5", "5"]
    starts = ["0", "1", "2", "3", "2", "3", "3"]
    assert sorted(texts(figure)) == sorted(ranks + received + starts)


@pytest.mark.parametrize(("name", "ranks"), [("binomial", 2), ("chain", 3), ("flat", 33)])
def test_every_rank_is_a_node_and_no_two_meet(name: str, ranks: int) -> None:
    figure = tree_diagram(*drawn(name, ranks))
    nodes = _nodes(figure)
    assert nodes.keys() == {str(r) for r in range(ranks)}
    assert len(set(nodes.values())) == ranks
    assert len(marked(figure, "edge-")) == ranks - 1


@pytest.mark.parametrize(("ranks", "lam"), [(13, 2), (16, 5), (30, 3)])
def test_edges_do_not_cross(ranks: int, lam: int) -> None:
    figure = tree_diagram(*drawn("postal_tree", ranks, lam=lam))
    nodes = _nodes(figure)
    edges = [name.split("-")[1:] for name in sorted(marked(figure, "edge-"))]
    for i, (a, b) in enumerate(edges):
        for c, d in edges[:i]:
            if len({a, b, c, d}) == 4:
                assert not _cross(nodes[a], nodes[b], nodes[c], nodes[d])


def _cross(a: tuple[float, float], b: tuple[float, float], *other: tuple[float, float]) -> bool:
    def side(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float]) -> float:
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    c, d = other
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


@pytest.mark.parametrize(("name", "ranks"), [("binomial", 2), ("binomial", 40), ("chain", 30)])
def test_labels_are_whole_and_apart(name: str, ranks: int) -> None:
    _check_labels(tree_diagram(*drawn(name, ranks)))


@pytest.mark.parametrize(
    ("kind", "placement"), [("emulated", "8x2"), ("emulated", "3+5"), ("sites", "2x8")]
)
def test_labels_where_the_ranks_of_a_node_receive_at_once(kind: str, placement: str) -> None:
    """Times that follow each other closely stand in rows of their own, still in their order."""
    machine = LEVEL_PRESETS[kind].machine(placement)
    ranks = machine.placement.ranks
    plan = cw.plan("broadcast", ranks=ranks, nbytes=512, machine=machine, algorithm="multilevel")
    figure = tree_diagram(ideal(plan.schedule, machine), plan.schedule, T0)
    _check_labels(figure)
    axes = figure.axes[0]
    assert "not to scale" in axes.get_ylabel()
    ticks = [label.get_text() for label in axes.get_yticklabels()]
    moments = sorted({y for _, y in _nodes(figure).values()})
    assert len(_nodes(figure)) == ranks
    assert len(ticks) == len(moments)
    pages = [axes.transData.transform((0, y))[1] for y in moments]
    assert all(above - below > 9 for above, below in pairwise(pages))  # a line of letters


def _check_labels(figure: Figure) -> None:
    axes, page = laid_out(figure).axes[0], figure.bbox
    inside = [t.get_window_extent() for t in axes.texts if t.get_text()]
    titles = [text for text in axes.findobj(Text) if isinstance(text, Text) and text.get_text()]
    titles = [t for t in titles if t.get_text() in (axes.get_title("left"), axes.get_ylabel())]
    boxes = inside + [title.get_window_extent() for title in (*titles, *figure.texts)]
    assert len(titles) == 2
    assert all(
        page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        for box in boxes
    )
    assert not any(a.overlaps(b) for i, a in enumerate(inside) for b in inside[:i])


def test_several_messages_into_a_rank() -> None:
    """The first one is drawn, where the scale says, and below the node stands the same time."""
    timing, schedule = drawn("chain_segmented", 3, nbytes=4, segment=1)
    figure = tree_diagram(timing, schedule, T0)
    assert "only the first of up to 4 messages" in figure.get_supxlabel()
    assert "below it: when it receives its first message" in figure.get_supxlabel()
    assert [_nodes(figure)[rank][1] for rank in ("1", "2")] == [2, 4]
    assert {"2", "4"} < set(texts(figure))
    assert not {"5", "7"} & set(texts(figure))


def test_any_root() -> None:
    figure = tree_diagram(*drawn("binomial", 5, root=3))
    assert _nodes(figure)["3"][1] == 0
    assert "root 3" in figure.axes[0].get_title("left")


def test_too_many_ranks_become_a_curve() -> None:
    figure = tree_diagram(*drawn("binomial", 65))
    assert not _nodes(figure)
    assert texts(figure) == ["65 ranks: too many for a tree"]
    assert ys(figure.axes[0].lines[0]) == list(range(1, 66))


def test_what_is_no_tree_becomes_a_curve() -> None:
    """Two ranks that give each other what they have: nobody is the root of both."""
    problem = Problem.of("allgather", 3, 1, sources=range(1, 3))
    block = problem.gathered[0]
    lists = ((Recv(2, (block,)),), (Send(2, (block,)), Recv(2, (block,))), (Send(1, (block,)),))
    swap = (*lists[:2], (Send(1, (block,)), Send(0, (block,)), Recv(1, (block,))))
    schedule = Schedule(problem, Written(swap))
    assert "more than one rank" in texts(tree_diagram(ideal(schedule, MACHINE), schedule))[0]


@pytest.mark.parametrize(("ranks", "nbytes"), [(1, 512), (4, 0)])
def test_nothing_to_send(ranks: int, nbytes: int) -> None:
    timing, schedule = drawn("binomial", ranks, nbytes=nbytes)
    for figure in (tree_diagram(timing, schedule), timeline(timing, schedule)):
        assert not figure.axes
        assert figure.texts[0].get_text().startswith("Nothing is sent")


def test_a_machine_without_costs() -> None:
    free = Machine.hockney(alpha_s=0, beta_s=0)
    timing, schedule = drawn("binomial", 4, machine=free)
    for figure in (tree_diagram(timing, schedule), timeline(timing, schedule)):
        assert "cost nothing" in figure.texts[0].get_text()


def test_a_hostile_name() -> None:
    timing, schedule = drawn("binomial", 4)
    hostile = Schedule(schedule.problem, schedule.program, "$\\bad{\n<script>")
    title = tree_diagram(timing, hostile).axes[0].get_title("left")
    assert title.startswith("$\\bad{ <script>\n512 B")


def test_times_in_fractions_of_t0() -> None:
    machine = Machine.postal(t0_s=T0, lam=Fraction(5, 2))
    assert "2.5" in texts(tree_diagram(*drawn("binomial", 4, machine=machine), T0))
