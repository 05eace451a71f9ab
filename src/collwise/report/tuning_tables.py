"""Tables of measurements; tables, summaries and JSON documents of races and tuning sessions."""

from math import isfinite
from typing import Any

from collwise.measure.race import LIBRARY, method_name
from collwise.measure.stability import digits, known_to, state_lines, uncertainty
from collwise.measure.statistics import Interval
from collwise.model.exact import seconds
from collwise.model.levels import crossing
from collwise.planner.plans import shares
from collwise.profiles.profile import Profile
from collwise.profiles.records import Form, MeasuredSize, Mode, PortTime
from collwise.report.plan_document import sources_document
from collwise.report.tables import Table, attributes, optional_time
from collwise.schedule.problem import Problem
from collwise.system import formatting
from collwise.tuning.outcomes import Outcome, RaceVerdict, Tuning
from collwise.tuning.race_records import TUNING, VERSION

FEWEST_FOR_TREES = 4
"""On fewer ranks one unsegmented tree is best for every λ: the root sends to all others."""
UNRACED = "nothing to race: the library's own stays"


def call(decision: RaceVerdict) -> str:
    """The communicator's method that a decision is about, such as Bcast, Ibcast or Bcast_init."""
    return method_name(decision.method, decision.form)


def tuning_table(tuning: Tuning, title: str = "") -> Table:
    """The main table: a row for every task and each form of the call that was raced.

    A row compares the library's default with the fastest other competitor, ours or the library's.
    """
    points = tuning.profile.points
    rows = [
        _tuning_row(outcome, d, known_to(points, outcome.plan.problem.nbytes)[1])
        for outcome in tuning.outcomes
        for d in outcome.decisions
    ]
    optional = ["lower bound", "λ", "t0", "verdict", "collective", "speed-up, 95 %", "predicted"]
    if any(outcome.spent for outcome in tuning.outcomes):
        optional.append("time spent")
        outcomes = (outcome for outcome in tuning.outcomes for _ in outcome.decisions)
        for row, outcome in zip(rows, outcomes, strict=True):
            row["time spent"] = shares(outcome.spent) or "-"
    return Table(title, rows, tuple(optional))


def _tuning_row(outcome: Outcome, d: RaceVerdict, known: int) -> dict[str, str]:
    """The row for one form of the call.   known: to how many digits t0 and λ are known."""
    verdict = "clearly ahead" if d.used == "collwise" else _verdict(d).partition(":")[0]
    return {
        "collective": d.race.collective,
        "size": size_of(outcome.plan.problem),
        "t0": formatting.time(outcome.t0_s, known),
        "λ": f"{outcome.lam:.{known}g}" if known else "unknown",
        "call": call(d),
        "algorithm": _algorithm(d) if d.raced else "-",
        "predicted": formatting.rounded(optional_time(d.predicted_s), known).strip(),
        "measured": formatting.time(d.measured.middle) if d.raced else "-",
        "library": formatting.time(d.library.middle),
        "speed-up": f"{d.speedup.middle:.2f}" if d.raced else "-",
        "speed-up, 95 %": _interval(d.speedup) if d.raced else "-",
        "used": d.serves,
        "verdict": verdict,
        "lower bound": formatting.time(outcome.plan.lower_bound_s, known),
    }


def _verdict(d: RaceVerdict) -> str:
    return d.race.verdict if d.raced else UNRACED


def _algorithm(d: RaceVerdict) -> str:
    """The label `d.ours`, without the collective's name in front."""
    return d.ours.removeprefix(f"{d.race.collective}/")


def size_of(problem: Problem) -> str:
    """The problem's size as text: bytes, or for equal sources their number × the bytes of each."""
    each = {source.nbytes for source in problem.sources}
    if len(each) == 1:
        return f"{len(problem.sources)} × {formatting.size(each.pop())}"
    return formatting.size(problem.nbytes)


