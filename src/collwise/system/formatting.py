"""Numbers for people, with a unit and mostly three significant digits, without an exponent."""

import re
from collections.abc import Collection
from fractions import Fraction
from math import floor, isfinite, log10
from typing import NamedTuple, TypeAlias

Time: TypeAlias = float | Fraction

T0 = "t0"
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


class Scale(NamedTuple):
    """A unit of time for texts and axes, its length in seconds, and how many decimals to show."""

    unit: str
    length_s: Time
    places: int = 0

    @property
    def name(self) -> str:
        """The unit's name on an axis, such as "ms", "in t0 = 2 µs" or, if t0 is 1 s, "in t0"."""
        if self.unit == T0:
            return "in t0" if self.length_s == 1 else f"in t0 = {time(self.length_s)}"
        return self.unit

    def value(self, time_s: Time) -> float:
        """The time in this unit, for axes."""
        return float(time_s / self.length_s)

    def text(self, time_s: Time) -> str:
        """The time in this unit as text, without trailing zeros and without the unit."""
        text = f"{self.value(time_s):.{self.places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    def telling_apart(self, times_s: Collection[Time]) -> "Scale":
        """The scale with enough decimals, 4 at most, to give different times different texts."""
        scale, number = self, len(set(times_s))
        while scale.places < 4 and len(set(map(scale.text, times_s))) < number:
            scale = scale._replace(places=scale.places + 1)
        return scale

    def text_with_unit(self, time_s: Time) -> str:
        """The time in this unit as text, with the unit."""
        return f"{self.text(time_s)} {self.unit}"


def scale_for(longest_s: Time, t0: Time | None = None) -> Scale:
    """The unit for times up to `longest_s` seconds: t0 if its seconds are given, else s, ms, …."""
    unit, length = (T0, t0) if t0 else _unit(abs(float(longest_s)))
    return Scale(unit, length, max(_places(float(longest_s / length)), 1))


def significant(x: float, digits: int = 3) -> str:
    """A number as text without an exponent: 0.0123, 1.20, 35.0, 1250.

    digits: significant digits, 0 to 3; 1270 is 1270 with 3, 1300 with 2, "unknown" with 0.
    """
    if not digits or x != x:
        return "unknown"
    if not isfinite(x):
        return "∞" if x > 0 else "−∞"
    if digits < 3:
        x = float(f"{x:.{digits - 1}e}")
    return f"{x:.{max(_places(x) + digits - 3, 0)}f}".replace("-", "−")


def time(seconds: Time, digits: int = 3) -> str:
    """A time with its unit: 830 ns, 1.25 ms.   digits: significant digits; 0: "unknown"."""
    seconds = float(seconds)
    if not seconds:
        return "0 s"
    if not isfinite(seconds):
        return significant(seconds)
    unit, length = _unit(abs(seconds))
    return f"{significant(seconds / length, digits)} {unit}" if digits else "unknown"


def rounded(text: str, digits: int) -> str:
    """The text with times, and percentages before "slower", rounded to `digits` digits, 0 to 3.

    3 leaves the text as it is; 0 means unknown.  Times are padded to their former width.

    >>> rounded("after 7.25 µs", 1)
    'after    7 µs'
    >>> rounded("18% slower", 1), rounded("18% slower", 0)
    ('20% slower', 'slower, if at all')
    """

    def times(match: re.Match[str]) -> str:
        shown = significant(float(match[1]), digits) + f" {match[2]}" * bool(digits)
        return shown.rjust(len(match[0]))

    def slower(match: re.Match[str]) -> str:
        known = f"{significant(float(match[1]), digits)}% slower"
        return known if digits else "slower, if at all"

    if digits == 3:
        return text
    text = re.sub(r"(\d+(?:\.\d+)?) ([mµn]?s)\b", times, text)
    return re.sub(r"(?:less than )?(\d+)% slower", slower, text)


def chosen_time(seconds: Time) -> str:
    """A time that somebody chose, with up to six significant digits: 1.7 ms, 87.5 ns."""
    unit, length = _unit(abs(float(seconds))) if seconds else UNITS[0]
    return f"{float(seconds) / length:g} {unit}"


def time_between(low: float, high: float, like: float) -> str:
    """Two times as numbers in the unit in which `like` is shown: "1.21 … 1.30" for 1.25 ms."""
    _, length = _unit(abs(like))
    return f"{significant(low / length)} … {significant(high / length)}"


def size(nbytes: int) -> str:
    """A message size: 512 B, 4 KiB, 1 MiB; sizes that are no whole KiB as exact bytes."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes and nbytes % length == 0:
            return f"{nbytes // length:,} {unit}"
    return f"{nbytes:,} B"


def rate(bits: float) -> str:
    """A rate in bits per second, with up to six significant digits: 64 kbit/s, 10 Mbit/s."""
    for prefix, length in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits >= length:
            return f"{bits / length:g} {prefix}bit/s"
    return f"{bits:g} bit/s"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 size, 3 sizes."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _unit(seconds: float) -> tuple[str, float]:
    """The unit in which a time reads well, and the unit's seconds; ms for 999.7 µs."""
    for unit, length in UNITS:
        if seconds >= 0.9995 * length:
            return unit, length
    return UNITS[-1]


def _places(x: float) -> int:
    """The number of decimals that shows three significant digits of `x`."""
    if not x:
        return 0
    places = 2 - floor(log10(abs(x)))
    if round(abs(x), places) >= 10 ** (3 - places):  # 9.996 is 10.0
        places -= 1
    return max(places, 0)
