"""The report: one HTML page that needs nothing else, for people who want to see why.

The page's structure and words are in `page.html.jinja` beside this module.  Whatever comes from
outside is escaped there; only a picture's SVG is put in as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from math import exp, inf, log
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from collwise.figures.curves import usable
from collwise.figures.pictures import Picture
from collwise.figures.style import THEME
from collwise.measure.race import MARGIN, Race
from collwise.measure.statistics import Interval, median_interval
from collwise.profiles.fingerprint import LABELS
from collwise.profiles.profile import Profile
from collwise.profiles.records import MedianTime, Mode
from collwise.system import formatting


@dataclass(frozen=True)
class Row:
    """A row of the main table: ready-made text or numbers, one for each column.

    won: whether collwise's schedule was clearly ahead of the library's own.
    """

    cells: Sequence[str | int | float]
    won: bool = False


@dataclass(frozen=True)
class Report:
    """What a page tells.

    races: those that decided about persistent calls, one per size.   blocking: those about blocking
    ones, from the same repetitions; where a size has only these, nothing of ours may have run.
    rows, columns: the main table.   notes: lines for the reader.
    """

    title: str
    profile: Profile
    races: Sequence[Race] = ()
    rows: Sequence[Row] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    blocking: Sequence[Race] = ()
    columns: Sequence[str] = ()


def render(report: Report) -> str:
    """The report as one self-contained HTML5 page."""
    profile = report.profile
    return _template().render(
        report=report,
        profile=profile,
        provenance=profile.provenance,
        stable=profile.verdict == "stable",
        done=_done(report),
        outcome=_outcome(report),
        pictures=[_Shown(p.title, p.caption, _inline(p, n)) for n, p in enumerate(report.pictures)],
        finishes=list(_finishes(report)),
        ks=sorted({m.k for m in profile.medians}),
        experiments=list(_experiments(profile.medians)),
        labels={k: v for k, v in LABELS.items() if getattr(report.profile.fingerprint, k)},
        theme=THEME,
        margin=MARGIN,
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "time": formatting.time,
        "between": formatting.time_between,
        "digits": formatting.digits,
        "size": formatting.size,
        "count": formatting.count,
        "soft": _soft,
        "mode": lambda mode: {"nonblocking": "non-blocking"}.get(mode, mode),
    }
    source = files("collwise.figures").joinpath("page.html.jinja")
    return environment.from_string(source.read_text(encoding="utf-8"))


def _soft(cell: str | int | float) -> Markup:
    """The text of a cell, which may break before what is in brackets."""
    return Markup(str(escape(cell)).replace("(", "<wbr>("))


def _done(report: Report) -> str:
    """What was done, in a sentence."""
    profile, races = report.profile, usable(report.races)
    made, sizes = profile.provenance, sorted({p.nbytes for p in profile.points})
    text = (
        f"t0 and λ were measured between {formatting.count(made.ranks, 'rank')}"
        if made.ranks
        else ""
    )
    text = text or "t0 and λ were measured"
    text += (
        f" on {formatting.count(len(made.hosts), 'host')} with {profile.fingerprint.mpi_library}"
    )
    text += f" at {formatting.count(len(sizes), 'message size')}, {_range(sizes)}"
    if not races:
        return text + "; nothing was raced."
    kinds = " and ".join(sorted({race.collective for race in races}))
    where = " and ".join(str(n) for n in sorted({race.ranks for race in races}))
    ours = {label for race in races for label in race.samples if label not in race.libraries}
    text += f"; then {formatting.count(len(ours), 'schedule')} for {kinds} on {where} ranks raced"
    return f"{text} the library's own at {_range(sorted({race.nbytes for race in races}))}."


def _outcome(report: Report) -> str:
    """What came of it: a sentence for each form of the calls."""
    blocking = [race for race in usable(report.blocking) if race.best not in race.libraries]
    forms = {"persistent": usable(report.races), "blocking": blocking}
    told = [f"Of {form} calls, {_gained(races)}" for form, races in forms.items() if races]
    return " ".join(told) or f"The measurement is {report.profile.verdict.partition(':')[0]}."


def _gained(races: Sequence[Race]) -> str:
    """The same for the races of one form."""
    won = [race for race in races if race.winner not in race.libraries]
    everywhere = "in the only race" if len(races) == 1 else f"in all {len(races)} races"
    if not won:
        return f"the library's own stays {everywhere}: nothing was clearly faster."
    gains = [(r.medians[r.library].middle / r.medians[r.winner].middle, r.nbytes) for r in won]
    best, nbytes = max(gains)
    share = everywhere if len(won) == len(races) else f"in {len(won)} of {len(races)} races"
    mean = exp(sum(log(gain) for gain, _ in gains) / len(races))
    text = f"collwise is clearly faster than the library's own {share}"
    if len(races) == 1:
        return f"{text}: {best:.2f}× at {formatting.size(nbytes)}."
    text += (
        f", up to {best:.2f}× at {formatting.size(nbytes)}; the geometric mean over all races is"
    )
    text += f" {mean:.2f}×"
    return text + (", with 1 where the library's own stays." if len(won) < len(races) else ".")


def _range(sizes: Sequence[int]) -> str:
    first, last = formatting.size(sizes[0]), formatting.size(sizes[-1])
    return first if len(sizes) == 1 else f"{first} to {last}"


class _Shown(NamedTuple):
    title: str
    caption: str
    svg: Markup


def _inline(picture: Picture, number: int) -> Markup:
    """The SVG with a name for those who cannot see it, and identifiers of its own on the page."""
    text = picture.svg
    for before in (' id="', "url(#", ' href="#'):
        text = text.replace(before, f"{before}p{number}-")
    name = Markup('<svg role="img" aria-label="{}"').format(picture.title)
    return Markup(text.replace("<svg", name, 1))  # the one thing that is not escaped


class _Finisher(NamedTuple):
    label: str
    median: Interval | None
    predicted_s: float | None
    repetitions: int
    status: str


class _Finish(NamedTuple):
    race: Race
    finishers: list[_Finisher]


def _finishes(report: Report) -> Iterator[_Finish]:
    """The competitors of every race, the fastest first, blocking runs of the same race included."""
    everything = (*report.races, *report.blocking)
    races = {_problem(race): race for race in reversed(everything)}
    for problem, race in reversed(races.items()):
        runs = [run for run in everything if _problem(run) == problem]
        chosen: dict[str, list[str]] = {}
        for form, some in (("blocking", report.blocking), ("persistent", report.races)):
            for run in usable(run for run in some if _problem(run) == problem):
                chosen.setdefault(run.winner, []).append(form)
        found = {}
        for run in reversed(runs):
            for label, samples in run.samples.items():
                told = ["library's own"] * (label in run.libraries)
                if label in chosen:
                    told.append(f"chosen for {' and '.join(chosen[label])} calls")
                median = median_interval(samples) if samples else None
                predicted = run.predicted_s.get(label)
                found[label] = _Finisher(label, median, predicted, len(samples), ", ".join(told))
        ordered = sorted(found.values(), key=lambda f: f.median.middle if f.median else inf)
        yield _Finish(race, ordered)


def _problem(race: Race) -> tuple[str, int, int, int]:
    return race.collective, race.ranks, race.nbytes, race.root


class _Experiment(NamedTuple):
    nbytes: int
    mode: Mode
    number: int
    by_k: dict[int, MedianTime]


def _experiments(medians: Iterable[MedianTime]) -> Iterator[_Experiment]:
    """The raw medians of the λ experiments, one row for all numbers of targets."""

    def key(m: MedianTime) -> tuple[bool, int, int]:
        return m.mode != "nonblocking", m.nbytes, m.experiment

    for _, group in groupby(sorted(medians, key=key), key=key):
        row = list(group)
        yield _Experiment(row[0].nbytes, row[0].mode, row[0].experiment, {m.k: m for m in row})