def tuning_summary(tuning: Tuning) -> list[str]:
    """The result of the session in a few lines."""
    lines = state_lines(tuning.profile.measurements)
    before = len(lines)
    by_form: dict[Form, list[tuple[Outcome, RaceVerdict]]] = {}
    for outcome in tuning.outcomes:
        for decision in outcome.decisions:
            by_form.setdefault(decision.form, []).append((outcome, decision))
    for form, decided in by_form.items():
        won = [
            f"{d.race.collective} of {size_of(outcome.plan.problem)} {d.speedup.middle:.2f}×"
            + f" by {d.serves}" * (d.serves != d.used)
            for outcome, d in decided
            if d.used == "collwise"
        ]
        lines.append(
            f"{'races' if len(lines) == before else '':<9}{form} calls: the library's default is"
            f" clearly beaten in {len(won)} of {len(decided)}"
            + (f": {', '.join(won)}" if won else "; the library's own stays")
        )
    if tuning.unraced:
        races = formatting.count(len(tuning.unraced), "race")
        named = ", ".join(
            str(task) if gain is None else f"{task} (the model predicts {gain:.2f}×)"
            for task, gain in tuning.unraced
        )
        lines.append(f"left out {races}, since the budget ended: {named}")
        lines.append("next     collwise tune --continue, with the same options, races these")
    lines += _first_steps(tuning)
    lines.append("checked  every byte on every rank, before and after every race")
    return lines + [f"advice   {line}" for line in tuning.profile.advice]


def _first_steps(tuning: Tuning) -> list[str]:
    """Lines on time saved, if any, and the next command; [] from FEWEST_FOR_TREES ranks on."""
    if tuning.profile.provenance.ranks >= FEWEST_FOR_TREES:
        return []
    won = [d for outcome in tuning.outcomes for d in outcome.decisions if d.used == "collwise"]
    lines = []
    if won:
        best = max(won, key=lambda d: d.library.middle - d.measured.middle)
        times = (best.library.middle - best.measured.middle, best.measured.middle)
        saved_s, ours_s = map(formatting.time, times)
        size = formatting.size(best.race.nbytes)
        lines.append(f"saves    up to {saved_s} of a call: {call(best)} of {size} takes {ours_s}")
    ranks = formatting.count(tuning.profile.provenance.ranks, "rank")
    return [
        *lines,
        f"next     on {ranks} the best tree is the same for every λ; from {FEWEST_FOR_TREES} on it"
        " depends on λ, as emulated hosts show: collwise lab --hosts 8 -- collwise tune",
    ]


def machine_tables(profile: Profile, title: str = "") -> list[Table]:
    """The tables of measurements that have rows, without raw medians.   title: the first one's."""
    others = levels_table, hockney_table, reading_table, combining_table
    tables = [measured_table(profile, title), *(table(profile) for table in others)]
    return [table for table in tables if table.rows]


def measured_table(profile: Profile, title: str = "") -> Table:
    """The table of t0 and λ at the outermost level: a row for every measured size and mode."""
    rows = [
        {
            "size": formatting.size(p.nbytes),
            "sends": p.mode,
            **_law_cells(p),
            "experiments 1, 2": ", ".join(
                "-" if lam is None else f"{lam:.3g}" for lam in p.lam_experiments
            ),
            "protocol": str(p.segment + 1),
            "verdict": p.verdict,
        }
        for p in profile.points
    ]
    return Table(title, rows, ("t0, 95 %", "protocol", "experiments 1, 2", "λ, 95 %"))


def _law_cells(p: MeasuredSize) -> dict[str, str]:
    t0_digits = digits(uncertainty(p.t0_s, p.t0_interval_s))
    lam_digits = digits(uncertainty(p.lam, p.lam_interval))
    return {
        "t0": formatting.time(p.t0_s, t0_digits),
        "t0, 95 %": _times_between(p.t0_interval_s, p.t0_s),
        "λ": f"{p.lam:.{lam_digits}g}" if lam_digits else "unknown",
        "λ, 95 %": "-" if p.lam_interval is None else "{:.3g} … {:.3g}".format(*p.lam_interval),
    }


