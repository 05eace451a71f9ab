"""The HTML report of a session: one self-contained page, with the tables of the terminal.

Its structure and words are in `figures/report_page.html.jinja`.  Drawing loads Matplotlib, which
takes seconds: only the rank that writes the report imports this module.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from collwise.figures.page_templates import template
from collwise.figures.race_charts import comparable_races
from collwise.figures.report_pictures import (
    Picture,
    machine_picture,
    race_picture,
    schedule_pictures,
)
from collwise.measure.race import MARGIN, Race
from collwise.profiles.fingerprint import LABELS
from collwise.profiles.records import Form
from collwise.report.schedule_files import LARGEST_DRAWN, settings_of
from collwise.report.tuning_tables import (
    call,
    experiments_table,
    machine_tables,
    race_table,
    size_of,
    tuning_table,
)
from collwise.simulator import simulate
from collwise.system import formatting
from collwise.system.files import save_text
from collwise.tuning.outcomes import Outcome, RaceVerdict, Tuning

MAX_SCHEDULES = 3
"""The most schedules of a collective to draw: those of the algorithms that gain most."""


def write_report(tuning: Tuning, path: Path) -> Path:
    """Write the HTML report of a session; the file is replaced as a whole.  Returns `path`.

    Raises InvalidArgument if it cannot be written.
    """
    save_text(path, render(tuning), "report")
    return path


def render(tuning: Tuning) -> str:
    """The report as one self-contained HTML5 page."""
    profile = tuning.profile
    collectives = dict.fromkeys(outcome.race.collective for outcome in tuning.outcomes)
    return template("report_page.html.jinja").render(
        title=f"Collectives on {profile.provenance.ranks} ranks, {profile.fingerprint.mpi_library}",
        profile=profile,
        provenance=profile.provenance,
        stable=profile.verdict == "stable",
        lead=_lead(tuning),
        overview=_overview(tuning.outcomes),
        sections=[_section(tuning, collective) for collective in collectives],
        dropped=sum(outcome.race.dropped for outcome in tuning.outcomes),
        machine=machine_picture(profile),
        measured=machine_tables(profile),
        experiments=experiments_table(profile),
        labels={k: v for k, v in LABELS.items() if getattr(profile.fingerprint, k)},
        margin=MARGIN,
    )


def _section(tuning: Tuning, collective: str) -> dict[str, Any]:
    """The page's section on a collective: speed-ups, calls, tables of races, winning schedules."""
    outcomes = tuple(o for o in tuning.outcomes if o.race.collective == collective)
    races: dict[Form, list[Race]] = {}
    for decision in (decision for outcome in outcomes for decision in outcome.decisions):
        races.setdefault(decision.form, []).append(decision.plain_race)
    bounds_s = {o.race.nbytes: o.plan.lower_bound_s for o in outcomes}
    return {
        "title": f"{collective} ({', '.join({o.task.problem.method: 0 for o in outcomes})})",
        "picture": race_picture(collective, races, bounds_s),
        "calls": tuning_table(replace(tuning, outcomes=outcomes)),
        "races": [race_table(outcome, _race_title(outcome)) for outcome in outcomes],
        "schedules": list(_winners(outcomes)),
    }


def _race_title(outcome: Outcome) -> str:
    repetitions = formatting.count(len(outcome.race.samples[outcome.ours]), "repetition")
    return f"{outcome.task}: {repetitions} of each, {outcome.race.dropped} dropped"


def _winners(outcomes: Iterable[Outcome]) -> Iterator[Picture]:
    """Pictures of up to MAX_SCHEDULES winning algorithms: of each, the schedule that gains most."""
    won = sorted(
        ((d.speedup.middle, n, d.ours, o) for o in outcomes for n, d in enumerate(o.decisions)
         if d.serves == "collwise"), reverse=True
    )  # fmt: skip
    best: dict[str, tuple[str, Outcome]] = {}
    for _, _, label, outcome in won:
        best.setdefault(outcome.plan.candidate(label).name, (label, outcome))
    for label, outcome in list(best.values())[:MAX_SCHEDULES]:
        plan = outcome.plan
        if plan.problem.ranks > LARGEST_DRAWN:
            return
        trace = simulate(plan.candidate(label).schedule(plan.problem), plan.machine, plan.topology)
        yield from schedule_pictures(trace.timing, trace.schedule, *settings_of(trace))


def _overview(outcomes: Sequence[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """For each MPI call, its races: size, speed-up, and whether the library's default is beaten."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for outcome in outcomes:
        for decision in outcome.decisions:
            speedup = f"{decision.speedup.middle:.2f}×" if decision.raced else "–"
            won = decision.used == "collwise"
            cell = {"size": size_of(outcome.plan.problem), "speedup": speedup, "won": won}
            rows.setdefault(call(decision), []).append(cell)
    return rows


def _lead(tuning: Tuning) -> str:
    """What was raced and what came of it, in a few sentences."""
    raced = [
        (outcome, decision)
        for outcome in tuning.outcomes
        for decision in outcome.decisions
        if decision.raced and comparable_races([decision.race])
    ]
    if not raced:
        return "Nothing was raced: this page shows the machine alone."
    won = [(o, d) for o, d in raced if d.used == "collwise"]
    library = tuning.profile.fingerprint.mpi_library
    text = f"{formatting.count(len(raced), 'call')} were raced against {library}'s own. "
    if won:
        outcome, best = max(won, key=lambda pair: _gain(pair[1]))
        mean = exp(sum(log(_gain(d)) for _, d in won) / len(raced))
        own = sum(d.serves != d.used for _, d in won)
        by_own = f" ({own} by other algorithms of the library)" if own else ""
        text += (
            f"collwise is clearly faster in {len(won)} of them{by_own}"
            " and serves these from now on, up to"
            f" {_gain(best):.2f}× as fast ({call(best)} of {size_of(outcome.plan.problem)}); the"
            " library's own stays for the others. The geometric mean over all calls, with 1 where"
            f" the library's own stays, is {mean:.2f}×."
        )
    else:
        text += "Nothing was clearly faster: the library's own stays."
    if tuning.unraced:
        text += f" The budget ended before {formatting.count(len(tuning.unraced), 'more race')}."
    return f"{text} {_prediction_error([d for _, d in raced])}"


def _gain(decision: RaceVerdict) -> float:
    return decision.library.middle / decision.measured.middle


def _prediction_error(raced: Iterable[RaceVerdict]) -> str:
    """A sentence on the factor by which predictions were off, up or down; "" if there are none."""
    factors = [
        abs(log(decision.measured.middle / decision.predicted_s))
        for decision in raced
        if decision.predicted_s
    ]
    if not factors:
        return ""
    return (
        f"Predicted times are off by a factor of {exp(median(factors)):.2f} in the median,"
        f" {exp(fmean(factors)):.2f} in the mean."
    )
