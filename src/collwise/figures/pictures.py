"""Pictures with the words that teach how to read them, ready for the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from matplotlib.figure import Figure

from collwise.figures.curves import latency_curves, predicted_against_measured, speedups
from collwise.figures.link_load import can_be_drawn, mesh
from collwise.figures.regions import regions
from collwise.figures.style import svg
from collwise.figures.timeline import timeline
from collwise.figures.tree_diagram import tree
from collwise.measure.race import Race
from collwise.model.topology import Topology
from collwise.profiles.profile import Profile
from collwise.schedule.program import Schedule
from collwise.system import formatting
from collwise.timing import Timing


@dataclass(frozen=True)
class Picture:
    """A picture on the page.  svg: one <svg> element, as `style.svg` gives it; not escaped."""

    title: str
    caption: str
    svg: str


def measured_pictures(
    profile: Profile, races: Sequence[Race], blocking: Sequence[Race] = ()
) -> tuple[Picture, ...]:
    """What was measured: λ(m) and t0(m); and of races: speed-ups, predicted against measured.

    races: of persistent calls.   blocking: of blocking ones, with the same labels.
    """
    pictures = [Picture("The machine: t0 and λ", _LATENCY, svg(latency_curves(profile)))]
    for collective in dict.fromkeys(race.collective for race in races):
        some = [race for race in races if race.collective == collective]
        others = [race for race in blocking if race.collective == collective]
        measured = svg(predicted_against_measured(some))
        drawn = svg(speedups(some, others))
        pictures += [
            Picture(f"Speed-up of {collective} over the library's own", _SPEEDUPS, drawn),
            Picture(f"Predicted against measured, {collective}", _PREDICTED, measured),
        ]
    return tuple(pictures)


def regions_picture(collective: str, times_s: Mapping[int, Mapping[str, float]]) -> Picture:
    """Where each algorithm of a collective is predicted best: seconds by bytes and algorithm."""
    drawn = svg(regions(collective, times_s))
    return Picture(f"Regions of {collective}: predicted times over the length", _REGIONS, drawn)


def schedule_figures(
    timing: Timing, schedule: Schedule, t0: Fraction | None = None, topology: Topology | None = None
) -> tuple[Figure, ...]:
    """A schedule in space and in time; what combines without links in time only.

    In space: the links of a mesh or a torus, if they are the topology; else the mesh of an s-to-p
    broadcast with its sources, or the tree of a broadcast.   t0: exact seconds, to count in units
    of it.
    """
    problem, name = schedule.problem, schedule.algorithm
    in_time = timeline(timing, t0, schedule)
    if _on_links(timing, topology):
        return mesh(problem, timing, topology, name), in_time
    if problem.kind.has_sources:
        return mesh(problem, timing, None, name), in_time
    if problem.kind.combines:
        return (in_time,)  # what is combined does not come down a tree
    return tree(timing, schedule, t0), in_time


def _on_links(timing: Timing, topology: Topology | None) -> bool:
    return can_be_drawn(topology) and bool(timing.passages)


def schedule_pictures(
    timing: Timing, schedule: Schedule, t0: Fraction | None = None, topology: Topology | None = None
) -> tuple[Picture, ...]:
    """The same with their words."""
    what = f"{schedule.algorithm or schedule.problem.collective}, {_size(schedule)}"
    *in_space, in_time = map(svg, schedule_figures(timing, schedule, t0, topology))
    kind, caption = "Tree", _TREE
    if schedule.problem.kind.has_sources or _on_links(timing, topology):
        kind, caption = "Mesh", _MESH
    last = Picture(f"Timeline: {what}", _TIMELINE, in_time)
    return (*(Picture(f"{kind}: {what}", caption, drawn) for drawn in in_space), last)


def _size(schedule: Schedule) -> str:
    problem = schedule.problem
    size, ranks = formatting.size(problem.nbytes), formatting.count(problem.ranks, "rank")
    if problem.sources:
        told = formatting.count(len(problem.sources), "source")
        return f"{size} of {told} to {ranks}"
    return f"{size} to {ranks}"


_LATENCY = (
    "Above: λ, how many times as long a message takes to arrive as it keeps its sender busy. At"
    " λ = 1 a binomial tree is best; the larger λ, the longer the informed ranks go on sending"
    " before those they informed can help, and the wider the best tree. Below: the two times"
    " themselves, t0 (filled) and λ·t0 (hollow). Plans run on non-blocking sends. Triangles are the"
    " two experiments on their own: where they lie apart, distrust the point between them. Dotted"
    " lines stand where the library changes its protocol; no curve is drawn across one of its own."
    " The two ways of sending stand a little to the left and right of their size, so that both can"
    " be seen; intervals that leave the picture are cut."
)
_SPEEDUPS = (
    "One point per size: the library's own median time divided by that of collwise's fastest"
    " schedule, with its 95 % interval. Above the line collwise is faster. A point is filled where"
    " even the low end of its interval is clearly above 1; elsewhere the library's own stays."
    " Persistent calls are compared with the faster of the library's two forms, blocking calls with"
    " its blocking one."
)
_PREDICTED = (
    "One point per competitor and size, in persistent calls. Left: the model's time against the"
    " measured median, on logarithmic axes; right: their ratio, which shows what logarithmic axes"
    " hide. On the line the model is right; above it, the run took longer than predicted. The"
    " library's own is not here: the model does not know its schedule."
)
_REGIONS = (
    "By the measured machine: the predicted time of every algorithm over the length, divided by the"
    " best one's. A curve on the line is the best there; the band below says which it is. Where"
    " two lie close together a race decides, not the model."
)
_TREE = (
    "Time runs downwards. A node is a rank, as low as the moment at which it first receives"
    " something; an edge is the message that brought it. The rank that a sender informs first"
    " stands farthest to the left, since its subtree has most time to grow. A good tree is level at"
    " the bottom: no rank finishes long before the others. These are ideal times by the measured t0"
    " and λ, not a trace of a run."
)
_MESH = (
    "The ranks as a mesh, row by row, as the algorithms see them; filled are those that have data."
    " Where links are drawn, an arrow is the darker and the wider the longer its link was busy."
)
_TIMELINE = (
    "One row per rank. A bar is a send, in which its sender's port is busy for t0; it carries the"
    " rank it goes to, where there is room. An arrow leads from its end to the moment at which the"
    " receiver holds the message, λ·t0 after the send began. The pale part of a row is time in"
    " which the rank holds data: where no bar covers it, the rank could send and has nothing left"
    " to do. The broken line is the completion. These are ideal times, too."
)
