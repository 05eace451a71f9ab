"""The HTML report and the pictures of a plan.

Kept apart from tables and documents because drawing loads Matplotlib, which takes seconds: only
the rank that draws imports this module.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from collwise.errors import InvalidArgument
from collwise.figures.report_page import Report, Row, render
from collwise.figures.report_pictures import (
    Picture,
    best_algorithms_picture,
    measured_pictures,
    schedule_figures,
    schedule_pictures,
)
from collwise.figures.style import save
from collwise.model.machine import Wormhole
from collwise.planner.plans import Plan
from collwise.report.tuning_tables import tuning_table
from collwise.simulator import Trace, simulate
from collwise.system import formatting
from collwise.system.files import replace_file
from collwise.tuning.outcomes import Tuning

LARGEST_DRAWN = 4096
"""Ranks: larger schedules are not drawn."""
REGION_SIZES = tuple(sorted({length << k for k in range(3, 22) for length in (1, 3)}))
"""Bytes at which predictions are compared: multiples of 8, so of usual elements."""


def write_report(tuning: Tuning, path: Path) -> Path:
    """Write the HTML report of a session; the file is replaced as a whole.  Returns `path`.

    Raises InvalidArgument if it cannot be written.
    """
    decisions = [decision for outcome in tuning.outcomes for decision in outcome.decisions]
    races = [d.race for d in decisions if d.raced and d.form == "persistent"]
    blocking = [d.plain_race for d in decisions if d.raced and d.form == "blocking"]
    table = tuning_table(tuning)
    collectives = " and ".join(dict.fromkeys(o.race.collective for o in tuning.outcomes))
    page = Report(
        title=f"{collectives.capitalize()} on {tuning.profile.provenance.ranks} ranks,"
        f" {tuning.profile.fingerprint.mpi_library}",
        profile=tuning.profile,
        races=races,
        rows=[
            Row(list(row.values()), won=decision.used == "collwise")
            for row, decision in zip(table.rows, decisions, strict=True)
        ],
        pictures=(
            *measured_pictures(tuning.profile, races, blocking),
            *_region_pictures(tuning),
            *_best_schedule_pictures(tuning),
        ),
        notes=_notes(tuning),
        blocking=[o.blocking for o in tuning.outcomes],
        columns=table.columns,
    )
    try:
        replace_file(path, render(page).encode())
    except OSError as problem:
        raise InvalidArgument(
            f"write the report {path}",
            problem.strerror or str(problem),
            "name another file with --report",
        ) from None
    return path


def _best_schedule_pictures(tuning: Tuning) -> tuple[Picture, ...]:
    """Tree and timeline of the schedule with the largest gain, or of the first that was raced."""
    raced = [o for o in tuning.outcomes if o.ours not in o.race.libraries]
    if not raced:
        return ()
    best = max(raced, key=lambda o: (o.race.winner == o.ours, o.race.speedup(o.ours).middle))
    schedule = best.plan.candidate(best.ours).schedule(best.plan.problem)
    trace = simulate(schedule, best.plan.machine, best.plan.topology)
    return schedule_pictures(trace.timing, schedule, _unit(trace), trace.topology)


def _region_pictures(tuning: Tuning) -> tuple[Picture, ...]:
    """For each collective, which algorithm the model predicts to be the best at which size.

    Up to the largest that was measured: beyond, predictions are extrapolated.
    """
    tasks = {
        o.race.collective: o.task for o in tuning.outcomes if o.race.nbytes and o.race.ranks > 1
    }
    pictures = []
    measured = max(tuning.profile.machine.sizes())
    sizes = [nbytes for nbytes in REGION_SIZES if nbytes <= measured] or [measured]
    for collective, task in tasks.items():
        plans = [task.resized(nbytes).plan(tuning.profile) for nbytes in sizes]
        times = {
            plan.problem.nbytes: {c.name: c.predicted_s for c in plan.candidates} for plan in plans
        }
        pictures.append(best_algorithms_picture(collective, times))
    return tuple(pictures)


def _unit(trace: Trace) -> Fraction | None:
    """t0, if all messages have the same; None where seconds read better."""
    machine, has_sources = trace.machine, trace.schedule.problem.kind.has_sources
    if has_sources or trace.topology is not None or isinstance(machine, Wormhole):
        return None
    gaps = {machine.message(n).gap for n in {transfer.nbytes for transfer in trace.transfers}}
    return (gaps.pop() or None) if len(gaps) == 1 else None


class ScheduleFiles(NamedTuple):
    """The files of a schedule's pictures.

    space: its tree or its mesh; None where it has neither.   time: its timeline.
    """

    space: Path | None
    time: Path

    @property
    def paths(self) -> list[Path]:
        """The files that were written."""
        return [path for path in self if path is not None]

    @property
    def lines(self) -> list[str]:
        """The files, for people."""
        space = self.space or "none in space: what is combined does not come down a tree"
        return [f"picture      {space}", f"timeline     {self.time}"]

    @property
    def document(self) -> dict[str, Any]:
        """The files as JSON."""
        return {"pictures": [str(path) for path in self.paths]}


def draw_plan(plan: Plan, path: Path) -> ScheduleFiles:
    """Simulate the planned schedule, and draw it as `draw_trace` does."""
    _check_drawable(plan.problem.ranks)
    return draw_trace(simulate(plan.schedule, plan.machine, plan.topology), path)


def draw_trace(trace: Trace, path: Path) -> ScheduleFiles:
    """Draw a schedule in space (path), and in time (path with "-timeline" in its name).

    What combines without links is no tree of messages: it is drawn in time only.
    path: .png or .svg; missing folders are made.
    Raises InvalidArgument for other suffixes, or too many ranks to draw.
    """
    _check_drawable(trace.schedule.ranks)
    figures = schedule_figures(trace.timing, trace.schedule, _unit(trace), trace.topology)
    *in_space, in_time = figures.values()
    space = save(in_space[0], path) if in_space else None
    return ScheduleFiles(space, save(in_time, path.with_stem(f"{path.stem}-timeline")))


def _check_drawable(ranks: int) -> None:
    if ranks > LARGEST_DRAWN:
        remedy = f"draw a plan for at most {LARGEST_DRAWN} ranks"
        raise InvalidArgument("a picture of the schedule", f"{ranks} ranks", remedy)


def _notes(tuning: Tuning) -> list[str]:
    """What a reader should know about the races."""
    dropped = sum(o.race.dropped for o in tuning.outcomes)
    bound = [
        f"{o.task}: {formatting.time(o.plan.lower_bound_s)} ({o.plan.bound.argument})"
        for o in tuning.outcomes
    ]
    return [
        "Every byte was checked on every rank, before and after every race.",
        f"{dropped} repetitions were dropped because ranks did not start together.",
        "No schedule can beat, by the measured machine: " + "; ".join(bound) + ".",
    ]
