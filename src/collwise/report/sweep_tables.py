"""Sweeps: the table that grows race by race, its CSV, and its lines."""

import csv
from collections.abc import Sequence
from io import StringIO

from collwise.profiles.records import Form
from collwise.system import formatting
from collwise.tuning.race_records import RaceRecord, Sweep

COLUMNS = {
    "collective": 10,
    "ranks": 5,
    "size": 9,
    "repetitions": 11,
    "library": 8,
    "ours": 8,
    "ours/library": 12,
    "95 %": 13,
    "MB/s": 7,
    "bus MB/s": 8,
    "algorithm": 1,
}
"""Titles, and the least widths in characters that keep rows below each other."""
CSV_COLUMNS = (
    "collective", "ranks", "nbytes", "repetitions", "library_s", "ours_s", "ratio", "low", "high",
    "algorithm",
)  # fmt: skip
NAMED = 5
"""The most races that a line names."""


def sweep_row(race: RaceRecord, form: Form) -> dict[str, str]:
    """The row of one race, for one form of the call.  Bandwidths follow from the time in "ours"."""
    decided = race.forms[form]
    low, high = decided.ratio_interval
    rates = (formatting.significant(rate / 1e6) for rate in race.bandwidths(decided.ours_s))
    cells = (
        race.collective,
        str(race.ranks),
        formatting.size(race.nbytes),
        str(race.repetitions),
        formatting.time(decided.library_s),
        formatting.time(decided.ours_s),
        f"{decided.ratio:.2f}",
        f"{low:.2f} … " + ("∞" if high is None else f"{high:.2f}"),
        *rates,
        decided.algorithm.removeprefix(f"{race.collective}/"),
    )
    return dict(zip(COLUMNS, cells, strict=True))


def sweep_lines(sweep: Sweep, form: Form) -> list[str]:
    """Lines: the verdict on the sweep, and up to NAMED races less certain than required."""
    lines = [f"verdict  {sweep.verdict(form)}"]
    if wide := sweep.uncertain(form):
        named = [f"{race} ± {race.forms[form].uncertainty:.0%}" for race in wide[:NAMED]]
        more = f" and {len(wide) - NAMED} more" * (len(wide) > NAMED)
        lines.append(f"wide     {'; '.join(named)}{more}: give more --budget and --repetitions")
    return lines


def sweep_csv(races: Sequence[RaceRecord], form: Form) -> str:
    """The sweep as CSV: a line for each race of this form, after a line of titles.

    Times are in seconds; ratio is ours_s / library_s, low and high the ends of its 95 % interval.
    """
    written = StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for race in (race for race in races if form in race.forms):
        best = race.forms[form]
        low, high = best.ratio_interval
        times = best.library_s, best.ours_s, best.ratio, low, "inf" if high is None else high
        asked = race.collective, race.ranks, race.nbytes, race.repetitions
        lines.writerow((*asked, *times, best.algorithm))
    return written.getvalue()
