"""Times over sizes: what was measured, with intervals, and what was predicted."""

import numpy as np
from matplotlib.collections import LineCollection

from collwise.figures.sweep_chart import MAX_PANELS, SweepPanel, sweep_chart
from collwise.measure.statistics import Interval
from tests.figures.examples import xs, ys

TIMES = {n: Interval(n * 1e-6, n * 0.9e-6, n * 1.3e-6) for n in (8, 64, 512)}
PANEL = SweepPanel("broadcast, 4 ranks", {"library": TIMES, "collwise": TIMES}, {8: 7e-6, 64: 7e-5})


def test_a_panel_shows_medians_intervals_and_predictions() -> None:
    axes = sweep_chart([PANEL]).axes[0]
    library, ours, predicted = axes.lines
    assert xs(library) == xs(ours) == [8, 64, 512]
    assert ys(library) == [time.middle for time in TIMES.values()]
    assert ys(predicted) == [7e-6, 7e-5]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    bars = axes.collections[0]
    assert isinstance(bars, LineCollection)
    ends = [np.asarray(segment)[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[time.low, time.high] for time in TIMES.values()]
    low, high = axes.get_ylim()
    assert low < 0.9 * 8e-6 < 1.3 * 512e-6 < high


def test_what_has_no_place_on_logarithmic_axes() -> None:
    nothing = PANEL._replace(measured={"library": {0: TIMES[8]}}, predicted={0: 1e-6})
    assert "No size above 0 bytes" in sweep_chart([nothing]).texts[0].get_text()
    with_zero = PANEL._replace(measured={"library": {0: TIMES[8], **TIMES}})
    assert xs(sweep_chart([nothing, with_zero]).axes[0].lines[0]) == [8, 64, 512]


def test_several_panels() -> None:
    for count, shown in ((2, 2), (3, 4), (20, MAX_PANELS)):
        axes = sweep_chart([PANEL] * count).axes
        assert len(axes) == shown
        assert sum(one.axison for one in axes) == min(count, MAX_PANELS)
