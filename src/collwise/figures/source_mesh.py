"""Where the sources are on a mesh, several distributions side by side [Hambrusch1998 Fig 1]."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from collwise.figures.style import BLUE, FAINT, PAPER, WIDTH, look


@look()
def source_meshes(shape: tuple[int, int], placements: Mapping[str, Sequence[int]]) -> Figure:
    """A mesh for each of `placements`, by title: a square for each rank, blue if it is a source."""
    rows, columns = shape
    figure = Figure((WIDTH, 0.6 + 0.92 * WIDTH / len(placements) * rows / columns))
    panels = figure.subplots(1, len(placements), squeeze=False)[0]
    for axes, (title, sources) in zip(panels, placements.items(), strict=True):
        for rank in range(rows * columns):
            row, column = divmod(rank, columns)
            colour = BLUE if rank in sources else FAINT
            axes.bar(column, 0.84, 0.84, row - 0.42, color=colour, edgecolor=PAPER, lw=0)
        axes.set_xlim(-0.6, columns - 0.4)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_title(title)
    return figure
