"""A sweep while it grows: its record, its CSV, its picture and its page.

The record and the CSV are written after every race, so an interruption loses only the race in
progress; pipes and devices are written at the end.  Drawing loads Matplotlib, which takes seconds.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from collwise.errors import InvalidArgument
from collwise.profiles.records import Form
from collwise.report.sweep_tables import sweep_csv, sweep_lines, sweep_row
from collwise.report.tables import Saved, Table
from collwise.report.tuning_tables import race_document
from collwise.system.files import is_written_in_place, save_text
from collwise.tuning.outcomes import Outcome, Task
from collwise.tuning.race_records import RaceRecord, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Show = Callable[[Outcome, dict[str, str], str], None]
"""Called with a race that has ended, its row, and the name of the MPI library."""


class SweepKeeper:
    """Keeps the races of a sweep in its files as they end.

    form: the form of call that rows show.   paths: where to write the "record", the "csv", the
    "picture" and the "report"; what has no path is not written.   show: None to print nothing as
    races end.
    """

    def __init__(
        self, sweep: Sweep, form: Form, paths: Mapping[str, Path], show: Show | None
    ) -> None:
        self.sweep, self.form, self.paths, self.show = sweep, form, paths, show
        self.lost, self.begin_s = False, monotonic()

    def wants(self, task: Task) -> bool:
        """Whether a task has no race of `form` yet; False once `add` could not write a file."""
        raced = self.sweep.of_form(self.form)
        return not self.lost and not any(race.is_about(task) for race in raced)

    def add(self, outcome: Outcome, library: str) -> None:
        """Add a race to the sweep and its files, and show it.  A failed write only sets `lost`.

        It replaces an earlier race of the task, which lacked the form that is wanted.
        """
        plain = msgspec.json.encode(race_document(outcome), enc_hook=float)
        before = zip(self.sweep.cells, self.sweep.races, strict=True)
        others = (cell for cell, race in before if not race.is_about(outcome.task))
        cells = (*others, msgspec.json.decode(plain))
        elapsed_s = monotonic() - self.begin_s
        made = msgspec.structs.replace(self.sweep.provenance, elapsed_s=elapsed_s)
        self.sweep = msgspec.structs.replace(self.sweep, cells=cells, provenance=made)
        try:
            for kind in {"record", "csv"} & self.paths.keys():
                if not is_written_in_place(self.paths[kind]):
                    self._write(kind)
        except InvalidArgument:
            self.lost = True  # `savings` say so in the end
        if self.show is not None:
            self.show(outcome, sweep_row(self.sweep.races[-1], self.form), library)

    @property
    def savings(self) -> list[Callable[[], Saved]]:
        """Functions that write the files at the end; each raises InvalidArgument on failure."""
        return [partial(self._write, kind) for kind in self.paths]

    def _write(self, kind: str) -> Saved:
        path = self.paths[kind]
        if kind == "record":
            self.sweep.save(path)
        elif kind == "csv":
            save_text(path, sweep_csv(self.sweep.races, self.form), "CSV file")
        elif kind == "picture":
            from collwise.figures.style import save

            save(self._chart(), path)
        else:
            save_text(path, self._page(), "page")
        return Saved([f"{kind:<8} {path}"], {f"{kind}_path": str(path)})

    def _page(self) -> str:
        from collwise.figures.page_templates import template
        from collwise.figures.report_pictures import Picture
        from collwise.figures.style import svg

        title, races = "Times over sizes", self.sweep.of_form(self.form)
        return template("sweep_page.html.jinja").render(
            title=f"Sweep of {self.form} calls, {self.sweep.fingerprint.mpi_library}",
            lead="; ".join(line[9:] for line in sweep_lines(self.sweep, self.form)) + ".",
            picture=Picture("Sweep", title, svg(self._chart(), title)),
            table=Table("", [sweep_row(race, self.form) for race in races]),
            provenance=self.sweep.provenance,
        )

    def _chart(self) -> "Figure":
        from collwise.figures.sweep_chart import sweep_chart

        panels: dict[str, list[RaceRecord]] = {}
        for race in sorted(self.sweep.of_form(self.form), key=lambda race: race.nbytes):
            panels.setdefault(f"{race.collective}, {race.ranks} ranks", []).append(race)
        return sweep_chart(
            {
                title: {
                    race.nbytes: (best.library, best.ours, best.predicted_s)
                    for race, best in ((race, race.forms[self.form]) for race in races)
                }
                for title, races in panels.items()
            }
        )
