"""Logarithmic axes with units, for message sizes, times and ratios."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

from collwise.system import formatting

MAX_TICKS = 9


def size_axis(axes: Axes, sizes: Iterable[int], label: str = "message size") -> None:
    """Set up the x axis for message sizes ≥ 1 byte: ticks at the sizes, or at powers of two."""
    ticks: list[float] = sorted(set(sizes))
    low, high = ticks[0], ticks[-1]
    axes.set_xscale("log", base=2)
    margin = max((high / low) ** 0.04, 2**0.25)
    axes.set_xlim(low / margin, high * margin)
    least_apart = (high / low) ** (0.8 / MAX_TICKS)
    if len(ticks) > MAX_TICKS or any(b < a * least_apart for a, b in pairwise(ticks)):
        ticks = _inside(LogLocator(2, numticks=MAX_TICKS), low, high) or [low]
    _set_ticks(axes.xaxis, ticks, lambda x: formatting.size(round(x)))
    axes.set_xlabel(label)


def time_axis(axis: Axis, low_s: float, high_s: float, label: str) -> None:
    """Set up an axis for times > 0, from a little below `low_s` to a little above `high_s`."""
    bottom, top = _logarithmic(axis, low_s, high_s)
    _set_ticks(axis, decimal_ticks(bottom, top), _short_time)
    axis.set_label_text(label)


def ratio_axis(axis: Axis, low: float, high: float, label: str) -> None:
    """Set up an axis for ratios > 0 that includes 1; half and double are equally far from 1."""
    bottom, top = _logarithmic(axis, min(low, 0.9), max(high, 1.1))
    ticks = decimal_ticks(bottom, top) if top / bottom > 4 else _linear_ticks(bottom, top)
    _set_ticks(axis, ticks, lambda x: f"{x:g}×")
    axis.set_label_text(label)


def _logarithmic(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """Make an axis logarithmic, from a little below low to a little above high; return its ends."""
    margin = max((high / low) ** 0.06, 1.08)
    ends = low / margin, high * margin
    name = axis.axis_name  # type: ignore[attr-defined]
    assert isinstance(axis.axes, Axes)
    axis.axes.set(**{f"{name}scale": "log", f"{name}lim": ends})
    return ends


def decimal_ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5, 10, …, or powers of ten or a thousand; evenly spaced if hardly any fit."""
    for base, factors in ((10, (1, 2, 5)), (10, (1,)), (1000, (1,))):
        ticks = _inside(LogLocator(base, factors, numticks=99), low, high)
        if len(ticks) <= MAX_TICKS:
            break
    return ticks if len(ticks) > 1 else _linear_ticks(low, high)


def _linear_ticks(low: float, high: float) -> list[float]:
    return _inside(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]), low, high)


def _inside(locator: Locator, low: float, high: float) -> list[float]:
    return [tick for tick in locator.tick_values(low, high) if low <= tick <= high]


def _short_time(seconds: float) -> str:
    number, _, unit = formatting.time(seconds).partition(" ")
    return f"{float(number):g} {unit}"


def _set_ticks(axis: Axis, ticks: Sequence[float], text: Callable[[float], str]) -> None:
    axis.set_ticks(ticks, labels=[text(tick) for tick in ticks])
    axis.minorticks_off()
