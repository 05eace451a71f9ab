"""Compares two records: which times and λ have changed, and how certain that is."""

from collections.abc import Iterator
from math import exp, hypot, inf, isfinite, log
from typing import NamedTuple

import msgspec

from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARIES
from collwise.measure.statistics import FEWEST
from collwise.profiles.profile import Profile
from collwise.profiles.records import Bounds, RaceResult
from collwise.system import formatting
from collwise.tuning.race_records import RaceRecord, Record


class Quantity(NamedTuple):
    """A measured value; less is better.

    what: text such as "broadcast of 512 B on 4 ranks".   quantity: such as "library, blocking".
    interval: at 95 %; None if unknown.   unit: "s", or "" for λ and ratios.
    """

    what: str
    quantity: str
    value: float
    interval: Bounds | None
    unit: str = "s"


class ComparedCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One quantity in both records.

    a, b: the quantity in the two records.   ratio: b / a.   interval: the ratio's 95 % interval;
    None if unknown.   verdict: "worse" or "better" if b is significantly so compared with a, else
    "no clear difference".   fails: whether b is worse by more than --fail-above allows.
    """

    what: str
    value: str
    unit: str
    a: float
    b: float
    ratio: float
    interval: Bounds | None
    verdict: str
    fails: bool


class Comparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The quantities that two records have in common, the worst first; also the JSON document.

    a, b: the files.   fail_above: the ratio beyond which a worse value fails; None: no value fails.
    only_in_a, only_in_b: how many values only this record has.   machines: one line for each
    difference of the machines.
    """

    format: str = "collwise comparison"
    version: int = 1
    a: str
    b: str
    fail_above: float | None
    failed: bool
    cells: tuple[ComparedCell, ...]
    only_in_a: int
    only_in_b: int
    machines: tuple[str, ...]


def compare(first: Record, second: Record, fail_above: float | None = None) -> Comparison:
    """Compare two records value by value.

    fail_above: a significantly worse value fails if its ratio exceeds this; None: no value fails.
    Raises InvalidArgument if the records have nothing in common.
    """
    ones, others = ({one[:2]: one for one in _quantities(record)} for record in (first, second))
    cells = [_compared(ones[key], others[key], fail_above) for key in ones if key in others]
    if not cells:
        contents = [
            f"{record.path} is {record.kind} of {formatting.count(len(found), 'value')}"
            + next((f", such as {what}" for what, _ in found), "")
            for record, found in ((first, ones), (second, others))
        ]
        raise InvalidArgument(
            f"compare {first.path} and {second.path}",
            f"they have nothing in common: {', '.join(contents)}",
            "compare records of the same kind, with the same collectives, sizes and ranks",
        )
    differences = first.fingerprint.differences(second.fingerprint)
    return Comparison(
        a=str(first.path),
        b=str(second.path),
        fail_above=fail_above,
        failed=any(cell.fails for cell in cells),
        cells=tuple(sorted(cells, key=lambda cell: (cell.verdict != "worse", -cell.ratio))),
        only_in_a=len(ones) - len(cells),
        only_in_b=len(others) - len(cells),
        machines=tuple(d.replace("there", "in A").replace("here", "in B") for d in differences),
    )


def _compared(first: Quantity, second: Quantity, fail_above: float | None) -> ComparedCell:
    """Compare two values.  On a logarithmic scale, the ratio's interval has the width √(w₁² + w₂²)
    if the values' intervals have the widths w₁ and w₂.
    """
    ratio = second.value / first.value if first.value else inf
    width = hypot(*(_width(quantity.interval) for quantity in (first, second)))
    interval = (ratio * exp(-width), ratio * exp(width)) if isfinite(width) else None
    low, high = interval or (0.0, inf)
    verdict = "worse" if low > 1 else "better" if high < 1 else "no clear difference"
    fails = fail_above is not None and verdict == "worse" and ratio > fail_above
    what, value, a, _, unit = first
    return ComparedCell(what, value, unit, a, second.value, ratio, interval, verdict, fails)


def _width(interval: Bounds | None) -> float:
    """Half of an interval's width on a logarithmic scale; infinite if it is not known."""
    low, high = interval or (0.0, 0.0)
    return log(high / low) / 2 if low > 0 else inf


def _quantities(record: Record) -> Iterator[Quantity]:
    for race in record.races:
        yield from _of_race(race)
    if record.profile is not None:
        yield from _of_profile(record.profile)
        for result in record.profile.race_results:
            if result.ours_s and result.library_s and result.speedup_low:
                yield _of_result(result)


def _of_race(race: RaceRecord) -> Iterator[Quantity]:
    """For each form of the call, the library's time and the time of our best schedule."""
    known = race.repetitions >= FEWEST
    for form, best in race.forms.items():
        interval = best.library_interval_s if known else None
        yield Quantity(str(race), f"library, {form}", best.library_s, interval)
        if best.algorithm not in LIBRARIES:
            interval = best.ours_interval_s if known else None
            yield Quantity(str(race), f"ours, {form}", best.ours_s, interval)


def _of_profile(profile: Profile) -> Iterator[Quantity]:
    """The measured t0 and λ of every size, level and placement."""
    for measured in profile.every:
        where = f"on {measured.provenance.ranks_per_node or 'any'} ranks"
        levels = [(f"{where}, in a {level.name}", level.points) for level in measured.levels]
        for place, points in [(where, measured.points), *levels]:
            for point in points:
                what = f"{formatting.size(point.nbytes)} {place}, {point.mode}"
                yield Quantity(what, "t0", point.t0_s, point.t0_interval_s)
                yield Quantity(what, "λ", point.lam, point.lam_interval, "")


def _of_result(race: RaceResult) -> Quantity:
    """The ratio of a race in a profile: our time over the library's."""
    what = f"race of {race.collective} of {formatting.size(race.nbytes)} on {race.ranks} ranks"
    what += f" ({race.ranks_per_node or 'any'})" + f" from {race.sources}" * bool(race.sources)
    what += f", root {race.root}" * bool(race.root)
    interval = 1 / race.speedup_high, 1 / race.speedup_low
    return Quantity(what, f"ratio, {race.form}", race.ours_s / race.library_s, interval, "")
