import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from collwise.figures.style import svg
from collwise.figures.timeline import MOST_ARROWS, MOST_FLIGHTS, timeline
from collwise.model.machine import Machine
from tests.figures.examples import T0, drawn, legend, texts, xs


def _bars(figure: Figure) -> list[tuple[float, float, int]]:
    """(start, end, rank) of the sends."""
    _, sends = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    boxes = [np.asarray(path.vertices, dtype=float) for path in sends.get_paths()]
    return [(float(b[0, 0]), float(b[1, 0]), round(float(b[:4, 1].mean()))) for b in boxes]


def _arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]


def test_the_lambda_tree_of_eight() -> None:
    figure = timeline(drawn("postal_tree", 8, lam=2)[0], T0)
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
    assert figure.axes[0].get_title("left") == "Complete after 5 t0"
    assert figure.axes[0].get_xlabel() == "time (in t0 = 1.70 µs)"
    receipts = figure.axes[0].lines[0]
    assert sorted(xs(receipts)) == [2, 3, 4, 4, 5, 5, 5]


def test_ranks_are_named_up_to_32() -> None:
    few, many = (timeline(drawn("binomial", ranks)[0]) for ranks in (32, 33))
    assert [int(tick) for tick in few.axes[0].get_yticks()] == list(range(32))
    assert len(many.axes[0].get_yticks()) < 12
    assert texts(few)
    assert not texts(many)


def test_many_messages_are_lines_without_heads() -> None:
    timing, _ = drawn("chain_segmented", 8, nbytes=64, segment=1)
    assert MOST_ARROWS < len(timing.transfers) <= MOST_FLIGHTS
    figure = timeline(timing)
    assert not _arrows(figure)
    assert len(_bars(figure)) == len(timing.transfers)
    assert "under way" in legend(figure)
    lines = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert len(timing.transfers) in [len(c.get_segments()) for c in lines]


def test_very_many_messages_are_joined() -> None:
    timing, _ = drawn("chain_segmented", 8, nbytes=400, segment=1)
    assert len(timing.transfers) > MOST_FLIGHTS
    figure = timeline(timing, T0)
    assert sorted(_bars(figure)) == [(2 * r, 2 * r + 400, r) for r in range(7)]
    assert "under way" not in legend(figure)


@pytest.mark.parametrize("ranks", [2, 300])
def test_any_number_of_ranks(ranks: int) -> None:
    assert svg(timeline(drawn("binomial", ranks)[0])).endswith("</svg>")


@pytest.mark.parametrize(
    "machine",
    [
        Machine.postal(t0_s=1, lam=1),
        Machine.hockney(alpha_s=1e-6, beta_s=1e-9),
        Machine.loggp(L_s=2e-6, o_s=1e-6, g_s=1e-6, G_s=1e-9),
    ],
)
def test_any_machine(machine: Machine) -> None:
    figure = timeline(drawn("binomial", 8, machine=machine)[0])
    assert len(_bars(figure)) == 7
