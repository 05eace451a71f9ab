"""The report's pictures, each with a title; captions on the page tell how to read them."""

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
from collwise.profiles.records import Form
from collwise.schedule.program import Schedule
from collwise.timing import Timing


@dataclass(frozen=True)
class Picture:
    """A picture for an HTML page.

    kind: which of the page's captions the picture gets.   svg: one <svg> element, as
    `style.svg` gives it; not escaped.
    """

    kind: str
    title: str
    svg: str


def machine_picture(profile: Profile) -> Picture:
    """The picture of a measured machine: λ(m) and t0(m) of the outermost level."""
    title = "The machine: t0 and λ"
    if names := [level.name for level in profile.levels]:
        title += f" {crossing(names, len(names) + 1)}"
    return Picture("Machine", title, svg(latency_curves(profile), title))


def race_picture(
    collective: str,
    races: Mapping[Form, Sequence[Race]],
    bounds_s: Mapping[int, float] = MappingProxyType({}),
) -> Picture:
    """A collective's speed-ups.   races: by form of calls.   bounds_s: seconds by size."""
    title = f"Speed-up of {collective} over the library's own"
    return Picture("Speed-up", title, svg(speedups(races, bounds_s), title))


def schedule_figures(
    timing: Timing,
    schedule: Schedule,
    t0: Fraction | None = None,
    topology: Topology | None = None,
    crossings: Sequence[str] = (),
) -> dict[str, Figure]:
    """Figures of a schedule: in space ("Mesh" or "Tree") if possible, and in time ("Timeline").

    In space: the links of a topology that is a mesh or a torus.  Without such links: the mesh of
    ranks for a collective with sources, or the tree if all data come from a root.
    t0: the unit of times, in exact seconds; None for seconds.   crossings: words for the levels.
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
    """A schedule's pictures for the report.   settings: t0, topology, crossings, in this order."""
    *algorithm, problem = schedule_title(schedule).split("\n")
    what = f"{' '.join(algorithm)}, {problem}"
    return tuple(
        Picture(kind, title := f"{kind}: {what}", svg(figure, title))
        for kind, figure in schedule_figures(timing, schedule, *settings).items()
    )
