"""Results for people and for programs: rows of tables, summaries, JSON documents.

Columns and their order are defined once each, here; terminal and HTML derive from them.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from collwise.measure.race import Interval
from collwise.model import words
from collwise.model.profile import Profile
from collwise.planner.plans import Plan
from collwise.schedule.data import GATHERING, Problem

if TYPE_CHECKING:  # sessions run on MPI, and planning must not load it
    from collwise.tuning.session import Outcome, Tuning

Rows: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Column titles and rows of ready-made text."""


def rows(found: "Tuning") -> Rows:
    """The main table: one row for every size."""
    titles = (
        "collective",
        "bytes",
        "t0",
        "λ",
        "algorithm",
        "predicted",
        "measured",
        "library's own",
        "speed-up",
        "verdict",
    )
    return titles, [
        (
            o.race.collective,
            _bytes(o.plan.problem),
            words.time(o.t0_s),
            f"{o.lam:.3g}",
            o.ours.removeprefix(f"{o.race.collective}/"),
            words.time(o.predicted_s),
            words.time(o.measured.middle),
            words.time(o.library.middle),
            f"{o.speedup.middle:.2f} ({_range(o.speedup)})",
            o.race.verdict,
        )
        if o.ours != o.race.library
        else (
            o.race.collective,
            _bytes(o.plan.problem),
            *["-"] * 7,
            "nothing to race: the library's own stays",
        )
        for o in found.outcomes
    ]


SPARE = ("λ", "t0", "predicted", "verdict", "library's own")
"""Columns of the main table without which it can still be read, the first to go first."""


def _bytes(problem: Problem) -> str:
    """Bytes of the message or of everybody's vector; of sources, how many give how many each."""
    each = {source.nbytes for source in problem.sources}
    return f"{len(problem.sources)}×{each.pop()}" if len(each) == 1 else str(problem.nbytes)


def summary(found: "Tuning") -> list[str]:
    """What the session comes to, in a few lines."""
    won = [o for o in found.outcomes if o.race.winner != o.race.library]
    lines = [
        f"verdict  {found.profile.verdict}",
        f"races    collwise is clearly ahead in {len(won)} of {len(found.outcomes)}"
        + (
            ": "
            + ", ".join(
                f"{o.race.collective} of {_bytes(o.plan.problem)} B {o.speedup.middle:.2f}×"
                for o in won
            )
            if won
            else "; elsewhere the library's own stays"
        ),
        "checked  every byte on every rank, before and after every race",
    ]
    return lines + [f"advice   {line}" for line in found.profile.advice]


def measured_rows(profile: Profile) -> Rows:
    """t0 and λ over sizes, for both ways of sending."""
    titles = ("bytes", "sends", "t0", "λ", "95 %", "experiments 1, 2", "protocol", "verdict")
    return titles, [
        (
            str(p.nbytes),
            p.mode,
            words.time(p.t0_s),
            f"{p.lam:.3g}",
            "-" if p.lam_interval is None else "{:.3g} … {:.3g}".format(*p.lam_interval),
            ", ".join("-" if lam is None else f"{lam:.3g}" for lam in p.lam_experiments),
            str(p.segment + 1),
            p.verdict,
        )
        for p in profile.points
    ]


def line_rows(profile: Profile) -> Rows:
    """The same times as α + nβ: one row for every protocol."""
    titles = ("bytes", "α", "β, per byte", "rate")
    return titles, [
        (
            f"{line.first} … {line.last}",
            words.time(line.alpha_s),
            f"{line.beta_s * 1e9:.4g} ns",
            f"{1e-6 / line.beta_s:.4g} MB/s" if line.beta_s > 0 else "-",
        )
        for line in profile.machine.lines()
    ]


def combining_rows(profile: Profile) -> Rows:
    """What combining takes: one row for every operator, type and length."""
    titles = ("operator", "type", "bytes", "combining", "95 %", "per byte (γ)")
    return titles, [
        (
            t.op,
            t.dtype,
            str(t.nbytes),
            words.time(t.median_s),
            words.time_between(*t.interval_s, t.median_s),
            f"{t.median_s / t.nbytes * 1e9:.3f} ns",
        )
        for t in profile.combining
    ]


