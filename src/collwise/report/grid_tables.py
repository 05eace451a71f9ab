"""A grid of races: its summary, its cells, and its page with heat maps."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import geometric_mean, median

from collwise.report.tables import Table
from collwise.system import formatting
from collwise.tuning.grid_results import GridCell, LibraryResult

_NEAR = 1.25
"""A prediction counts as near if measured and predicted time differ by at most this factor."""


def summary(cells: Sequence[GridCell]) -> list[str]:
    """Lines on gains and losses, on emulated networks and in memory, and on prediction errors."""
    lines = []
    for title, emulated in (("networks", True), ("memory", False)):
        if some := [cell for cell in cells if cell.emulated is emulated]:
            default = geometric_mean(cell.speedup_over_better_default for cell in some)
            own = geometric_mean(cell.speedup_over_best_own for cell in some)
            lines.append(
                f"{title:<9}{default:.2f}× as fast as the better default, {own:.2f}× as the best of"
                f" the libraries' own (geometric means of {formatting.count(len(some), 'cell')});"
                f" {sum(cell.lost for cell in some)} clearly lost"
            )
    errors_of = defaultdict[str, list[float]](list)
    for cell in cells:
        for result in cell.libraries.values():
            where = "" if cell.emulated else ", in memory"
            where += ", where the lab's cores were the limit" * result.limited
            if error := result.misprediction:
                errors_of[where].append(error)
    for where, errors in sorted(errors_of.items()):
        near = sum(error <= _NEAR for error in errors) / len(errors)
        lines.append(
            f"model    predictions are off by {median(errors) - 1:.1%} in the median; {near:.0%} of"
            f" {len(errors)} by at most a factor of {_NEAR:g}{where}"
        )
    return lines


def cells_table(title: str, cells: Sequence[GridCell]) -> Table:
    """A table with one row for each cell."""
    return Table(title, [_row(cell) for cell in cells], ("network", "warnings"))


def _row(cell: GridCell) -> dict[str, str]:
    best = cell.fastest
    default = min(cell.libraries.values(), key=lambda result: result.default_s)
    own = min(cell.libraries.values(), key=lambda result: result.own_s)
    predicted = "-" if best.predicted_s is None else formatting.time(best.predicted_s)
    return {
        "network": cell.network,
        "placement": cell.placement,
        "collective": cell.collective,
        "size": formatting.size(cell.nbytes),
        "default": formatting.time(default.default_s),
        "best own": f"{formatting.time(own.own_s)} ({own.own})",
        "ours": formatting.time(best.ours_s),
        "predicted": predicted,
        "bound": formatting.time(best.lower_bound_s),
        "over default": _ratio(
            cell.speedup_over_better_default, cell.speedup_over_better_default_interval
        ),
        "over best own": _ratio(cell.speedup_over_best_own, cell.speedup_over_best_own_interval),
        "algorithm": best.ours.partition("/")[2] or best.ours,
        "warnings": "; ".join(warning.partition(":")[0] for warning in best.warnings),
    }


def _ratio(middle: float, interval: tuple[float, float] | None) -> str:
    ends = "unknown" if interval is None else "{:.2f} … {:.2f}".format(*interval)
    return f"{middle:.2f} ({ends})"


def grid_page(title: str, cells: Sequence[GridCell], wanted: int) -> str:
    """The HTML page of a grid of races: a summary, the cells that collwise clearly lost, heat maps.

    A table of all `cells`, those raced so far, ends it.   wanted: how many cells all rounds have.
    """
    from collwise.figures.heat_map import heat_map
    from collwise.figures.page_templates import template
    from collwise.figures.report_pictures import Picture
    from collwise.figures.style import svg

    collectives = list(dict.fromkeys(cell.collective for cell in cells))
    by_row = sorted(cells, key=lambda cell: (collectives.index(cell.collective), cell.nbytes))
    rows, columns = list(dict.fromkeys(map(_what, by_row))), list(dict.fromkeys(map(_where, cells)))
    maps: dict[str, tuple[bool, Callable[[GridCell, LibraryResult], float]]] = {
        "Speed-up over the better default": (
            True, lambda cell, _: cell.speedup_over_better_default),
        "Speed-up over the best of the libraries' own algorithms": (
            True, lambda cell, _: cell.speedup_over_best_own),
        "Measured over predicted": (
            False, lambda _, ours: ours.ours_s / (ours.predicted_s or ours.ours_s)),
        "Measured over the lower bound": (
            False, lambda _, ours: ours.ours_s / (ours.lower_bound_s or ours.ours_s)),
    }  # fmt: skip
    pictures = []
    for name, (good, value) in maps.items():
        ratios = {(_what(cell), _where(cell)): value(cell, cell.fastest) for cell in cells}
        figure = heat_map(rows, columns, ratios, good=good)
        pictures.append(Picture("Grid", name, svg(figure, name)))
    return template("grid_page.html.jinja").render(
        title=title,
        lead=f"{len(cells)} of {formatting.count(wanted, 'cell')} raced.",
        summary=[line[9:] for line in summary(cells)],
        lost=cells_table("Clearly lost", [cell for cell in cells if cell.lost]),
        pictures=pictures,
        cells=cells_table("All cells", cells),
    )


def _what(cell: GridCell) -> str:
    return f"{cell.collective}, {formatting.size(cell.nbytes)}"


def _where(cell: GridCell) -> str:
    return f"{cell.network}, {cell.placement}"
