import pytest

from collwise.figures.race_charts import comparable_races, predicted_against_measured, speedups
from collwise.figures.style import svg
from collwise.measure.race import Race
from tests.figures.examples import RACES, SIZES, legend, race, xs, ys


def test_predictions_of_every_competitor() -> None:
    figure = predicted_against_measured(RACES)
    assert legend(figure) == ["postal_tree", "binomial", "as predicted", "within 10 %"]
    left, right = figure.axes
    assert left.get_xlim() == left.get_ylim()
    points = [line for line in left.lines if line.get_marker() in ("o", "s")]
    assert len(points) == 2 * len(SIZES)
    assert right.get_title("left").endswith("over 8 times")


def test_speedups_stand_at_their_sizes() -> None:
    figure = speedups(RACES)
    axes = figure.axes[0]
    points = {xs(line)[0]: ys(line)[0] for line in axes.lines if line.get_marker() == "o"}
    assert points == {r.nbytes: pytest.approx(r.speedup(r.best).middle) for r in RACES}
    assert [t for t in axes.get_xticks() if t > 0] == list(SIZES)
    assert "postal_tree" in legend(figure)


def test_a_chosen_schedule_is_filled_and_others_hollow() -> None:
    points = [line for line in speedups(RACES).axes[0].lines if line.get_marker() == "o"]
    filled = [p.get_markerfacecolor() == p.get_color() for p in points]
    assert filled == [r.winner == r.best for r in RACES] == [True, True, False, False]


def test_blocking_calls_stand_beside_persistent_ones() -> None:
    """In one scale, with one legend; each picture only where there is something to show."""
    slower = [race(nbytes, gain) for nbytes, gain in zip(SIZES, (0.9, 0.8, 1.2, 0.7), strict=True)]
    figure = speedups(RACES, slower)
    left, right = figure.axes
    assert [axes.get_title("left") for axes in figure.axes] == [
        "persistent calls", "blocking calls"
    ]  # fmt: skip
    assert left.get_ylim() == right.get_ylim()
    for axes, races in ((left, RACES), (right, slower)):
        points = [line for line in axes.lines if line.get_marker() == "o"]
        assert {xs(p)[0]: ys(p)[0] for p in points} == {
            r.nbytes: pytest.approx(r.speedup(r.best).middle) for r in races
        }
        filled = [p.get_markerfacecolor() == p.get_color() for p in points]
        assert filled == [r.winner == r.best for r in races]
    assert legend(figure).count("postal_tree") == 1
    (only,) = speedups([], slower).axes
    assert only.get_title("left") == "blocking calls"


def test_too_few_samples_for_an_interval() -> None:
    figure = speedups([race(repetitions=2)])
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < 1 < 1.5 < high < 10
    svg(figure)


@pytest.mark.parametrize(
    "races",
    [
        [],
        [Race("broadcast", 2, 8, 0, {"library": (1.0, 2.0)}, {})],
        [Race("broadcast", 2, 8, 0, {"broadcast/flat": (1.0,)}, {})],
        [Race("broadcast", 2, 8, 0, {"library": (), "broadcast/flat": ()}, {})],
        [Race("broadcast", 2, 8, 0, {"library": (1.0,), "broadcast/flat": (0.0,)}, {})],
        [Race("broadcast", 2, 0, 0, {"library": (1.0,), "broadcast/flat": (1.0,)}, {})],
    ],
)
def test_races_that_say_nothing(races: list[Race]) -> None:
    for figure in (speedups(races), predicted_against_measured(races)):
        assert not figure.axes
        assert "nothing to compare" in (text := figure.texts[0].get_text()) or "no speed" in text


def test_comparable_races() -> None:
    broken = Race("broadcast", 2, 8, 0, {"library": (1.0,), "x": ()}, {})
    assert comparable_races([RACES[0], broken]) == [RACES[0]]


def test_more_names_than_colours_and_odd_ones() -> None:
    odd = {f"_{i} $\\x{{" + "y" * 50: 2e-5 + i * 1e-6 for i in range(20)}
    figure = predicted_against_measured([race(512, others_s=odd)])
    entries = legend(figure)
    assert len(entries) == 24
    assert all(len(entry) <= 34 for entry in entries)
    styles = {(h.get_color(), h.get_marker()) for h in figure.axes[0].lines if h.get_marker()}
    assert len(styles) > 20
    svg(figure)