def levels_table(profile: Profile) -> Table:
    """The table, by level, of non-blocking sends: t0, λ, and how long a group's port is busy.

    It has no rows for a profile without inner levels.
    """
    names = [level.name for level in profile.levels]
    rows = []
    measured = [*(level.points for level in profile.levels), profile.points]
    left = [(), *(level.port for level in profile.levels)]
    for number, (points, times) in enumerate(zip(measured, left, strict=True), 1):
        ports = {time.nbytes: time for time in times}
        rows += [
            {
                "messages": crossing(names, number),
                "size": formatting.size(p.nbytes),
                **_law_cells(p),
                **_port_cells(ports.get(p.nbytes)),
                "verdict": p.verdict,
            }
            for p in points
            if names and p.mode == "nonblocking"
        ]
    return Table("Levels", rows, ("λ, 95 %", "t0, 95 %", "port, 95 %", "verdict"))


def _port_cells(time: PortTime | None) -> dict[str, str]:
    """Cells: how long a message keeps its group's port busy, and how long its sender, if known."""
    if time is None:
        return {"port": "-", "port, 95 %": "-", "its rank": "-"}
    return {
        "port": formatting.time(time.port_s) if time.port_s else "not noticed",
        "port, 95 %": _times_between(time.port_interval_s, time.port_s),
        "its rank": optional_time(time.rank_s),
    }


def experiments_table(profile: Profile) -> Table:
    """The raw medians of the λ experiments: a row for every size, mode and experiment."""
    ks = sorted({m.k for m in profile.medians})
    cells: dict[tuple[bool, int, Mode, int], dict[int, str]] = {}
    for m in profile.medians:
        between = f" [{_times_between(m.interval_s, m.median_s)}]" if m.interval_s else ""
        row = cells.setdefault((m.mode == "blocking", m.nbytes, m.mode, m.experiment), {})
        row[m.k] = f"{formatting.time(m.median_s)}{between}, {m.repetitions}"
    rows = [
        {"size": formatting.size(nbytes), "sends": mode, "experiment": str(experiment)}
        | {f"k = {k}": by_k.get(k, "-") for k in ks}
        for (_, nbytes, mode, experiment), by_k in sorted(cells.items())
    ]
    return Table("", rows)


def _times_between(ends_s: tuple[float, float] | None, like_s: float) -> str:
    return "-" if ends_s is None else formatting.time_between(*ends_s, like_s)


def hockney_table(profile: Profile) -> Table:
    """The table of α + nβ, the time until n bytes are received: one row for every protocol."""
    rows = [
        {
            "sizes": f"{formatting.size(line.first)} … {formatting.size(line.last)}",
            "α": formatting.time(line.alpha_s),
            "β, per byte": f"{line.beta_s * 1e9:.4g} ns",
            "rate": f"{1e-6 / line.beta_s:.4g} MB/s" if line.beta_s > 0 else "-",
        }
        for line in profile.machine_for("nonblocking").lines()
    ]
    return Table("The time until it is received, as α + nβ", rows)


def reading_table(profile: Profile) -> Table:
    """The table of reads of shared memory: a row for every size, none if unmeasured."""
    most = max((time.readers for time in profile.measurements.reading), default=0)
    rows = [
        {
            "size": formatting.size(time.nbytes),
            "a read": formatting.time(time.read_s),
        }
        | {
            f"a message to {ranks}": formatting.time(time_s) if time.readers else "-"
            for ranks, time_s in ((1, time.by_one_s), (most, time.by_all_s))
            if most
        }
        for time in profile.measurements.reading
    ]
    return Table("Reading what a rank of the node has published", rows)


def combining_table(profile: Profile) -> Table:
    """The table of times of combining: one row for every operator, type and length."""
    rows = [
        {
            "operator": t.op,
            "type": t.dtype,
            "size": formatting.size(t.nbytes),
            "combining": formatting.time(t.median_s),
            "combining, 95 %": formatting.time_between(*t.interval_s, t.median_s),
            "per byte (γ)": f"{t.median_s / t.nbytes * 1e9:.3f} ns",
        }
        for t in profile.combining
    ]
    return Table("Combining, on the slowest rank", rows)


