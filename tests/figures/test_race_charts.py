import pytest

from collwise.figures.race_charts import comparable_races, speedups
from collwise.figures.style import svg
from collwise.measure.race import Race
from tests.figures.examples import RACES, legend, race, xs, ys
from tests.profiles.example import SIZES


def test_predictions_and_the_limit() -> None:
    """Of the same schedule, in the same scale; half the predicted time is twice the speed-up."""
    bounds_s = dict.fromkeys(SIZES, 4e-06)
    figure = speedups({"persistent": RACES}, bounds_s)
    assert {"as predicted", "limit by the model"} < set(legend(figure))
    axes = figure.axes[0]
    (predicted,) = (line for line in axes.lines if line.get_marker() == "D" and len(xs(line)) > 1)
    assert xs(predicted) == list(SIZES)
    library_s = [r.medians[r.library].middle for r in RACES]
    ideal = [t / r.predicted_s[r.best] for t, r in zip(library_s, RACES, strict=True)]
    assert ys(predicted) == pytest.approx(ideal)
    assert any(ys(line) == pytest.approx([t / 4e-6 for t in library_s]) for line in axes.lines)
    low, high = axes.get_ylim()
    assert low < min(ideal) <= max(ideal) < high
    assert "limit by the model" not in legend(speedups({"persistent": RACES}))


def test_speedups_stand_at_their_sizes() -> None:
    figure = speedups({"persistent": RACES})
    axes = figure.axes[0]
    points = {xs(line)[0]: ys(line)[0] for line in axes.lines if line.get_marker() == "o"}
    assert points == {r.nbytes: pytest.approx(r.speedup(r.best).middle) for r in RACES}
    assert [t for t in axes.get_xticks() if t > 0] == list(SIZES)
    assert "postal_tree" in legend(figure)


def test_blocking_calls_stand_beside_persistent_ones() -> None:
    """In one scale, with one legend; each picture only where there is something to show."""
    slower = [race(nbytes, gain) for nbytes, gain in zip(SIZES, (0.9, 0.8, 1.2, 0.7), strict=True)]
    figure = speedups({"blocking": slower, "persistent": RACES})
    left, right = figure.axes
    assert [axes.get_title("left") for axes in figure.axes] == [
        "blocking calls", "persistent calls"
    ]  # fmt: skip
    assert left.get_ylim() == right.get_ylim()
    for axes, races in ((left, slower), (right, RACES)):
        points = [line for line in axes.lines if line.get_marker() == "o"]
        assert {xs(p)[0]: ys(p)[0] for p in points} == {
            r.nbytes: pytest.approx(r.speedup(r.best).middle) for r in races
        }
        filled = [p.get_markerfacecolor() == p.get_color() for p in points]
        assert filled == [r.winner == r.best for r in races]
    assert legend(figure).count("postal_tree") == 1
    (only,) = speedups({"blocking": slower, "persistent": []}).axes
    assert only.get_title("left") == "blocking calls"


def test_too_few_samples_for_an_interval() -> None:
    figure = speedups({"persistent": [race(repetitions=2)]})
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
    figure = speedups({"persistent": races})
    assert not figure.axes
    assert "no speed-up" in figure.texts[0].get_text()


def test_comparable_races() -> None:
    broken = Race("broadcast", 2, 8, 0, {"library": (1.0,), "x": ()}, {})
    assert comparable_races([RACES[0], broken]) == [RACES[0]]


def test_more_names_than_colours_and_odd_ones() -> None:
    odd = [f"_{i} $\\x{{" + "y" * 50 for i in range(20)]
    races = [race(8 << i, others_s={name: 1e-6}) for i, name in enumerate(odd)]
    figure = speedups({"nonblocking": races})
    names = legend(figure)[: len(odd)]
    assert all(name.strip().startswith(f"_{i} ") for i, name in enumerate(names))
    assert all(len(name) <= 34 for name in names)
    points = [line for line in figure.axes[0].lines if len(xs(line)) == 1]
    assert len({(line.get_color(), line.get_marker()) for line in points}) == len(odd)
    svg(figure)
