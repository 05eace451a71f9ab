"""A GOAL program's times, for people and for programs, and its picture.  Nothing is computed here.

Drawing loads Matplotlib, which takes seconds.
"""

from pathlib import Path
from typing import Any

from collwise.formats.goal_reader import Goal
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.report.simulation_tables import MAX_FINISHES, ranks_line
from collwise.report.tables import Saved
from collwise.system import formatting
from collwise.timing import Timing


def goal_lines(
    goal: Goal, timing: Timing, machine: Machine, topology: Topology | None, origin: str
) -> list[str]:
    """Lines: the program, the machine, the time.   origin: where the machine comes from."""
    return [
        f"{goal.name}: a GOAL program of {formatting.count(goal.ranks, 'rank')}",
        f"machine      {machine.describe()} ({origin})",
        *([f"topology     {topology.describe()}"] if topology is not None else []),
        f"complete     after {formatting.time(timing.completion)}",
        ranks_line(timing.finish_s),
        f"messages     {len(goal.sizes):,}; {int(goal.sizes.sum()):,} bytes in all",
        *([f"calcs        {formatting.time(goal.calc_s)} in all"] if goal.calc_s else []),
    ]


def goal_document(
    goal: Goal, timing: Timing, machine: Machine, topology: Topology | None, origin: str
) -> dict[str, Any]:
    """The program's times as JSON, in seconds."""
    return {
        "goal": goal.name,
        "ranks": goal.ranks,
        "machine": machine.describe(),
        "machine_from": origin,
        "topology": topology.describe() if topology is not None else None,
        "completion_s": timing.completion_s,
        "messages": len(goal.sizes),
        "bytes_sent": int(goal.sizes.sum()),
        "calc_s": goal.calc_s,
        "finish_s": list(timing.finish_s) if goal.ranks <= MAX_FINISHES else None,
    }


def draw_goal(goal: Goal, timing: Timing, path: Path) -> Saved:
    """Draw the program's timeline.  Raises InvalidArgument for too many ranks or messages."""
    from collwise.figures.style import save
    from collwise.figures.timeline import timeline
    from collwise.report.schedule_files import check_drawable

    check_drawable(goal.ranks, len(goal.sizes))
    counts = formatting.count(goal.ranks, "rank"), formatting.count(len(goal.sizes), "message")
    completion = formatting.time(timing.completion)
    title = f"{goal.name}\n{', '.join(counts)}, complete after {completion}"
    file = save(timeline(timing, goal.schedule, title=title), path)
    return Saved([f"timeline     {file}"], {"pictures": [str(file)]})
