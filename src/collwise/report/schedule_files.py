"""Pictures of a schedule in files.  Drawing loads Matplotlib, which takes seconds."""

from fractions import Fraction
from pathlib import Path

from collwise.errors import InvalidArgument
from collwise.model.levels import Levels
from collwise.model.machine import Wormhole
from collwise.model.topology import Topology
from collwise.planner.plans import Plan
from collwise.report.tables import Saved
from collwise.simulator import Trace, simulate

LARGEST_DRAWN, MAX_DRAWN = 4096, 1 << 18
"""Schedules of more ranks than the first, or more messages than the second, are not drawn."""


def draw_plan(plan: Plan, path: Path) -> Saved:
    """Simulate a plan's schedule, and draw it as `draw_trace` does."""
    check_drawable(plan.schedule.ranks, plan.schedule.about_messages())
    return draw_trace(simulate(plan.schedule, plan.machine, plan.topology), path)


def draw_trace(trace: Trace, path: Path) -> Saved:
    """Draw a schedule in space (path), and in time (path with "-timeline" in its name).

    A picture in space needs a mesh or torus of links, sources, or a root that has all the data.
    path: .png or .svg; missing folders are made.
    Raises InvalidArgument for too many ranks or messages to draw.
    """
    from collwise.figures.report_pictures import schedule_figures
    from collwise.figures.style import save

    check_drawable(trace.schedule.ranks, trace.schedule.about_messages())
    figures = schedule_figures(trace.timing, trace.schedule, *settings_of(trace))
    *in_space, in_time = figures.values()
    files = [str(save(figure, path)) for figure in in_space]
    files.append(str(save(in_time, path.with_stem(f"{path.stem}-timeline"))))
    tree = files[0] if in_space else "none in space: what is combined does not come down a tree"
    lines = [f"picture      {tree}", f"timeline     {files[-1]}"]
    return Saved(lines, {"pictures": files})


def settings_of(trace: Trace) -> tuple[Fraction | None, Topology | None, tuple[str, ...]]:
    """The unit of times, the topology, and the names of levels, for `schedule_figures`."""
    crossings = trace.machine.crossings if isinstance(trace.machine, Levels) else ()
    return unit_of(trace), trace.topology, crossings


def unit_of(trace: Trace) -> Fraction | None:
    """A picture's unit: t0 if all messages share it (no links, levels, sources); else None."""
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


def check_drawable(ranks: int, about: int) -> None:
    """Raise InvalidArgument for more ranks or messages (`about`) than can be drawn."""
    check_ranks(ranks)
    if about > MAX_DRAWN:
        remedy = f"draw {MAX_DRAWN:,} at most: choose fewer ranks, or another algorithm"
        raise InvalidArgument("a picture of the schedule", f"about {about:,} messages", remedy)
