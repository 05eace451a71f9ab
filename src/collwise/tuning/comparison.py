"""Two records side by side: which times, and which λ, have changed, and how surely."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, inf, log
from typing import NamedTuple

from collwise.errors import InvalidArgument
from collwise.measure.race import BLOCKING, LIBRARIES
from collwise.measure.statistics import Interval, unpaired_ratio_interval
from collwise.profiles.profile import Profile
from collwise.profiles.records import Bounds, MeasuredSize
from collwise.system import formatting
from collwise.tuning.race_records import RaceRecord, Record


class Quantity(NamedTuple):
    """One measured value, of which less is better.

    seconds: whether it is a time.   interval: at 95 %; None if it is not known.   samples: from
    which it is the median; empty if only the interval is known.
    """

    value: float
    interval: Bounds | None
    samples: Sequence[float] = ()
    seconds: bool = True


@dataclass(frozen=True)
class ComparedCell:
    """One quantity in both records.

    what: such as "broadcast of 512 B on 4 ranks".   quantity: such as "library".   ratio: the
    second record's value over the first one's.
    """

    what: str
    quantity: str
    first: Quantity
    second: Quantity
    ratio: Interval

    @property
    def verdict(self) -> str:
        """Whether the second record is significantly worse or better than the first."""
        if self.ratio.low > 1:
            return "worse"
        return "better" if self.ratio.high < 1 else "no clear difference"

    def fails(self, above: float | None) -> bool:
        """Whether it is significantly worse, and by more than this ratio; None: nothing fails."""
        return above is not None and self.verdict == "worse" and self.ratio.middle > above


@dataclass(frozen=True)
class Comparison:
    """What two records have in common, the worst first, and how many cells only one of them has.

    differences: of the machines, a line each.
    """

    cells: tuple[ComparedCell, ...]
    only_first: int
    only_second: int
    differences: tuple[str, ...]


def compare(first: Record, second: Record) -> Comparison:
    """Compare two records cell by cell.  Raises InvalidArgument if they have nothing in common."""
    ones, others = (dict(_cells(record)) for record in (first, second))
    cells = [
        ComparedCell(*key, one, others[key], _ratio(one, others[key]))
        for key, one in ones.items()
        if key in others
    ]
    if not cells:
        raise InvalidArgument(
            f"compare {first.path} and {second.path}",
            f"they have nothing in common: {_contents(first, ones)}, {_contents(second, others)}",
            "compare records of the same kind, with the same collectives, sizes and ranks",
        )
    cells.sort(key=lambda cell: (cell.verdict != "worse", -cell.ratio.middle))
    here, there = first.fingerprint, second.fingerprint
    differences = here.differences(there)
    return Comparison(
        tuple(cells), len(ones) - len(cells), len(others) - len(cells), tuple(differences)
    )


def _contents(record: Record, cells: Mapping[tuple[str, str], Quantity]) -> str:
    example = next((f", such as {what}" for what, _ in cells), "")
    return f"{record.path} is {record.kind} of {formatting.count(len(cells), 'value')}{example}"


def _cells(record: Record) -> Iterator[tuple[tuple[str, str], Quantity]]:
    for race in record.races:
        yield from _race_cells(race)
    if record.profile is not None:
        yield from _profile_cells(record.profile)


def _race_cells(race: RaceRecord) -> Iterator[tuple[tuple[str, str], Quantity]]:
    """The library's two forms, and the best of ours for each form of the call."""
    labels = {label: label for label in LIBRARIES}
    for form, decided in race.forms.items():
        mark = BLOCKING if form == "blocking" else ""
        labels.setdefault(decided.algorithm + mark, f"ours, {form}")
    for one in race.competitors:
        if one.label in labels:
            quantity = Quantity(one.median_s, one.interval_s, one.samples_s)
            yield (_what(race), labels[one.label]), quantity


def _what(race: RaceRecord) -> str:
    text = f"{race.collective} of {formatting.size(race.nbytes)} on {race.ranks} ranks"
    if race.sources:
        text += f" from {len(race.sources)}"
    return (
        text
        + f", root {race.root}" * bool(race.root)
        + f", {race.op} of {race.dtype}" * (race.op is not None)
    )


def _profile_cells(profile: Profile) -> Iterator[tuple[tuple[str, str], Quantity]]:
    """t0 and λ of every size, level and placement, combining, and races by their ratios."""
    for measured in profile.every:
        where = f"on {measured.provenance.ranks_per_node or 'any'} ranks"
        levels = [(f", in a {level.name}", level.points) for level in measured.levels]
        for level, points in [("", measured.points), *levels]:
            for point in points:
                yield from _point_cells(point, where + level)
        for time in measured.combining:
            what = f"combining {formatting.size(time.nbytes)} {where}"
            quantity = Quantity(time.median_s, time.interval_s)
            yield (what, f"{time.op} of {time.dtype}"), quantity
    for race in profile.race_results:
        what = f"race of {race.collective} of {formatting.size(race.nbytes)} on {race.ranks} ranks"
        what += f" ({race.ranks_per_node or 'any'})" + f" from {race.sources}" * bool(race.sources)
        if race.ours_s and race.library_s and race.speedup_low:
            interval = 1 / race.speedup_high, 1 / race.speedup_low
            ratio = Quantity(race.ours_s / race.library_s, interval, seconds=False)
            yield (what + f", root {race.root}" * bool(race.root), f"ratio, {race.form}"), ratio


def _point_cells(point: MeasuredSize, where: str) -> Iterator[tuple[tuple[str, str], Quantity]]:
    what = f"{formatting.size(point.nbytes)} {where}, {point.mode}"
    yield (what, "t0"), Quantity(point.t0_s, point.t0_interval_s)
    yield (what, "λ"), Quantity(point.lam, point.lam_interval, seconds=False)


def _ratio(first: Quantity, second: Quantity) -> Interval:
    """The second value over the first; where samples are known, by bootstrapping both."""
    if first.samples and second.samples:
        return unpaired_ratio_interval(second.samples, first.samples)
    middle = second.value / first.value if first.value else inf
    width = hypot(_width(first), _width(second))
    return Interval(middle, middle * exp(-width), middle * exp(width) if width < inf else inf)


def _width(quantity: Quantity) -> float:
    """Half of the interval's width on a logarithmic scale; infinite if it is not known."""
    low, high = quantity.interval or (0, 0)
    return log(high / low) / 2 if low > 0 else inf
