"""Curves, bars and Christmas trees: nothing hides anything, and axes say what they show."""

from fractions import Fraction

import pytest

from collwise.figures.candidate_bars import candidate_bars
from collwise.figures.christmas_tree import christmas_tree
from collwise.figures.line_chart import Curve, line_chart
from collwise.model import postal
from tests.figures.examples import xs, ys

ONE = Curve("one", {1: 10.0, 2: 20.0, 3: 40.0})


@pytest.mark.parametrize(("second", "hidden"), [((10.0, 20.1, 55.0), True), ((12, 20, 55), False)])
def test_a_line_on_top_of_another_lets_it_be_seen(second: tuple[float, ...], hidden: bool) -> None:
    figure = line_chart([ONE, Curve("two", dict(zip((1, 2, 3), second, strict=True)))], "n", "ms")
    below, above = figure.axes[0].lines
    assert below.get_linestyle() == "-"
    assert (above.get_linestyle() != "-") == hidden
    assert (above.get_linewidth() < below.get_linewidth()) == hidden


def test_points_over_names_stand_side_by_side() -> None:
    lines = [Curve(name, {0: 5.0, 1: 6.0}, "points") for name in ("one", "two")]
    left, right = line_chart(lines, "mesh", "ms", ticks={0: "a", 1: "b"}).axes[0].lines
    assert ys(left) == ys(right)
    assert xs(left)[0] < 0 < xs(right)[0] < xs(left)[1]


def test_a_logarithmic_axis_has_ticks_in_one_decade() -> None:
    axes = line_chart([ONE], "n", "ms", logarithmic="y").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["10", "20"]


def test_the_triangles_of_a_christmas_tree_carry_their_times() -> None:
    numbers = range(2, 91)
    figure = christmas_tree(
        {n: postal.alpha_range(n, 2) for n in numbers},
        postal.alpha_intersection(90, 2),
        {n: postal.broadcast_time(n, 2) for n in numbers},
    )
    texts = {text.get_text(): text.xy[1] for text in figure.axes[0].texts}  # type: ignore[attr-defined]
    assert texts["10 t0"] == (56 + 89) / 2
    assert not any(text.startswith(("1 t0", "11 t0")) for text in texts)


def test_bars_of_candidates() -> None:
    """The chosen one stands out, a very slow one is cut, and the bound is told."""
    times = {"fast": Fraction(2), "slow": Fraction(3), "hopeless": Fraction(500)}
    axes = candidate_bars(times, Fraction(1), "fast", Fraction(1)).axes[0]
    fast, slow, hopeless = axes.patches
    assert fast.get_facecolor() != slow.get_facecolor() == hopeless.get_facecolor()
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["2", "3", "500 →", "no schedule can be faster: 1"]
    assert axes.get_xlabel() == "time (in t0)"
    assert axes.get_xlim()[1] < 25
