"""The report: one self-contained HTML page.

The page's structure and words are in `report_page.html.jinja` beside this module.  Whatever comes
from outside is escaped there; only a picture's SVG is inserted as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import TypeAlias

from collwise.figures.page_templates import inline, template
from collwise.figures.race_charts import comparable_races
from collwise.figures.report_pictures import Picture
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
    """The content of a page.

    races: those that decided about persistent calls, one per size.   blocking: those about blocking
    ones, from the same repetitions; if a size has only these, perhaps none of ours ran.
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
    return template("report_page.html.jinja").render(
        report=report,
        profile=profile,
        provenance=profile.provenance,
        stable=profile.verdict == "stable",
        measured=_measured(report),
        outcome=_outcome(report),
        pictures=[(p.title, p.caption, inline(p, n)) for n, p in enumerate(report.pictures)],
        race_results=list(_race_results(report)),
        ks=sorted({m.k for m in profile.medians}),
        experiments=_experiments(profile.medians),
        labels={k: v for k, v in LABELS.items() if getattr(profile.fingerprint, k)},
        margin=MARGIN,
    )


def _measured(report: Report) -> str:
    """What was measured and raced, in a sentence."""
    profile, races = report.profile, comparable_races(report.races)
    ranks, hosts = profile.provenance.ranks, len(profile.provenance.hosts)
    sizes = sorted({p.nbytes for p in profile.points})
    between = f" between {formatting.count(ranks, 'rank')}" if ranks else ""
    text = (
        f"t0 and λ were measured{between} on {formatting.count(hosts, 'host')} with"
        f" {profile.fingerprint.mpi_library} at {formatting.count(len(sizes), 'message size')},"
        f" {_range(sizes)}"
    )
    if not races:
        return text + "; nothing was raced."
    kinds = " and ".join(sorted({race.collective for race in races}))
    where = " and ".join(str(n) for n in sorted({race.ranks for race in races}))
    ours = {label for race in races for label in race.samples if label not in race.libraries}
    return (
        f"{text}; then {formatting.count(len(ours), 'schedule')} for {kinds} on {where} ranks raced"
        f" the library's own at {_range(sorted({race.nbytes for race in races}))}."
    )


def _outcome(report: Report) -> str:
    """What came of the races: a sentence for each form of the calls."""
    blocking = comparable_races(report.blocking)
    blocking = [race for race in blocking if race.best not in race.libraries]
    forms = {"persistent": comparable_races(report.races), "blocking": blocking}
    outcomes = [f"Of {form} calls, {_gains(races)}" for form, races in forms.items() if races]
    return " ".join(outcomes) or f"The measurement is {report.profile.verdict.partition(':')[0]}."


def _gains(races: Sequence[Race]) -> str:
    """How often and by how much collwise was faster: the outcome of the races of one form."""
    won = [race for race in races if race.winner not in race.libraries]
    everywhere = "in the only race" if len(races) == 1 else f"in all {len(races)} races"
    if not won:
        return f"the library's own stays {everywhere}: nothing was clearly faster."
    gains = [(r.medians[r.library].middle / r.medians[r.winner].middle, r.nbytes) for r in won]
    best, nbytes = max(gains)
    best_gain = f"{best:.2f}× at {formatting.size(nbytes)}"
    share = everywhere if len(won) == len(races) else f"in {len(won)} of {len(races)} races"
    text = f"collwise is clearly faster than the library's own {share}"
    if len(races) == 1:
        return f"{text}: {best_gain}."
    mean = exp(sum(log(gain) for gain, _ in gains) / len(races))
    rest = ", with 1 where the library's own stays" if len(won) < len(races) else ""
    return f"{text}, up to {best_gain}; the geometric mean over all races is {mean:.2f}×{rest}."


def _range(sizes: Sequence[int]) -> str:
    first, last = formatting.size(sizes[0]), formatting.size(sizes[-1])
    return first if len(sizes) == 1 else f"{first} to {last}"


Competitor: TypeAlias = tuple[str, Interval | None, float | None, int, str]
"""Label, median, predicted time (seconds), number of repetitions, and decision."""


def _race_results(report: Report) -> Iterator[tuple[Race, list[Competitor]]]:
    """The competitors of every race, the fastest first, blocking runs of the same race included."""
    runs: dict[tuple[str, int, int, int], list[tuple[str, Race]]] = {}
    for form, races in (("persistent", report.races), ("blocking", report.blocking)):
        for race in races:
            problem = race.collective, race.ranks, race.nbytes, race.root
            runs[problem] = [*runs.pop(problem, ()), (form, race)]
    for same in runs.values():
        chosen: dict[str, list[str]] = {}
        for form, race in reversed(same):
            if comparable_races([race]):
                chosen.setdefault(race.winner, []).append(form)
        competitors: dict[str, Competitor] = {}
        for _, race in reversed(same):
            for label, samples in race.samples.items():
                status = ["library's own"] * (label in race.libraries)
                if label in chosen:
                    status.append(f"chosen for {' and '.join(chosen[label])} calls")
                times = median_interval(samples) if samples else None, race.predicted_s.get(label)
                competitors[label] = label, *times, len(samples), ", ".join(status)
        by_time = sorted(competitors.values(), key=lambda c: c[1].middle if c[1] else inf)
        yield same[0][1], by_time


def _experiments(
    medians: Iterable[MedianTime],
) -> dict[tuple[int, Mode, int], dict[int, MedianTime]]:
    """The raw medians of the λ experiments: by size, mode and experiment, for each k."""
    rows: dict[tuple[int, Mode, int], dict[int, MedianTime]] = {}
    for m in sorted(medians, key=lambda m: (m.mode != "nonblocking", m.nbytes, m.experiment)):
        rows.setdefault((m.nbytes, m.mode, m.experiment), {})[m.k] = m
    return rows
