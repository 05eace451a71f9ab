"""Pictures of schedules on machines with levels: each message in the colour of what it crosses."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

import collwise as cw
from collwise.figures.schedule_frame import LEVEL_COLOURS, level_colour, level_labels
from collwise.figures.timeline import timeline
from collwise.figures.tree_diagram import tree_diagram
from collwise.model.placement import Placement
from tests.figures.examples import laid_out, legend

INSIDE, ACROSS = cw.Machine.postal(t0_s=1, lam=2), cw.Machine.postal(t0_s=4, lam=3)
MACHINE = cw.Machine.levels([INSIDE, ACROSS], Placement.regular(3, 2))
PLAN = cw.plan("broadcast", ranks=6, nbytes=8, machine=MACHINE, algorithm="multilevel")


def test_a_tree_shows_its_groups() -> None:
    timing = cw.ideal(PLAN.schedule, MACHINE)
    figure = tree_diagram(timing, PLAN.schedule, None, MACHINE.crossings)
    axes = figure.axes[0]
    edges = {
        line.get_gid(): line.get_color() for line in axes.lines if "edge" in str(line.get_gid())
    }
    assert len(edges) == 5
    for name, colour in edges.items():
        source, target = map(int, str(name).split("-")[1:])
        assert colour == LEVEL_COLOURS[MACHINE.placement.meeting(source, target) - 1]
    assert {*legend(figure)} == {"inside a node", "between nodes"}
    assert "the number of the rank's node" in figure._supxlabel.get_text()  # type: ignore[attr-defined]


def test_what_is_fast_inside_a_group_does_not_overlap() -> None:
    """Nor does it hide in the legend: after a long hop, ranks of a group are informed at once."""
    fast = cw.Machine.postal(t0_s="0.001", lam=1)
    machine = cw.Machine.levels([fast, ACROSS], Placement.regular(4, 2))
    plan = cw.plan("broadcast", ranks=8, nbytes=8, machine=machine, algorithm="multilevel")
    figure = laid_out(tree_diagram(cw.ideal(plan.schedule, machine), plan.schedule))
    axes = figure.axes[0]
    nodes = [line for line in axes.lines if "node" in str(line.get_gid())]
    boxes = [line.get_window_extent() for line in nodes]
    boxes += [entries.get_window_extent() for entries in figure.legends]
    assert len(boxes) == 9
    texts = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(texts)) == len(texts) > 4
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_timeline_shows_which_level_messages_cross() -> None:
    timing = cw.ideal(PLAN.schedule, MACHINE)
    figure = timeline(timing, PLAN.schedule)
    drawn = sorted(to_hex(arrow.get_edgecolor()) for arrow in figure.axes[0].patches)
    crossed = [level_colour(MACHINE.placement, t.source, t.target) for t in timing.transfers]
    assert drawn == sorted(map(to_hex, crossed))
    assert {"inside a group", "between groups"} < {*legend(figure)}
    assert "under way" not in {*legend(figure)}


def test_a_long_name_is_not_cut() -> None:
    """Its settings take a second line, which is no wider than the picture."""
    inside = "inside=postal_tree_segmented(lam=1107/23)"
    name = f"broadcast/multilevel_rounds(latencies=2 19, segment=683, {inside})"
    schedule = replace(PLAN.schedule, algorithm=name)
    figure = laid_out(tree_diagram(cw.ideal(schedule, MACHINE), schedule))
    title = figure.axes[0]._left_title  # type: ignore[attr-defined]
    assert title.get_text().splitlines()[1].endswith(f"{inside})")
    assert title.get_window_extent().x1 < figure.bbox.width


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 2, 2, 2)])
def test_many_levels(sizes: tuple[int, ...]) -> None:
    placement = Placement.regular(*sizes)
    assert len(level_labels(placement)) == min(len(sizes), len(LEVEL_COLOURS))
    assert level_colour(placement, 0, placement.ranks - 1) == LEVEL_COLOURS[min(len(sizes), 4) - 1]
    assert level_labels(None) == []
    assert level_colour(None, 0, 1) == LEVEL_COLOURS[0]


def test_a_long_legend_takes_two_lines() -> None:
    """Of three levels: in one it would be wider than the picture."""
    machine = cw.Machine.levels([INSIDE, ACROSS, ACROSS], Placement.regular(2, 2, 2))
    plan = cw.plan("broadcast", ranks=8, nbytes=8, machine=machine, algorithm="multilevel")
    timing = cw.ideal(plan.schedule, machine)
    assert "meets at level 3" in legend(timeline(timing, plan.schedule))
    figure = laid_out(timeline(timing, plan.schedule, None, machine.crossings))
    (entries,) = figure.legends
    assert len(legend(figure)) == 6
    assert entries.get_window_extent().width < figure.bbox.width
