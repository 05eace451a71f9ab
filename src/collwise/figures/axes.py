"""Axes with units: message sizes in powers of two, times and ratios on logarithmic scales."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, log2, log10

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from collwise.system import formatting

MOST_TICKS = 9


def size_axis(axes: Axes, sizes: Iterable[int], label: str = "message size") -> None:
    """The x axis for message sizes of at least 1 byte: ticks at the sizes, or at powers of two."""
    ticks = sorted(set(sizes))
    low, high = ticks[0], ticks[-1]
    axes.set_xscale("log", base=2)
    room = max((high / low) ** 0.04, 2**0.25)
    axes.set_xlim(low / room, high * room)
    apart = (high / low) ** (0.8 / MOST_TICKS)
    if len(ticks) > MOST_TICKS or any(b < a * apart for a, b in pairwise(ticks)):
        first, last = ceil(log2(low)), floor(log2(high))
        step = max(ceil((last - first + 1) / MOST_TICKS), 1)
        ticks = [2**e for e in range(first, last + 1, step)] or [low]
    _fix(axes.xaxis, ticks, lambda x: formatting.size(round(x)))
    axes.set_xlabel(label)


def time_axis(axis: Axis, low: float, high: float, label: str) -> None:
    """A logarithmic axis for seconds above 0, from below `low` to above `high`, with units."""
    bottom, top = _span(axis, low, high)
    _fix(axis, _decimal_ticks(bottom, top), _short_time)
    axis.set_label_text(label)


def ratio_axis(axis: Axis, low: float, high: float, label: str) -> None:
    """A logarithmic axis for ratios, 1 among them, with twice as far as half."""
    low, high = min(low, 1.0), max(high, 1.0)
    bottom, top = _span(axis, min(low, 0.9), max(high, 1.1))
    near = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.75, 2)
    inside = [t for t in near if bottom <= t <= top]
    if top / bottom > 4:
        inside = _decimal_ticks(bottom, top)
    elif top / bottom > 1.8:
        inside = [t for t in (0.5, 0.7, 1, 1.25, 1.5, 2, 2.5, 3) if bottom <= t <= top]
    _fix(axis, inside, lambda x: f"{x:g}×")
    axis.set_label_text(label)


def _span(axis: Axis, low: float, high: float) -> tuple[float, float]:
    room = max((high / low) ** 0.06, 1.08)
    bottom, top = low / room, high * room
    name = axis.axis_name  # type: ignore[attr-defined]
    axes = axis.axes
    assert isinstance(axes, Axes)
    if name == "x":
        axes.set_xscale("log")
        axes.set_xlim(bottom, top)
    else:
        axes.set_yscale("log")
        axes.set_ylim(bottom, top)
    return bottom, top


def _decimal_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … or powers of ten, or of a thousand: as dense as they can be read."""
    first, last = floor(log10(low)), ceil(log10(high))
    for factors, step in (((1, 2, 5), 1), ((1,), 1), ((1,), 3)):
        ticks = [f * 10.0**e for e in range(first, last + 1) if e % step == 0 for f in factors]
        inside = [t for t in ticks if low <= t <= high]
        if len(inside) <= MOST_TICKS:
            break
    return inside if len(inside) > 1 else _linear_ticks(low, high)


def _linear_ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two that are close together."""
    step = 10.0 ** floor(log10(high - low))
    while (high - low) / step < 3:
        step /= 2
    return [i * step for i in range(ceil(low / step), floor(high / step) + 1)]


def _short_time(seconds: float) -> str:
    text = formatting.time(seconds)
    number, _, unit = text.partition(" ")
    return f"{float(number):g} {unit}"


def _fix(axis: Axis, ticks: Sequence[float], text: Callable[[float], str]) -> None:
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: text(x)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
