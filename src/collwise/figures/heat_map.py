"""A heat map: ratios by row and column, each written into its field."""

from collections.abc import Mapping, Sequence
from math import log2

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from collwise.figures import style
from collwise.figures.style import BLUE, INK, PAPER, VERMILION

MAX_FIELDS = 6000
"""The most fields, rows × columns, that can be read in one picture; more are not drawn."""
STRONGEST = 4.0
"""From this ratio up, and from its inverse down, colours are strongest; the ratio 1 has none."""
_COLOURS = LinearSegmentedColormap.from_list("ratios", [VERMILION, PAPER, BLUE])


@style.look()
def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    ratios: Mapping[tuple[str, str], float],
    *,
    good: bool = True,
) -> Figure:
    """A map of ratios > 0 by (row, column); only a note if it has 0 or over MAX_FIELDS fields.

    good: whether more than 1 is good (blue) or bad (vermilion).
    """
    if not 0 < len(rows) * len(columns) <= MAX_FIELDS:
        return style.note(f"{len(rows)} × {len(columns)} fields: nothing that can be drawn.")
    values = np.full((len(rows), len(columns)), np.nan)
    for (row, column), ratio in ratios.items():
        sign = 1 if good else -1
        values[rows.index(row), columns.index(column)] = sign * log2(ratio) / log2(STRONGEST)
    height = 1.6 + 0.19 * len(rows)
    figure = Figure((max(style.WIDTH, 3.2 + 0.42 * len(columns)), height))
    axes = figure.subplots()
    axes.pcolormesh(values, cmap=_COLOURS, vmin=-1, vmax=1, edgecolor=PAPER, linewidth=0.5)
    axes.grid(visible=False)
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.set_xticks(
        np.arange(len(columns)) + 0.5, map(style.plain, columns), rotation=50, ha="left"
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, [style.plain(row) for row in rows])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for (row, column), ratio in ratios.items():
        place = columns.index(column) + 0.5, rows.index(row) + 0.5
        axes.text(*place, f"{ratio:.2f}", ha="center", va="center", fontsize=6.5, color=INK)
    return figure
