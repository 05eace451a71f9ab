"""Over the length of the message: which algorithm is predicted best, and by how much."""

from collections.abc import Mapping
from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from collwise.figures.axes import ratio_axis, size_axis
from collwise.figures.style import FAINT, INK, PALETTE, WIDTH, look, note, plain

MOST_SHOWN = 4.0
"""Curves are cut where they take more than so many times as long as the best."""


@look()
def best_algorithms(collective: str, times_s: Mapping[int, Mapping[str, float]]) -> Figure:
    """Every algorithm's predicted time over the best one's, and a band that names the best.

    times_s: seconds by bytes and by the name of the algorithm, which may be missing where it does
    not apply.
    """
    sizes = [n for n in sorted(times_s) if n > 0 and min(times_s[n].values(), default=0) > 0]
    if not sizes:
        return note("Nothing was predicted: there are no regions to show.")
    best = {n: min(times_s[n], key=lambda name: times_s[n][name]) for n in sizes}
    winners = list(dict.fromkeys(best.values()))
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(winners)}
    figure = Figure((WIDTH, 4.2))
    axes, band = figure.subplots(2, 1, sharex=True, height_ratios=(9, 1))
    ratio_axis(axes.yaxis, 1.0, MOST_SHOWN, "predicted time, over the best")
    axes.set_ylim(0.97, MOST_SHOWN)
    names = sorted({name for n in sizes for name in times_s[n]}, key=lambda n: n in colours)
    for name in names:
        ratios = {n: times_s[n][name] / times_s[n][best[n]] for n in sizes if name in times_s[n]}
        width = 1.8 if name in colours else 1.0
        axes.plot(list(ratios), ratios.values(), color=colours.get(name, FAINT), lw=width)
    axes.axhline(1, color=INK, lw=0.8, zorder=1)
    size_axis(band, [sizes[0], *[n for n in sizes if n & (n - 1) == 0], sizes[-1]], "length")
    edges = [sizes[0], *(round((a * b) ** 0.5) for a, b in pairwise(sizes)), sizes[-1]]
    changes = [i for i, n in enumerate(sizes) if i == 0 or best[n] != best[sizes[i - 1]]]
    for begin, end in pairwise([*changes, len(sizes)]):
        band.axvspan(edges[begin], edges[end], color=colours[best[sizes[begin]]], lw=0)
    band.set_yticks([])
    band.grid(visible=False)
    axes.set_title(f"{collective}: the best algorithm by the model")
    handles = [
        Line2D([], [], color=colours[name], lw=3, label=plain(name.partition("/")[2]))
        for name in winners
    ]
    if len(winners) < len(names):
        handles.append(Line2D([], [], color=FAINT, lw=1, label="never the best"))
    figure.legend(handles=handles, loc="outside right upper")
    return figure
