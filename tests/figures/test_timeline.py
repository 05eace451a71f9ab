import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from collwise.algorithms.registry import ALGORITHMS
from collwise.figures.timeline import MAX_ARROWS, MAX_FLIGHTS, _label_place, timeline
from collwise.model.machine import Machine
from collwise.model.presets import PRESETS
from collwise.model.topology import Mesh
from collwise.system.formatting import scale_for
from collwise.timing import ideal
from tests.figures.examples import MACHINE, T0, drawn, legend, texts, xs, ys


def _bars(figure: Figure) -> list[tuple[float, float, int]]:
    """(start, end, rank) of the sends."""
    _, sends, *_ = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    boxes = [np.asarray(path.vertices, dtype=float) for path in sends.get_paths()]
    return [(float(b[0, 0]), float(b[1, 0]), round(float(b[:4, 1].mean()))) for b in boxes]


def _arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]


def test_the_lambda_tree_of_eight() -> None:
    figure = timeline(*drawn("postal_tree", 8, lam=2), T0)
    assert sorted(_bars(figure)) == [
        (0, 1, 0),
        (1, 2, 0),
        (2, 3, 0),
        (2, 3, 5),
        (3, 4, 0),
        (3, 4, 3),
        (3, 4, 5),
    ]
    assert len(_arrows(figure)) == 7
    assert sorted(texts(figure)) == [f"→{rank}" for rank in range(1, 8)]
    assert figure.axes[0].get_title("left").endswith("8 ranks, complete after 5 t0")
    assert figure.axes[0].get_xlabel() == "time (in t0 = 1.70 µs)"
    receipts = figure.axes[0].lines[0]
    assert sorted(xs(receipts)) == [2, 3, 4, 4, 5, 5, 5]


def test_ranks_are_named_up_to_32() -> None:
    few, many = (timeline(*drawn("binomial", ranks)) for ranks in (32, 33))
    assert [int(tick) for tick in few.axes[0].get_yticks()] == list(range(32))
    assert len(many.axes[0].get_yticks()) < 12
    assert texts(few)
    assert not texts(many)


def test_many_messages_are_lines_without_heads() -> None:
    timing, schedule = drawn("chain_segmented", 8, nbytes=64, segment=1)
    assert MAX_ARROWS < len(timing.transfers) <= MAX_FLIGHTS
    figure = timeline(timing, schedule)
    assert not _arrows(figure)
    assert len(_bars(figure)) == len(timing.transfers)
    assert "under way" in legend(figure)
    lines = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert len(timing.transfers) in [len(c.get_segments()) for c in lines]


def test_very_many_messages_are_joined() -> None:
    timing, schedule = drawn("chain_segmented", 8, nbytes=400, segment=1)
    assert len(timing.transfers) > MAX_FLIGHTS
    figure = timeline(timing, schedule, T0)
    assert sorted(_bars(figure)) == [(2 * r, 2 * r + 400, r) for r in range(7)]
    assert "under way" not in legend(figure)


