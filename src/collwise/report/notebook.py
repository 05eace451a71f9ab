"""What notebooks show of a plan, a trace or a profile: the pictures that the command line draws.

Drawing loads Matplotlib, which takes seconds: `collwise` loads this module when a notebook asks.
"""

from contextlib import suppress
from html import escape
from typing import TypeAlias

from collwise.errors import CollwiseError
from collwise.figures.report_pictures import machine_picture, schedule_pictures
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.report.schedule_files import check_drawable, settings_of
from collwise.simulator import Trace, simulate
from collwise.system import formatting

Shown: TypeAlias = Plan | Trace | Profile


def pictures(shown: Shown) -> list[str]:
    """SVG elements; none for what is too large to draw, and for the library's own collective."""
    if isinstance(shown, Profile):
        return [machine_picture(shown).svg]
    with suppress(CollwiseError):  # as a plan of the library's own, which has no schedule
        check_drawable(shown.schedule.ranks, shown.schedule.about_messages())
        trace = shown
        if isinstance(trace, Plan):
            trace = simulate(trace.schedule, trace.machine, trace.topology)
        drawn = schedule_pictures(trace.timing, trace.schedule, *settings_of(trace))
        return [picture.svg for picture in drawn]
    return []


def svg(shown: Shown) -> str | None:
    """The first of the `pictures`; None if nothing can be drawn."""
    return next(iter(pictures(shown)), None)


def html(shown: Shown) -> str:
    """All pictures, and below them a summary in words."""
    return "\n".join([*pictures(shown), f"<pre>{escape(_words(shown))}</pre>"])


def _words(shown: Shown) -> str:
    if isinstance(shown, Plan):
        return str(shown)
    if isinstance(shown, Trace):
        time = formatting.time(shown.completion)
        return f"{shown.schedule.problem}, {shown.schedule.algorithm}: complete after {time}"
    made = shown.provenance
    ranks = formatting.count(made.ranks, "rank")
    return f"{shown.fingerprint.mpi_library} on {ranks}, {made.created}: {shown.verdict}"
