"""Results for people and for programs: rows of tables, summaries, JSON documents.

Columns and their order are defined once each, here; terminal and HTML derive from them.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from collwise.measure.statistics import Interval
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.planner.plans import Plan
from collwise.profiles.profile import Profile
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem
from collwise.system import formatting

if TYPE_CHECKING:  # sessions run on MPI, and planning must not load it
    from collwise.tuning.session import Decision, Outcome, Tuning

Rows: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Column titles and rows of ready-made text."""


UNRACED = "nothing to race: the library's own stays"

CALLS = {name: collective.methods[0] for name, collective in COLLECTIVES.items()}
"""By collective, the method of a communicator that it is about."""


def call(decision: "Decision") -> str:
    """The call that a decision is about: Bcast, or Bcast_init."""
    return CALLS[decision.race.collective] + "_init" * (decision.form == "persistent")


def rows(found: "Tuning") -> Rows:
    """The main table: two rows for every size, one for each form of the call.

    Each compares our fastest schedule with the library's own call that it was decided against.
    """
    titles = (
        "collective",
        "bytes",
        "t0",
        "λ",
        "call",
        "algorithm",
        "predicted",
        "measured",
        "library",
        "speed-up",
        "95 %",
        "used",
        "verdict",
    )
    return titles, [
        (
            outcome.race.collective,
            _bytes(outcome.plan.problem),
            formatting.time(outcome.t0_s),
            f"{outcome.lam:.3g}",
            call(decision),
            *_compared(decision),
        )
        for outcome in found.outcomes
        for decision in outcome.decisions
    ]


def _compared(d: "Decision") -> tuple[str, ...]:
    """The columns of a row that come from a race."""
    own = formatting.time(d.library.middle)
    if not d.raced:
        return (*["-"] * 3, own, "-", "-", d.used, UNRACED.partition(":")[0])
    return (
        _short(d),
        "-" if d.predicted_s is None else formatting.time(d.predicted_s),
        formatting.time(d.measured.middle),
        own,
        f"{d.speedup.middle:.2f}",
        _range(d.speedup),
        d.used,
        "clearly ahead" if d.used == "collwise" else d.race.verdict.partition(":")[0],
    )


def _short(d: "Decision") -> str:
    """Our algorithm without its collective."""
    return d.ours.removeprefix(f"{d.race.collective}/")


SPARE = ("λ", "t0", "verdict", "collective", "predicted", "measured", "95 %", "library")
"""Columns of the main table without which it can still be read, the first to go first."""


def _bytes(problem: Problem) -> str:
    """Bytes of the message or of everybody's vector; of sources, how many give how many each."""
    each = {source.nbytes for source in problem.sources}
    return f"{len(problem.sources)}×{each.pop()}" if len(each) == 1 else str(problem.nbytes)


def summary(found: "Tuning") -> list[str]:
    """What the session comes to, in a few lines."""
    lines = [f"verdict  {found.profile.verdict}"]
    forms: dict[str, list[tuple[Outcome, Decision]]] = {}
    for outcome in found.outcomes:
        for decision in outcome.decisions:
            forms.setdefault(decision.form, []).append((outcome, decision))
    for form, some in forms.items():
        won = [
            f"{o.race.collective} of {_bytes(o.plan.problem)} B {d.speedup.middle:.2f}×"
            for o, d in some
            if d.used == "collwise"
        ]
        lines.append(
            f"{'' if len(lines) > 1 else 'races':<9}{form} calls: collwise is clearly ahead in"
            f" {len(won)} of {len(some)}"
            + (f": {', '.join(won)}" if won else "; the library's own stays")
        )
    lines.append("checked  every byte on every rank, before and after every race")
    return lines + [f"advice   {line}" for line in found.profile.advice]


def measured_rows(profile: Profile) -> Rows:
    """t0 and λ over sizes, for both ways of sending."""
    titles = ("bytes", "sends", "t0", "λ", "95 %", "experiments 1, 2", "protocol", "verdict")
    return titles, [
        (
            str(p.nbytes),
            p.mode,
            formatting.time(p.t0_s),
            f"{p.lam:.3g}",
            "-" if p.lam_interval is None else "{:.3g} … {:.3g}".format(*p.lam_interval),
            ", ".join("-" if lam is None else f"{lam:.3g}" for lam in p.lam_experiments),
            str(p.segment + 1),
            p.verdict,
        )
        for p in profile.points
    ]


MEASURED_SPARE = ("protocol", "experiments 1, 2", "95 %")
"""Columns of that table without which it can still be read, the first to go first."""


def line_rows(profile: Profile) -> Rows:
    """The same times as α + nβ: one row for every protocol."""
    titles = ("bytes", "α", "β, per byte", "rate")
    return titles, [
        (
            f"{line.first} … {line.last}",
            formatting.time(line.alpha_s),
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
            formatting.time(t.median_s),
            formatting.time_between(*t.interval_s, t.median_s),
            f"{t.median_s / t.nbytes * 1e9:.3f} ns",
        )
        for t in profile.combining
    ]


