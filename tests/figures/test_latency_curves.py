from collections.abc import Iterable

import pytest
from matplotlib.lines import Line2D

from collwise.figures.latency_curves import MODES, latency_curves
from collwise.figures.style import svg
from tests.figures.examples import legend, ys
from tests.profiles.example import point, profile


def _curves(lines: Iterable[Line2D], colour: str, width: float = 1.6) -> list[list[float]]:
    return [
        ys(line)
        for line in lines
        if line.get_color() == colour
        and line.get_linewidth() == width
        and line.get_linestyle() in ("-", "--")
    ]


def test_both_modes_break_where_the_protocol_changes() -> None:
    measured = profile()
    upper, lower = latency_curves(measured).axes
    for mode, style in MODES.items():
        points = [p for p in measured.points if p.mode == mode]
        assert _curves(upper.lines, style.colour) == [[p.lam for p in points[:3]], [points[3].lam]]
        t0s = [p.t0_s for p in points]
        assert _curves(lower.lines, style.colour) == [t0s[:3], t0s[3:]]
        held = [p.t0_s * p.lam for p in points]
        assert _curves(lower.lines, style.colour, 0.8) == [held[:3], held[3:]]


def test_the_legend_says_what_there_is() -> None:
    entries = legend(latency_curves(profile()))
    assert {"non-blocking: λ, t0", "blocking: λ·t0", "experiment 1", "experiment 2"} < set(entries)
    assert {"95 % interval", "protocol changes", "λ < 1: used as 1"} < set(entries)


def test_a_single_point_without_intervals() -> None:
    bare = point(
        1000,
        "blocking",
        lam=0.4,
        t0_interval_s=None,
        lam_interval=None,
        lam_experiments=(None, None),
        segment=0,
    )
    figure = latency_curves(profile([bare], medians=()))
    assert len(legend(figure)) == 3
    low, high = figure.axes[0].get_ylim()
    assert low < 0.4 < 1 < high
    svg(figure)


@pytest.mark.parametrize("lams", [(-3.0, 1.0), (1.0, 1.0), (1e5, 0.2)])
def test_wild_values_leave_a_readable_axis(lams: tuple[float, float]) -> None:
    lam, other = lams
    wild = [
        point(8, "nonblocking", lam, lam_interval=(min(lam, -1e9), 1e12)),
        point(9, "nonblocking", other, t0_interval_s=(-1.0, 1.0)),
    ]
    figure = latency_curves(profile(wild))
    low, high = figure.axes[0].get_ylim()
    assert low < 1 < high < 4 * max(*lams, 2)
    svg(figure)
