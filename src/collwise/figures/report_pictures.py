"""The report's pictures, each with a title and a caption that teaches how to read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure

from collwise.figures.latency_curves import latency_curves
from collwise.figures.mesh_diagram import can_be_drawn, mesh_diagram
from collwise.figures.race_charts import speedups
from collwise.figures.schedule_frame import schedule_title
from collwise.figures.style import svg
from collwise.figures.timeline import timeline
from collwise.figures.tree_diagram import tree_diagram
from collwise.measure.race import Race
from collwise.model.levels import crossing
from collwise.model.topology import Topology
from collwise.profiles.profile import Profile
from collwise.schedule.program import Schedule
from collwise.timing import Timing


@dataclass(frozen=True)
class Picture:
    """A picture on the page.  svg: one <svg> element, as `style.svg` gives it; not escaped."""

    title: str
    caption: str
    svg: str


def machine_picture(profile: Profile) -> Picture:
    """What was measured: λ(m) and t0(m); of several levels, those of the outermost."""
    title = "The machine: t0 and λ"
    if names := [level.name for level in profile.levels]:
        title += f" {crossing(names, len(names) + 1)}"
    return Picture(title, _LATENCY, svg(latency_curves(profile), title))


def race_picture(
    collective: str,
    races: Sequence[Race],
    blocking: Sequence[Race] = (),
    bounds_s: Mapping[int, float] = MappingProxyType({}),
) -> Picture:
    """A collective's speed-ups; arguments as of `speedups`."""
    title = f"Speed-up of {collective} over the library's own"
    return Picture(title, SPEEDUPS, svg(speedups(races, blocking, bounds_s), title))


def schedule_figures(
    timing: Timing,
    schedule: Schedule,
    t0: Fraction | None = None,
    topology: Topology | None = None,
    crossings: Sequence[str] = (),
) -> dict[str, Figure]:
    """A schedule in space, if it can be drawn so ("Mesh" or "Tree"), and then in time ("Timeline").

    In space: the links of a mesh or a torus, if they are the topology; else the mesh of ranks if
    some of them are sources, or the tree if all data come from a root.   t0: exact seconds, to
    count in units of it.   crossings: as of `tree_diagram`.
    """
    kind = schedule.problem.kind
    figures: dict[str, Figure] = {}
    linked = topology if can_be_drawn(topology) and timing.passages else None
    if linked or kind.has_sources:
        figures["Mesh"] = mesh_diagram(timing, schedule, linked)
    elif kind.input == "root":
        figures["Tree"] = tree_diagram(timing, schedule, t0, crossings)
    return figures | {"Timeline": timeline(timing, schedule, t0, crossings)}


def schedule_pictures(timing: Timing, schedule: Schedule, *settings: Any) -> tuple[Picture, ...]:
    """The same as pictures of the report.   settings: the other arguments of `schedule_figures`."""
    *algorithm, problem = schedule_title(schedule).split("\n")
    what = f"{' '.join(algorithm)}, {problem}"
    return tuple(
        Picture(title := f"{kind}: {what}", _SCHEDULE[kind], svg(figure, title))
        for kind, figure in schedule_figures(timing, schedule, *settings).items()
    )


_LATENCY = (
    "Above: λ, the time until a message is received as a multiple of the time for which it keeps"
    " its sender busy. At λ = 1 a binomial tree is best; the larger λ, the longer the informed"
    " ranks go on sending before those they informed can help, and the wider the best tree. Below:"
    " the two times themselves, t0 (filled) and λ·t0 (hollow). Plans use the values of non-blocking"
    " sends. Triangles are the two experiments on their own: where they lie apart, distrust the"
    " point between them. Dotted lines mark where the library changes its protocol; no curve is"
    " drawn across. The two ways of sending are shifted a little to the left and right of their"
    " size, so that both can be seen; intervals that leave the picture are cut."
)
SPEEDUPS = (
    "One point per size: the library's own median time divided by that of collwise's fastest"
    " schedule, with its 95 % interval. Above the heavy line collwise is faster. A point is filled"
    " where even the low end of its interval is clearly above 1; elsewhere the library's own stays."
    " Diamonds are what the model predicted for the same schedule; above the thin line no schedule"
    " can be, on a machine as it was measured. Blocking calls are compared with the library's"
    " blocking form, persistent ones with the faster of its two."
)
_SCHEDULE = {
    "Tree": (
        "Time runs downwards. A node is a rank, as low as the moment at which it first receives"
        " something; an edge is the message that brought it. The rank that a sender informs first"
        " stands farthest to the left, since its subtree has most time to grow. A good tree is"
        " level at the bottom: no rank finishes long before the others. These are ideal times by"
        " the measured t0 and λ, not a trace of a run."
    ),
    "Mesh": (
        "The ranks as a mesh, row by row, as the algorithms see them; filled are those that have"
        " data. Where links are drawn, an arrow is the darker and the wider the longer its link was"
        " busy."
    ),
    "Timeline": (
        "One row per rank. A blue bar is a send, for as long as it keeps its sender busy; it"
        " carries the rank it goes to, where there is room. An arrow leads from its end to the"
        " moment at which the receiver holds the message. Other bars are combining. The pale part"
        " of a row is time in which the rank holds data: where no bar covers it, the rank could"
        " send but has nothing left to do. The dashed line is the completion. These are ideal"
        " times, too."
    ),
}
