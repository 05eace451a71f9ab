"""`collwise bench --grid`: races the cells of a grid, by launches on one network after another."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from collwise.cli import output
from collwise.cli.grouped_command import said
from collwise.cli.ranks_option import START_UP_S, check_startable, start_ranks
from collwise.errors import CollwiseError, InvalidArgument
from collwise.system import formatting
from collwise.system.files import decode_json, is_written_in_place, read_input, save_text
from collwise.system.launcher import ended_by_signals, launched

if TYPE_CHECKING:  # the help needs none of them
    from collwise.tuning.grid import Grid, Launch
    from collwise.tuning.grid_results import GridCell, LabNotes, Measured
    from collwise.tuning.race_records import Sweep

STARTING_S = 30.0
"""About how many seconds emulated hosts and ranks take to start and to end."""
PLANNING_S = 10.0
"""Seconds allowed for planning each race."""
_PATIENCE = 4
"""Time limits allow races and planning this many times their seconds."""
_TAKEN = ("--grid", "--record", "--resume", "--report", "--json", "--seed")


def over_networks(run: Callable[..., Any]) -> Callable[..., Any]:
    """Make `bench --grid` run the whole grid; without --grid, or with --cells, nothing changes."""

    @wraps(run)
    def decide(**options: Any) -> Any:
        path: Path | None = getattr(options["raced"], "path", None)
        if path is None or options["raced"].numbers:
            return run(**options)
        if (launcher := launched()) is not None and launcher.size > 1:
            raise click.UsageError("--grid starts the ranks itself: run it without a launcher")
        if others := [
            name for name in said(*click.get_current_context().params) if name not in _TAKEN
        ]:
            raise click.UsageError(f"the grid says what to race: leave {', '.join(others)} out")
        if (record := options["record_path"]) is None:
            raise click.UsageError("name a file for the grid's cells with --record")
        names = ("report_path", "resume", "as_json", "seed")
        return _Runner(path, record, **{name: options[name] for name in names}).run()

    return decide


class _Runner:
    """Runs the launches of a grid that have not run yet.

    The samples of every launch are kept in a folder beside the record, even if a launch fails.
    """

    def __init__(
        self,
        path: Path,
        record: Path,
        *,
        report_path: Path | None,
        resume: bool,
        as_json: bool,
        seed: int,
    ) -> None:
        from collwise.tuning.grid import Grid

        self.path, self.record, self.report_path = path.absolute(), record.absolute(), report_path
        self.as_json, self.seed = as_json, seed
        self.grid: Grid = Grid.load(path)
        self.pythons = {name: _python(self.grid, name) for name in self.grid.libraries}
        self._check_networks()
        self.folder = self.record.with_name(f"{record.stem}-launches")
        if is_written_in_place(self.record):
            remedy = "name a file: samples are kept in a folder beside it"
            raise InvalidArgument(f"a record {record}", "it is a device or a pipe", remedy)
        if self.folder.exists() and not resume:
            remedy = "add --resume to go on with it, or name another file"
            raise InvalidArgument(f"a new record {record}", f"{self.folder} is there", remedy)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            seen, remedy = problem.strerror or str(problem), "name another file with --record"
            raise InvalidArgument(f"keep samples in {self.folder}", seen, remedy) from None
        self.failed: list[str] = []
        self.measured: dict[str, Measured] = {}
        turns = product(range(self.grid.rounds), (1, 2))
        for launch in (launch for turn in turns for launch in self.grid.launches(*turn)):
            self._take(launch)

    def _check_networks(self) -> None:
        """Raise what a launch would raise, as far as that is known beforehand."""
        from collwise.lab import Cluster

        for launch in self.grid.launches(0):
            network, count = self.grid.networks[launch.network], sum(launch.ranks_per_host)
            check_startable(count)
            if network.emulated:
                with _launcher_beside(self.pythons[launch.library]):
                    Cluster(**self._hosts(launch)).check(
                        ["true"], ranks_per_host=launch.ranks_per_host
                    )

    def _hosts(self, launch: "Launch") -> dict[str, Any]:
        """The keyword arguments of `lab.Cluster` for the hosts on which a launch runs."""
        network = self.grid.networks[launch.network]
        hosts: dict[str, Any] = {"latency": network.latency, "rate": network.rate}
        if network.file is None:
            return {"hosts": len(launch.ranks_per_host), **hosts}
        return {"network": self.grid.folder / network.file, **hosts}

    def run(self) -> None:
        """Run the launches that are left, write the record after each, show results, and exit."""
        grid = self.grid
        first = [launch for turn in range(grid.rounds) for launch in grid.launches(turn)]
        left = sum(launch.name not in self.measured for launch in first)
        races_s = len(grid.collectives) * (grid.race_s + PLANNING_S)
        each_s = STARTING_S + grid.measuring_s + races_s
        others = f"the others take about {_duration(left * each_s)}" if left else "none is left"
        self._say(
            f"grid     {formatting.count(len(first), 'launch', 'launches')} of"
            f" {formatting.count(len(grid.collectives), 'race')} on {', '.join(grid.libraries)},"
            f" {len(first) - left} of them done; {others}; what they decide is raced once more"
        )
        with ended_by_signals():
            for turn in range(grid.rounds):
                for number in (1, 2):
                    for launch in grid.launches(turn, number):
                        self._run(launch)
        self._finish()

    def _run(self, launch: "Launch") -> None:
        if launch.name in self.measured or not (places := self._places(launch)):
            return
        self._say(f"launch   {launch}")
        sweep = self.folder / f"{launch.name}.json"
        if sweep.exists() and self._sweep(launch) is None:
            self._say(f"damaged  {sweep}: it is kept as {sweep.with_suffix('.damaged').name}")
            sweep.rename(sweep.with_suffix(".damaged"))
        words = ["bench", "--grid", self.path, "--cells", ",".join(map(str, places))]
        words += ["--record", sweep, "--resume", "--seed", self.seed + launch.number]
        if launch.number > 1 and (first := launch._replace(number=1).name) in self.measured:
            words += ["--first-launch", self.folder / f"{first}.json"]
        words += ["--json"] * self.as_json
        try:
            with _launcher_beside(self.pythons[launch.library]):
                code, notes = self._start(launch, list(map(str, words)), len(places))
        except CollwiseError as problem:
            code, notes = 1, None
            self._say(f"failed   {problem}")
        if code or not sweep.exists():
            self.failed.append(str(launch))
            self._say(f"failed   {launch}: it ended with code {code}; --resume tries it again")
            return
        save_text(self._ended(launch), msgspec.json.encode(notes).decode(), "launch")
        self._take(launch)
        self._write()

    def _start(self, launch: "Launch", words: list[str], races: int) -> "tuple[int, LabNotes]":
        """Run `collwise` with `words` on a launch's ranks; returns exit code and lab's notes."""
        from collwise.tuning.grid_results import LabNotes

        network, python = self.grid.networks[launch.network], self.pythons[launch.library]
        budget_s = self.grid.measuring_s + races * _PATIENCE * (self.grid.race_s + PLANNING_S)
        if not network.emulated:
            return start_ranks(
                launch.ranks_per_host[0], budget_s, words, python, quiet=self.as_json
            ), LabNotes()
        from collwise.lab import Cluster

        with Cluster(**self._hosts(launch)) as cluster:
            finished = cluster.run(
                [python, "-m", "collwise", *words],
                ranks_per_host=launch.ranks_per_host,
                timeout_s=budget_s + START_UP_S,
                capture="stdout" if self.as_json else False,
            )
        report = finished.report
        return finished.code, LabNotes(report.warnings, report.windows, os.cpu_count() or 1)

    def _places(self, launch: "Launch") -> list[int]:
        """Numbers of a launch's cells: all, or in a second launch those that the first decided."""
        places = self.grid.cells_of(launch)
        if launch.number == 1:
            return places
        decided = {
            (cell.collective, cell.nbytes)
            for cell in self._cells()
            if (cell.network, cell.placement) == (launch.network, launch.placement) and cell.decided
        }
        cells = self.grid.cells
        return [n for n in places if (str(cells[n][0]), cells[n][1]) in decided]

    def _ended(self, launch: "Launch") -> Path:
        return self.folder / f"{launch.name}.ended"

    def _take(self, launch: "Launch") -> None:
        """Read what a launch has measured, if it has ended; a first launch must have all cells."""
        from collwise.tuning.grid_results import LabNotes, Measured

        if (sweep := self._sweep(launch)) is None:
            return
        cells = [self.grid.cells[place] for place in self.grid.cells_of(launch)]
        tasks = [
            collective.task(sum(launch.ranks_per_host), nbytes) for collective, nbytes in cells
        ]
        raced = [any(race.is_about(task) for race in sweep.races) for task in tasks]
        with suppress(OSError, ValueError):
            notes = decode_json(read_input(self._ended(launch)), LabNotes)
            if all(raced) or launch.number > 1:
                self.measured[launch.name] = Measured(launch, sweep, notes)

    def _sweep(self, launch: "Launch") -> "Sweep | None":
        """What a launch has raced so far; None if there is nothing that can be read."""
        from collwise.tuning.race_records import read_sweep

        with suppress(CollwiseError):
            return read_sweep(self.folder / f"{launch.name}.json")
        return None

    def _cells(self) -> "list[GridCell]":
        from collwise.tuning.grid_results import cells

        return cells(self.grid, self.measured.values())

    def _write(self) -> None:
        from collwise.tuning.grid_results import document

        text = json.dumps(document(self.grid, self._cells()), indent=1)
        save_text(self.record, text + "\n", "record")

    def _finish(self) -> None:
        from collwise.report.grid_tables import cells_table, grid_page, summary
        from collwise.tuning.grid_results import document

        found = self._cells()
        if not found:
            sys.exit(1)  # each launch has said why it failed
        self._write()
        if self.as_json:
            output.write_json(document(self.grid, found))
        else:
            if lost := [cell for cell in found if cell.lost]:
                output.table(cells_table("Clearly lost", lost))
            output.write(*summary(found), f"record   {self.record}", f"samples  {self.folder}")
        if self.report_path is not None:
            title = f"Grid of races on {', '.join(self.grid.libraries)}"
            save_text(self.report_path, grid_page(title, found, self.grid.wanted), "page")
        sys.exit(1 if self.failed else 0)

    def _say(self, line: str) -> None:
        output.write(line, stream="err" if self.as_json else "out")


def _python(grid: "Grid", library: str) -> str:
    """A library's Python interpreter; this process's if the grid names none for the library."""
    if not (named := grid.libraries[library]):
        return sys.executable
    found = shutil.which(named if "/" not in named else (grid.folder / named).absolute())
    if found is None:
        remedy = "name the Python of an environment that has it and collwise, or leave it out"
        raise InvalidArgument(f"the library {library}", f"there is no program {named}", remedy)
    return found


@contextmanager
def _launcher_beside(python: str) -> Iterator[None]:
    """A context in which ranks of another `python` are started by the mpiexec beside it, if any."""
    variable, path = "COLLWISE_MPIEXEC", Path(python).with_name("mpiexec")
    before = os.environ.get(variable)
    if python != sys.executable and path.exists():
        os.environ[variable] = str(path)
    try:
        yield
    finally:
        os.environ.pop(variable, None)
        if before is not None:
            os.environ[variable] = before


def _duration(seconds: float) -> str:
    """A duration as text, rounded up to minutes: 2 h 10 min."""
    hours, minutes = divmod(-(-seconds // 60), 60)
    return f"{hours:.0f} h {minutes:.0f} min" if hours else f"{minutes:.0f} min"