def race_rows(outcome: "Outcome") -> Rows:
    """Every competitor of a race, blocking calls included, the fastest first."""
    medians = {**outcome.blocking.medians, **outcome.race.medians}
    library = outcome.race.libraries[0]
    titles = ("competitor", "median", "95 %", "predicted", f"speed-up over {library}")
    found = []
    for label, median in sorted(medians.items(), key=lambda item: item[1].middle):
        race = outcome.race if label in outcome.race.samples else outcome.blocking
        gain = race.against(library, label)
        predicted = race.predicted_s.get(label)
        found.append(
            (
                label,
                words.time(median.middle),
                f"{words.time(median.low)} … {words.time(median.high)}",
                "-" if predicted is None else words.time(predicted),
                f"{gain.middle:.2f} ({_range(gain)})",
            )
        )
    return titles, found


def race_summary(outcome: "Outcome") -> list[str]:
    """Who won, and what it rests on."""
    race = outcome.race
    count = len(next(iter(race.samples.values())))
    return [
        f"verdict  {race.verdict} (compared with {race.library})",
        f"samples  {words.count(count, 'repetition')} of each, shuffled and interleaved;"
        f" {race.dropped} dropped because a rank started late",
        "checked  every byte on every rank, before and after",
    ]


def document(found: "Tuning") -> dict[str, Any]:
    """A tuning session as JSON."""
    return {
        "profile": found.profile.to_document(),
        "races": [race_document(outcome) for outcome in found.outcomes],
    }


def race_document(outcome: "Outcome") -> dict[str, Any]:
    """A race as JSON: both medians, the ratio, everything behind them.  Times in seconds."""
    race = outcome.race
    ours, own = race.best, race.libraries[0]
    gain = race.against(own, ours)
    return {
        "collective": race.collective,
        "ranks": race.ranks,
        "nbytes": race.nbytes,
        "root": race.root,
        **sources_document(outcome.plan.problem),
        "algorithm": ours,
        "t0_s": outcome.t0_s,
        "lam": outcome.lam,
        "predicted_s": race.predicted_s.get(ours),
        "lower_bound_s": outcome.plan.lower_bound_s,
        "ours_s": race.medians[ours].middle,
        "library_s": race.medians[own].middle,
        "ratio": 1 / gain.middle,
        "speedup": gain.middle,
        "speedup_interval": [gain.low, gain.high if isfinite(gain.high) else None],
        "winner": race.winner,
        "verdict": race.verdict,
        "dropped": race.dropped,
        "competitors": [
            {
                "label": label,
                "median_s": median.middle,
                "interval_s": [median.low, median.high],
                "predicted_s": run.predicted_s.get(label),
                "samples_s": list(run.samples[label]),
            }
            for run in (race, outcome.blocking)
            for label, median in run.medians.items()
            if run is race or label != own
        ],
    }


def plan_document(plan: Plan, origin: str) -> dict[str, Any]:
    """A plan as JSON.  Times in seconds."""
    problem = plan.problem
    return {
        "collective": problem.collective,
        "ranks": problem.ranks,
        "nbytes": problem.nbytes,
        "root": problem.root,
        "item": problem.item,
        "order": problem.order,
        "order_because": plan.reason,
        **sources_document(problem),
        "machine": plan.machine.describe(),
        "machine_from": origin,
        "topology": plan.topology.describe() if plan.topology is not None else None,
        "algorithm": plan.algorithm,
        "settings": {name: str(value) for name, value in plan.settings.items()},
        "predicted_s": plan.predicted_s,
        "lower_bound_s": plan.lower_bound_s,
        "lower_bound": plan.bound.argument,
        "unsegmented_bound_s": plan.unsegmented_bound.time_s,
        "candidates": [
            {"label": c.label, "predicted_s": c.predicted_s, "verdict": c.verdict}
            for c in plan.candidates
        ],
        "excluded": dict(plan.excluded),
        "remarks": list(plan.remarks),
    }


def sources_document(problem: Problem) -> dict[str, Any]:
    """Who has data and in which mesh, as JSON; nothing where that is no question."""
    if problem.collective not in GATHERING:
        return {}
    return {
        "sources": [{"rank": source.rank, "nbytes": source.nbytes} for source in problem.sources],
        "shape": list(problem.shape),
    }


def _range(interval: Interval) -> str:
    high = f"{interval.high:.2f}" if isfinite(interval.high) else "∞"
    return f"{interval.low:.2f} … {high}"
