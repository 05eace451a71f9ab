"""What pictures of a schedule share: title, axis of time, colours of levels, a note if empty."""

from collections.abc import Sequence
from textwrap import wrap

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator

from collwise.figures.style import MUTED, OCHRE, PURPLE, VERMILION, note, plain
from collwise.model.placement import Placement
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing

LETTERS = 72
"""Letters in a line of a title; more may not fit."""


def schedule_title(schedule: Schedule, completion: str = "") -> str:
    """A title: the algorithm, and below it the problem.   completion: the time, with its unit."""
    problem = schedule.problem
    parts = [formatting.size(problem.nbytes)]
    if problem.kind.has_sources:
        sizes = {source.nbytes for source in problem.sources}
        each = f"{formatting.size(sizes.pop())} from each of " if len(sizes) == 1 else "from "
        parts = [f"{each}{formatting.count(len(problem.sources), 'source')}"]
    elif problem.kind.rooted:
        parts.append(f"root {problem.root}")
    parts.append(formatting.count(problem.ranks, "rank"))
    if completion:
        parts.append(f"complete after {completion}")
    algorithm = plain(schedule.algorithm or problem.collective, 2 * LETTERS)
    return "\n".join([*wrap(algorithm, LETTERS), ", ".join(parts)])


def time_axis(axis: Axis, scale: formatting.Scale, ticks: Locator, what: str = "time") -> None:
    """Label an axis whose times are in units of a scale, and set its ticks."""
    axis.set_label_text(f"{what} ({scale.name})")
    axis.set_major_locator(ticks)
    axis.set_major_formatter(FuncFormatter(lambda x, _: scale.text(x * scale.length_s)))


def nothing_to_draw(timing: Timing, schedule: Schedule) -> Figure:
    """A note in place of the picture of a schedule that takes no time."""
    text = "Nothing is sent: no rank lacks anything."
    if timing.transfers:
        text = "Messages cost nothing on this machine: everything happens at once."
    return note(text, title=schedule_title(schedule))


LEVEL_COLOURS = (MUTED, PURPLE, VERMILION, OCHRE)
"""Colours of messages inside a node, between nodes, between racks, and farther."""


def level_colour(placement: Placement | None, source: int, target: int) -> str:
    """The colour of a message, by the level at which its ends meet."""
    level = 1 if placement is None else placement.meeting(source, target)
    return LEVEL_COLOURS[min(level, len(LEVEL_COLOURS)) - 1]


def level_labels(
    placement: Placement | None, crossings: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The colours of the levels, 4 at most, with what they mean; [] where there are no levels.

    crossings: by level, the machine's own words for it, such as "inside a node".
    """
    if placement is None:
        return []
    names = crossings or ["inside a group", "between groups"]
    if placement.depth > 2 and not crossings:
        names = [f"meets at level {level}" for level in range(1, placement.depth + 1)]
    return list(zip(LEVEL_COLOURS, names, strict=False))
