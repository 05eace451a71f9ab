"""A sweep while it grows: its record, its CSV, its picture and its page.

What was measured is kept race by race, so nothing is lost if the sweep is interrupted.  Drawing
loads Matplotlib, which takes seconds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from collwise.errors import InvalidArgument
from collwise.measure.statistics import Interval
from collwise.profiles.records import Form
from collwise.report.sweep_tables import sweep_csv, sweep_lines, sweep_row
from collwise.report.tables import Saved, Table
from collwise.report.tuning_tables import race_document
from collwise.tuning.outcomes import Outcome, Task
from collwise.tuning.race_records import RaceRecord, Sweep, save_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Show = Callable[[Outcome, dict[str, str], str], None]
"""Shows a race that has ended, its row, and the name of the MPI library."""


class SweepPaths(NamedTuple):
    """Where the sweep is to be written; None: nowhere."""

    csv: Path | None
    record: Path | None
    picture: Path | None
    report: Path | None


class SweepKeeper:
    """Takes races as they end.

    form: which form of the calls rows are about.   show: None to print nothing as races end.
    """

    def __init__(self, sweep: Sweep, form: Form, paths: SweepPaths, show: Show | None) -> None:
        self.sweep, self.form, self.paths, self.show = sweep, form, paths, show
        self.lost = False

    def wants(self, task: Task) -> bool:
        """Whether a task is still to be raced: no once results cannot be written any more."""
        return not self.lost and not self.sweep.has(task)

    def add(self, outcome: Outcome, library: str) -> None:
        """Keep a race and show it."""
        plain = msgspec.json.encode(race_document(outcome), enc_hook=float)
        cells = (*self.sweep.cells, msgspec.json.decode(plain))
        self.sweep = msgspec.structs.replace(self.sweep, cells=cells)
        try:
            self._save_record()
            self._save_csv()
        except InvalidArgument:
            self.lost = True  # `savings` say so in the end
        if self.show is not None:
            self.show(outcome, sweep_row(self.sweep.races[-1], self.form), library)

    @property
    def savings(self) -> list[Callable[[], Saved]]:
        """What writes the files in the end; each raises InvalidArgument where it cannot."""
        return [self._save_record, self._save_csv, self._draw, self._report]

    def _save_record(self) -> Saved:
        path = self.paths.record
        if path is None or not self.sweep.cells:
            return Saved([], {})
        self.sweep.save(path)
        return Saved([f"record   {path}"], {"record_path": str(path)})

    def _save_csv(self) -> Saved:
        path = self.paths.csv
        if path is None:
            return Saved([], {})
        save_text(path, sweep_csv(self.sweep.races, self.form), "CSV file")
        return Saved([f"csv      {path}"], {"csv_path": str(path)})

    def _draw(self) -> Saved:
        path = self.paths.picture
        if path is None:
            return Saved([], {})
        from collwise.figures.style import save

        return Saved([f"picture  {save(self._chart(), path)}"], {"picture_path": str(path)})

    def _report(self) -> Saved:
        path = self.paths.report
        if path is None:
            return Saved([], {})
        from collwise.figures.page_templates import template
        from collwise.figures.report_pictures import Picture
        from collwise.figures.style import svg

        title = "Times over sizes"
        library = self.sweep.fingerprint.mpi_library
        page = template("sweep_page.html.jinja").render(
            title=f"Sweep of {self.form} calls, {library}",
            lead="; ".join(line[9:] for line in sweep_lines(self.sweep, self.form)) + ".",
            picture=Picture("Sweep", title, svg(self._chart(), title)),
            table=Table("", [sweep_row(race, self.form) for race in self.sweep.races]),
            provenance=self.sweep.provenance,
        )
        save_text(path, page, "page")
        return Saved([f"report   {path}"], {"report_path": str(path)})

    def _chart(self) -> "Figure":
        from collwise.figures.sweep_chart import SweepPanel, sweep_chart

        groups: dict[tuple[str, int], list[RaceRecord]] = {}
        for race in self.sweep.races:
            groups.setdefault((race.collective, race.ranks), []).append(race)
        return sweep_chart(
            [
                SweepPanel(f"{collective}, {ranks} ranks", *_curves(races, self.form))
                for (collective, ranks), races in groups.items()
            ]
        )


def _curves(
    races: list[RaceRecord], form: Form
) -> tuple[dict[str, dict[int, Interval]], dict[int, float]]:
    """The library's times and ours by size, and what was predicted of ours."""
    decided = {race.nbytes: race.forms[form] for race in sorted(races, key=lambda r: r.nbytes)}
    measured = {
        "library": {n: Interval(d.library_s, *d.library_interval_s) for n, d in decided.items()},
        "collwise": {n: Interval(d.ours_s, *d.ours_interval_s) for n, d in decided.items()},
    }
    return measured, {n: d.predicted_s for n, d in decided.items() if d.predicted_s}
