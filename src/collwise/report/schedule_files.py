"""Pictures of a schedule in files.  Drawing loads Matplotlib, which takes seconds."""

from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from collwise.errors import InvalidArgument
from collwise.figures.report_pictures import schedule_figures
from collwise.figures.style import save
from collwise.model.levels import Levels
from collwise.model.machine import Wormhole
from collwise.model.topology import Topology
from collwise.planner.plans import Plan
from collwise.schedule.program import Schedule
from collwise.simulator import Trace, simulate

LARGEST_DRAWN, MAX_DRAWN = 4096, 1 << 18
"""Ranks, and messages: larger schedules are not drawn."""


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
    _check_drawable(plan.schedule)
    return draw_trace(simulate(plan.schedule, plan.machine, plan.topology), path)


def draw_trace(trace: Trace, path: Path) -> ScheduleFiles:
    """Draw a schedule in space (path), and in time (path with "-timeline" in its name).

    What combines without links is no tree of messages: it is drawn in time only.
    path: .png or .svg; missing folders are made.
    Raises InvalidArgument for other suffixes, or too many ranks to draw.
    """
    _check_drawable(trace.schedule)
    figures = schedule_figures(trace.timing, trace.schedule, *settings_of(trace))
    *in_space, in_time = figures.values()
    space = save(in_space[0], path) if in_space else None
    return ScheduleFiles(space, save(in_time, path.with_stem(f"{path.stem}-timeline")))


def settings_of(trace: Trace) -> tuple[Fraction | None, Topology | None, tuple[str, ...]]:
    """The last arguments of `schedule_figures`."""
    crossings = trace.machine.crossings if isinstance(trace.machine, Levels) else ()
    return unit_of(trace), trace.topology, crossings


def unit_of(trace: Trace) -> Fraction | None:
    """t0, if all messages have the same; None where seconds read better."""
    machine, has_sources = trace.machine, trace.schedule.problem.kind.has_sources
    if has_sources or trace.topology is not None or isinstance(machine, Wormhole | Levels):
        return None
    gaps = {machine.message(n).gap for n in {transfer.nbytes for transfer in trace.transfers}}
    return (gaps.pop() or None) if len(gaps) == 1 else None


def check_ranks(ranks: int) -> None:
    """Raise InvalidArgument for more ranks than can be drawn."""
    if ranks > LARGEST_DRAWN:
        remedy = f"draw a plan for at most {LARGEST_DRAWN} ranks"
        raise InvalidArgument("a picture of the schedule", f"{ranks} ranks", remedy)


def _check_drawable(schedule: Schedule) -> None:
    """The same, and for more messages."""
    check_ranks(schedule.ranks)
    about = schedule.about_messages()
    if about > MAX_DRAWN:
        remedy = f"draw {MAX_DRAWN:,} at most: choose fewer ranks, or another algorithm"
        raise InvalidArgument("a picture of the schedule", f"about {about:,} messages", remedy)
