"""The measured machine: the postal model with t0 and λ as functions of the message size."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from statistics import linear_regression
from typing import NamedTuple, TypeAlias

from collwise.errors import InvalidArgument, shown
from collwise.model.exact import Number, exact, not_negative_times, positive_time, rounded_latency
from collwise.model.kept_hash import KeptHash
from collwise.model.machine import Cost, Machine, checked_nbytes
from collwise.system.formatting import count
from collwise.system.integers import checked_integer

PICOSECOND = Fraction(1, 10**12)
TimesBySize: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Pairs (bytes, exact seconds), ascending, with straight lines between them (`interpolated`)."""


class Point(NamedTuple):
    """A measured message size in bytes, with t0 and λ·t0 in exact seconds."""

    nbytes: int
    gap: Fraction
    latency: Fraction


class CostLine(NamedTuple):
    """The line α + nβ for messages of `first` to `last` bytes, in seconds and seconds per byte."""

    first: int
    last: int
    alpha_s: float
    beta_s: float


@dataclass(frozen=True)
class Measured(KeptHash, Machine):
    """The postal model with t0 and λ as functions of the size, piecewise by protocol.

    segments: one tuple of points per protocol (eager, rendezvous, …), with ascending sizes and
    times that never fall. t0 and λ·t0 are straight lines between the points of a segment, constant
    with one point.  The last line of a segment goes on up to the first point of the next
    segment; that of the last segment has no end.  Below the first point t0 and λ·t0 are constant.
    combining: ascending (bytes, exact seconds) for combining two vectors, with straight lines
    between them; () if it is free.  Build a machine with `measured`.
    """

    segments: tuple[tuple[Point, ...], ...]
    combining: tuple[tuple[int, Fraction], ...] = ()
    kind = "measured"
    law = "postal"

    def __post_init__(self) -> None:
        points = [p for segment in self.segments for p in segment]
        if not points or any(a.nbytes >= b.nbytes for a, b in pairwise(points)):
            seen = f"sizes {[p.nbytes for p in points]}"
            raise InvalidArgument("a measured machine", seen, "give sizes in ascending order")

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(p.nbytes for segment in self.segments for p in segment)

    def combining_sizes(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(nbytes for nbytes, _ in self.combining)

    def message(self, nbytes: int) -> Cost:  # noqa: D102
        return _measured_cost(self, checked_nbytes(nbytes))

    def lines(self) -> tuple[CostLine, ...]:
        """Hockney's α + nβ for each protocol: the straight line through its times λ·t0.

        In Hockney's model a message keeps both ports busy until it is received.  So α + nβ is the
        postal model's λ(n)·t0(n), and Hockney's λ is 1.  Each line is fitted by least squares; for
        a single point β is 0.
        """
        lines = []
        for segment in self.segments:
            first, last = segment[0].nbytes, segment[-1].nbytes
            x = [float(p.nbytes) for p in segment]
            y = [float(p.latency) for p in segment]
            slope, start = linear_regression(x, y) if len(segment) > 1 else (0.0, y[0])
            lines.append(CostLine(first, last, start, slope))
        return tuple(lines)

    def combine(self, nbytes: int) -> Fraction | None:  # noqa: D102
        if not self.combining:
            return None
        return _measured_combine(self, checked_nbytes(nbytes))

    def _slower(self, seconds: Fraction) -> "Measured":
        longer = (
            tuple(Point(x, gap + seconds, latency + seconds) for x, gap, latency in points)
            for points in self.segments
        )
        return replace(self, segments=tuple(longer))

    def with_combining(self, times: Iterable[tuple[int, Number]]) -> "Measured":
        """A machine like this one with other times for combining: ascending (bytes, seconds).

        Times are rounded to picoseconds; one below an earlier one is raised to the largest before.
        """
        points, most = [], Fraction(0)
        for nbytes, time_s in times:
            (time,) = not_negative_times(time_s=time_s)
            most = max(most, _picoseconds(time))
            points.append((nbytes, most))
        return replace(self, combining=tuple(points))

    def planning_lam(self, nbytes: int) -> Fraction:
        """The measured λ, rounded to the nearest fraction with a denominator of at most 32."""
        return rounded_latency(self.message(nbytes).lam)

    def describe(self) -> str:  # noqa: D102
        first, last = self.segments[0][0], self.segments[-1][-1]
        return (
            f"measured from {first.nbytes} to {last.nbytes} bytes in"
            f" {count(len(self.segments), 'protocol segment')}"
        )


def measured(segments: Iterable[Iterable[tuple[int, Number, Number]]]) -> Measured:
    """A measured machine from rows (bytes, t0 in seconds, λ), one group of rows per protocol.

    A λ below 1, which noise and buffering can produce, is replaced by 1.  Times that fall with the
    size are raised to the largest time before them.  Times are rounded to the picosecond, which
    keeps exact arithmetic fast.  Raises InvalidArgument for a t0 <= 0 or sizes out of order.
    """
    gap = latency = Fraction(0)
    pieces = []
    for segment in segments:
        points = []
        for nbytes, t0_s, lam in segment:
            t0 = positive_time(t0_s, "t0_s")
            gap = max(gap, _picoseconds(t0))
            latency = max(latency, gap, _picoseconds(t0 * exact(lam, "lam")))
            points.append(Point(nbytes, gap, latency))
        pieces.append(tuple(points))
    return Measured(tuple(pieces))


@lru_cache(maxsize=4096)
def _measured_cost(machine: Measured, nbytes: int) -> Cost:
    segments = (s for s in reversed(machine.segments) if s[0].nbytes <= nbytes)
    gap, latency = interpolated(next(segments, machine.segments[0]), nbytes)
    return Cost(gap, max(gap, latency))  # beyond the points the two lines may cross


@lru_cache(maxsize=4096)
def _measured_combine(machine: Measured, nbytes: int) -> Fraction:
    return interpolated(machine.combining, nbytes)[0]


def interpolated(
    points: Sequence[tuple[int, *tuple[Fraction, ...]]], nbytes: int
) -> list[Fraction]:
    """The values at size nbytes on the straight lines through points of (bytes, value, …).

    Values are constant below the first point, or with one point; beyond the last, the line goes on.
    """
    if nbytes <= points[0][0] or len(points) == 1:
        return list(points[0][1:])
    index = min(bisect_left(points, nbytes, key=itemgetter(0)), len(points) - 1)
    (low, *before), (high, *after) = points[index - 1], points[index]
    share = Fraction(nbytes - low, high - low)
    return [start + share * (end - start) for start, end in zip(before, after, strict=True)]


def _picoseconds(time: Fraction) -> Fraction:
    return max(round(time / PICOSECOND), 1) * PICOSECOND


def times_by_size(times: Number | Iterable[tuple[int, Number]], asked: str, of: str) -> TimesBySize:
    """Return times as pairs (bytes, exact seconds), from seconds or from pairs; () if all are 0.

    asked: what the times are for, in errors.   of: what takes the times, such as "port", in errors.
    Raises InvalidArgument for sizes that do not ascend, and for times that fall or are below 0.
    """
    try:
        if isinstance(times, int | float | str | Fraction):
            times = [(0, times)]
        rows = [(nbytes, time) for nbytes, time in times]
    except (TypeError, ValueError):
        remedy = "give seconds, or pairs of bytes and seconds"
        raise InvalidArgument(asked, f"a {of} = {shown(times)}", remedy) from None
    points = []
    for nbytes, time_s in rows:
        (time,) = not_negative_times(**{of: time_s})
        points.append((checked_integer(nbytes, asked, f"the bytes of a {of}'s time", 0), time))
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(points)):
        seen = f"a {of}'s times at {[n for n, _ in points]} bytes"
        raise InvalidArgument(asked, seen, "give ascending sizes, and times that never fall")
    return tuple(points) if any(time for _, time in points) else ()