BR_LIN = ALGORITHMS["allgatherv/br_lin"].schedule(16, 4096, sources=[0, 5, 9, 14], shape=(4, 4))
PARAGON = PRESETS["paragon"].machine
POSTAL = Machine.postal(t0_s=1, lam="3/2")
RING = ALGORITHMS["allgatherv/ring"].schedule(6, 8, sources=range(6), shape=(2, 3))
DOUBLING = ALGORITHMS["allreduce/recursive_doubling"].schedule(16, 64, 0)
LABELLED = {
    "broadcast": drawn("postal_tree", 8, lam=2),
    "a mesh": (ideal(BR_LIN, PARAGON, Mesh(4, 4)), BR_LIN),
    "dots in bars": (ideal(RING, POSTAL), RING),
    "a pipeline": drawn("chain_segmented", 8, nbytes=8, segment=1),
    "doubling": (ideal(DOUBLING, Machine.hockney(alpha_s=1, beta_s="1/8")), DOUBLING),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labels_can_be_read(name: str) -> None:
    """None is covered by a dot, none leaves its bar, and bars with room have one."""
    figure = timeline(*LABELLED[name])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    axes = figure.axes[0]
    point = figure.dpi / 72
    dots = [
        (*axes.transData.transform((x, y)), line.get_markersize() * point / 2)
        for line in axes.lines
        if line.get_marker() == "o"
        for x, y in zip(xs(line), ys(line), strict=True)
    ]
    bars = [
        (axes.transData.transform((start, rank))[0], axes.transData.transform((end, rank)))
        for start, end, rank in _bars(figure)
    ]
    assert dots
    labels = [text for text in axes.texts if text.get_text()]
    assert labels
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    boxes = [label.get_window_extent(renderer) for label in labels]
    for label, box in zip(labels, boxes, strict=True):
        x, y = axes.transData.transform(label.get_position())
        assert any(low <= box.x0 and box.x1 <= high and abs(y - row) < 1
                   for low, (high, row) in bars), label  # fmt: skip
        for dot_x, dot_y, radius in dots:
            apart = max(box.x0 - dot_x, dot_x - box.x1)
            assert abs(dot_y - y) > 1 or apart >= radius, (label, x)
    inch = figure.dpi
    roomy = [bar for bar in bars if bar[1][0] - bar[0] > inch]
    assert len(labels) >= len(roomy)


def test_a_label_gives_way_to_dots() -> None:
    """To the nearer side, if it fits there; else it is left out."""
    assert _label_place(0, 10, [], 4, 1) == 5
    assert _label_place(0, 10, [-3, 13], 4, 1) == 5
    assert _label_place(0, 10, [5], 4, 1) == 2
    assert _label_place(0, 10, [4], 4, 1) == 7
    assert _label_place(0, 10, [0, 10], 4, 1) == 5
    assert _label_place(0, 10, [3, 7], 4, 1) is None
    assert _label_place(0, 3, [], 4, 1) is None


def test_combining_is_drawn() -> None:
    """Where it takes time: from the last receipt on, beside the sends."""
    figure = timeline(*LABELLED["doubling"])
    assert "combining" not in legend(figure)
    machine = Machine.hockney(alpha_s=1, beta_s="1/8", gamma_s="1/16")
    timing = ideal(DOUBLING, machine)
    figure = timeline(timing, DOUBLING)
    assert "combining" in legend(figure)
    boxes = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]
    drawn_boxes = {
        (float(corners[0, 0]), float(corners[1, 0]), round(float(corners[:4, 1].mean())))
        for collection in boxes
        for corners in (np.asarray(path.vertices) for path in collection.get_paths())
    }
    scale = scale_for(timing.completion)
    combines = {(scale.value(c.start), scale.value(c.end), c.rank) for c in timing.combines}
    assert len(combines) == 4 * 16
    assert combines <= drawn_boxes


def test_the_last_row_is_whole() -> None:
    figure = timeline(*drawn("binomial", 1024), T0)
    assert figure.axes[0].get_ylim()[0] > 1030


def test_what_was_timed() -> None:
    """The title says it; and who has data from the start, though it may never send."""
    for name in ("reduce/binomial", "allreduce/recursive_doubling"):
        schedule = ALGORITHMS[name].schedule(4, 64, 0)
        figure = timeline(ideal(schedule, MACHINE), schedule, T0)
        title = figure.axes[0].get_title("left")
        assert title.startswith(f"{name}\n64 B, ")
        assert title.endswith(" t0")
        held, _ = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
        starts = [float(np.asarray(path.vertices)[0, 0]) for path in held.get_paths()]
        assert starts == [0.0] * 4
    timing, schedule = drawn("postal_tree", 8, lam=2)
    title = timeline(timing, schedule, T0).axes[0].get_title("left")
    assert title == "broadcast/postal_tree(lam=2)\n512 B, root 0, 8 ranks, complete after 5 t0"