def race_table(outcome: Outcome, title: str = "") -> Table:
    """The table of a race's competitors in all forms of the call, the fastest first."""
    race, library = outcome.everything, LIBRARY
    serves: dict[str, list[str]] = {}
    for decision in outcome.decisions:
        serves.setdefault(decision.race.winner, []).append(decision.form)
    rows = []
    for label, median in sorted(race.medians.items(), key=lambda entry: entry[1].middle):
        gain = race.against(library, label)
        rows.append(
            {
                "competitor": label.removeprefix(f"{race.collective}/"),
                "median": formatting.time(median.middle),
                "median, 95 %": formatting.time_between(median.low, median.high, median.middle),
                "predicted": optional_time(race.predicted_s.get(label)),
                f"speed-up over {library}": f"{gain.middle:.2f}",
                "speed-up, 95 %": _interval(gain),
                "used for": " and ".join(serves.get(label, ["-"])),
            }
        )
    return Table(title, rows, ("speed-up, 95 %", "predicted", "median, 95 %", "used for"))


def race_summary(outcome: Outcome) -> list[str]:
    """Lines on the race: the verdict for each form of the call, the samples, the checks."""
    lines = []
    for number, d in enumerate(outcome.decisions):
        compared = f" ({_algorithm(d)} compared with {d.race.library})" if d.raced else ""
        lines.append(f"{'' if number else 'verdict':<9}{d.form} calls: {_verdict(d)}{compared}")
    count = len(next(iter(outcome.race.samples.values())))
    return [
        *lines,
        f"samples  {formatting.count(count, 'repetition')} of each, shuffled and interleaved;"
        f" {outcome.race.dropped} dropped because ranks started more than"
        f" {formatting.time(outcome.race.apart_s)} apart",
        "checked  every byte on every rank, before and after",
    ]


def tuning_document(tuning: Tuning) -> dict[str, Any]:
    """A tuning session as JSON."""
    return {
        "format": TUNING,
        "version": VERSION,
        "profile": tuning.profile.to_document(),
        "races": [race_document(outcome) for outcome in tuning.outcomes],
        "unraced": [
            {**attributes(task.problem, "collective", "nbytes"), "predicted_speedup": gain}
            for task, gain in tuning.unraced
        ],
    }


def race_document(outcome: Outcome) -> dict[str, Any]:
    """A race as JSON: what was decided for each form of the call, and everything behind it.

    Times are in seconds.  A top-level field that "forms" also hold is about persistent calls.
    """
    race, task = outcome.race, outcome.task
    forms = {decision.form: _decision_document(decision) for decision in outcome.decisions}
    combines = task.problem.kind.combines
    elements = {"op": task.op, "dtype": task.dtype} if combines else {}
    return {
        **attributes(race, "collective", "ranks", "nbytes", "root"),
        **elements,
        **sources_document(outcome.plan.problem),
        **attributes(outcome, "t0_s", "lam"),
        "lower_bound_s": outcome.plan.lower_bound_s,
        "spent_s": {where: seconds(time) for where, time in outcome.spent.items()},
        **forms["persistent"],
        "forms": forms,
        "dropped": race.dropped,
        "starts_apart_s": race.apart_s,
        "load": race.load._asdict(),
        "competitors": [
            {
                "label": label,
                "median_s": median.middle,
                "interval_s": [median.low, median.high],
                "predicted_s": race.predicted_s.get(label),
                "samples_s": list(outcome.everything.samples[label]),
            }
            for label, median in outcome.everything.medians.items()
        ],
    }


def _decision_document(decision: RaceVerdict) -> dict[str, Any]:
    """A decision as JSON: the two competitors, their medians and ratio, and the verdict."""
    gain = decision.speedup
    return {
        "call": call(decision),
        "algorithm": decision.ours,
        "predicted_s": decision.predicted_s,
        "ours_s": decision.measured.middle,
        "ours_interval_s": decision.measured[1:],
        "library": decision.race.library,
        "library_s": decision.library.middle,
        "library_interval_s": decision.library[1:],
        "ratio": 1 / gain.middle,
        "ratio_interval": [1 / gain.high, 1 / gain.low if gain.low else None],
        "speedup": gain.middle,
        "speedup_interval": [gain.low, gain.high if isfinite(gain.high) else None],
        "winner": decision.race.library if decision.used == "library" else decision.ours,
        "decision": decision.used,
        "verdict": _verdict(decision),
    }


def _interval(ratio: Interval) -> str:
    """A confidence interval of a ratio as text: 1.40 … 1.60."""
    high = f"{ratio.high:.2f}" if isfinite(ratio.high) else "∞"
    return f"{ratio.low:.2f} … {high}"