def race_rows(outcome: "Outcome") -> Rows:
    """Every competitor of a race, blocking calls included, the fastest first."""
    medians = {**outcome.blocking.medians, **outcome.race.medians}
    library = outcome.race.libraries[0]
    titles = ("competitor", "median", "95 %", "predicted", f"speed-up over {library}", "interval")
    found = []
    for label, median in sorted(medians.items(), key=lambda item: item[1].middle):
        race = outcome.race if label in outcome.race.samples else outcome.blocking
        gain = race.against(library, label)
        predicted = race.predicted_s.get(label)
        found.append(
            (
                label.removeprefix(f"{race.collective}/"),
                formatting.time(median.middle),
                formatting.time_between(median.low, median.high, median.middle),
                "-" if predicted is None else formatting.time(predicted),
                f"{gain.middle:.2f}",
                _range(gain),
            )
        )
    return titles, found


RACE_SPARE = ("interval", "predicted", "95 %")
"""Columns of that table without which it can still be read, the first to go first."""


def race_summary(outcome: "Outcome") -> list[str]:
    """Who won, for each form of the call, and what it rests on."""
    race = outcome.race
    count = len(next(iter(race.samples.values())))
    return [
        *(
            f"{'' if number else 'verdict':<9}{decision.form} calls: {_verdict(decision)}"
            for number, decision in enumerate(outcome.decisions)
        ),
        f"samples  {formatting.count(count, 'repetition')} of each, shuffled and interleaved;"
        f" {race.dropped} dropped because a rank started late",
        "checked  every byte on every rank, before and after",
    ]


def _verdict(d: "Decision") -> str:
    if not d.raced:
        return UNRACED
    return f"{d.race.verdict} ({_short(d)} compared with {d.race.library})"


def document(found: "Tuning") -> dict[str, Any]:
    """A tuning session as JSON."""
    return {
        "profile": found.profile.to_document(),
        "races": [race_document(outcome) for outcome in found.outcomes],
    }


def race_document(outcome: "Outcome") -> dict[str, Any]:
    """A race as JSON: what was decided for each form of the call, and everything behind it.

    Times are in seconds.  What stands outside of "forms" is about persistent calls.
    """
    race, own = outcome.race, outcome.race.libraries[0]
    blocking, persistent = (_decision_document(decision) for decision in outcome.decisions)
    return {
        "collective": race.collective,
        "ranks": race.ranks,
        "nbytes": race.nbytes,
        "root": race.root,
        **sources_document(outcome.plan.problem),
        "t0_s": outcome.t0_s,
        "lam": outcome.lam,
        "lower_bound_s": outcome.plan.lower_bound_s,
        **persistent,
        "forms": {"blocking": blocking, "persistent": persistent},
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


def _decision_document(decision: "Decision") -> dict[str, Any]:
    """Who was compared, their medians and ratio, and what came of it."""
    gain = decision.speedup
    return {
        "call": call(decision),
        "algorithm": decision.ours,
        "predicted_s": decision.predicted_s,
        "ours_s": decision.measured.middle,
        "library": decision.race.library,
        "library_s": decision.library.middle,
        "ratio": 1 / gain.middle,
        "speedup": gain.middle,
        "speedup_interval": [gain.low, gain.high if isfinite(gain.high) else None],
        "winner": decision.race.library if decision.used == "library" else decision.ours,
        "decision": decision.used,
        "verdict": decision.race.verdict if decision.raced else UNRACED,
    }


def plan_document(plan: Plan, origin: str) -> dict[str, Any]:
    """A plan as JSON.  Times in seconds."""
    return {
        **question_document(plan.problem, plan.machine, plan.topology, origin, plan.reason),
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


def question_document(
    problem: Problem, machine: Machine, topology: Topology | None, origin: str, reason: str
) -> dict[str, Any]:
    """What was asked for, as JSON.   origin: of the machine.   reason: of the order."""
    return {
        "collective": problem.collective,
        "ranks": problem.ranks,
        "nbytes": problem.nbytes,
        "root": problem.root,
        "item": problem.itemsize,
        "order": problem.order,
        "order_because": reason,
        **sources_document(problem),
        "machine": machine.describe(),
        "machine_from": origin,
        "topology": topology.describe() if topology is not None else None,
    }


def sources_document(problem: Problem) -> dict[str, Any]:
    """Who has data and in which mesh, as JSON; nothing where that is no question."""
    if not problem.kind.has_sources:
        return {}
    return {
        "sources": [{"rank": source.rank, "nbytes": source.nbytes} for source in problem.sources],
        "shape": list(problem.shape),
    }


def _range(interval: Interval) -> str:
    high = f"{interval.high:.2f}" if isfinite(interval.high) else "∞"
    return f"{interval.low:.2f} … {high}"
