"""The α that split n ranks optimally, over n: the Christmas tree [Bruck1996 Figs 6, 7]."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import groupby

from matplotlib.figure import Figure

from collwise.figures.style import BLUE, GREEN, INK, MUTED, VERMILION, beside, look
from collwise.model.postal.alpha import AlphaRange

LEAST_NAMED = 6
"""How many numbers of ranks a triangle must span at least to have room for its label."""


@look()
def christmas_tree(
    ranges: Mapping[int, AlphaRange],
    common: AlphaRange | None,
    times: Mapping[int, Fraction],
    *,
    title: str = "",
) -> Figure:
    """A bar of the optimal α for every number of ranks, and a line at an α that suits all, if any.

    α is the share of the ranks that a source keeps.   ranges: for each number of ranks, the lowest
    optimal α, and the end of the range (exclusive).   common: the range of α that suits all; if it
    is None, the ranges that rule each other out are orange.   times: for each number of ranks, in
    t0; numbers with equal times form a triangle, labelled with the time if there is room.
    """
    figure = Figure((6.4, 8.2))
    axes = figure.subplots()
    floats = {n: (float(low), float(high)) for n, (low, high) in ranges.items()}
    low, high = max(r[0] for r in floats.values()), min(r[1] for r in floats.values())
    for n, (left, right) in floats.items():
        bad = common is None and (left >= high or right <= low)
        axes.barh(n, right - left, 1, left, color=VERMILION if bad else BLUE, lw=0)
    axes.axvline(0.5, color=INK, lw=0.8, ls=(0, (4, 3)))
    beside(axes, "binomial, α = ½", (0.5, max(ranges)), (-4, 6), ha="right")
    if common:
        middle = float(sum(common) / 2)
        axes.axvline(middle, color=GREEN, lw=1.8)
        text = f"one α for all: {float(common[0]):.4f} ≤ α < {float(common[1]):.4f}"
        beside(axes, text, (middle, max(ranges)), (4, 6), color=GREEN)
    else:
        text = "no α for all: the ranges in orange rule each other out"
        beside(axes, text, (0.53, max(ranges)), (0, 6), color=VERMILION)
    for time, group in groupby(ranges, key=times.__getitem__):
        if len(ranks := list(group)) >= LEAST_NAMED:
            text, at = f"{float(time):g} t0", (1, (ranks[0] + ranks[-1]) / 2)
            beside(axes, text, at, (6, 0), va="center", color=MUTED)
    axes.set_xlim(min(0.45, *(r[0] for r in floats.values())), 1)
    axes.set_ylim(0, max(ranges) + 2)
    axes.set_xlabel("α: the share of the ranks that the source keeps")
    axes.set_ylabel("n: ranks")
    axes.set_title(title, pad=20)
    return figure
