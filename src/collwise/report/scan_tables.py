"""A scan: the table of what was raced, and a line for each finding."""

from collections.abc import Iterator

from collwise.measure.race import OWN, own_algorithm
from collwise.report.tables import Table
from collwise.schedule.collectives import kind_of
from collwise.system import formatting
from collwise.tuning.scanning import Finding, Kind, Scan

_REMEDY: dict[Kind, str] = {
    "own": "let the library use it",
    "composition": "call this in its place",
    "persistent": "make a persistent request, if the call is repeated",
    "padding": "pad the buffers",
    "cliff": "make a call of its own for the last element, or pad the buffers to a faster size",
    "bound": "nothing that was raced is clearly faster; let collwise tune look for a schedule",
}
"""What mends each kind of findings."""


def scan_table(scan: Scan) -> Table:
    """Every size of every collective: the default, and the fastest alternative to it."""
    rows = [
        {
            "collective": cell.collective,
            "size": formatting.size(cell.nbytes),
            "default": formatting.time(cell.default_s),
            "lower bound": formatting.time(cell.bound_s),
            "fastest alternative": "-" if cell.best is None else _named(cell.best, cell.collective),
            "speed-up": "-" if cell.speedup is None else f"{cell.speedup:.2f}",
            "95 %": "{:.2f} … {:.2f}".format(*cell.interval) if cell.interval else "-",
        }
        for cell in scan.cells
    ]
    title = f"The default of {scan.library} on {scan.ranks} ranks"
    return Table(title, rows, ("95 %", "lower bound"))


def scan_lines(scan: Scan) -> list[str]:
    """The findings, what was tried, what was left out, and what to do next."""
    lines = [f"{one.ratio:<8.3g} {_sentence(one)}" for one in scan.findings]
    names = {own_algorithm(label) for cell in scan.cells for label in cell.medians_s} - {None}
    tried = ["other collectives that do the same", "neighbouring sizes", "the lower bound"]
    own = formatting.count(len(names), "algorithm") + " that the library has"
    raced = formatting.count(len(scan.cells), "call")
    lines.append(f"tried    {raced}: against {', '.join([own] * bool(names) + tried)}")
    if not names:
        lines.append("note     this library lets no program choose among its own algorithms")
    if not scan.findings:
        lines.append("found    nothing: no default is clearly slower, and there is no cliff")
    if scan.left_out:
        left = formatting.count(len(scan.left_out), "call")
        lines.append(f"left out {left}, for want of time: {', '.join(scan.left_out)}")
    return lines + list(_next(scan))


def _named(label: str, collective: str) -> str:
    return label.removeprefix(f"{collective}/").replace("library_init", _persistent(collective))


def _persistent(collective: str) -> str:
    return f"{kind_of(collective).methods[0]}_init"


def _sentence(one: Finding) -> str:
    times = formatting.time(one.takes_s), formatting.time(one.instead_s)
    if one.kind == "bound":
        return f"{one.what} takes {times[0]} where messages allow {times[1]}: {_REMEDY[one.kind]}"
    sure = "{:.2f} … {:.2f} times, with 95 % confidence".format(*one.interval)
    allow = "" if not one.bound_s else f", and messages allow {formatting.time(one.bound_s)}"
    instead = _named(one.instead, one.collective)
    return (
        f"{one.what} takes {times[0]} where {instead} takes {times[1]} ({sure}){allow}:"
        f" {_REMEDY[one.kind]}"
    )


def _next(scan: Scan) -> Iterator[str]:
    """The commands that put in force what is faster."""
    if collectives := dict.fromkeys(one.collective for one in scan.findings):
        yield (
            f"next     collwise tune --collective {','.join(collectives)} lets what is fastest"
            " serve in Python programs"
        )
    if any(OWN in one.instead for one in scan.findings):
        name = "openmpi" if "Open MPI" in scan.library else "mpich"
        yield f"         collwise export {name} then makes a file for every program"
