"""Exact parsers of what people type: numbers, sizes, times and rates.

    parse_number("9/5")       Fraction(9, 5)
    parse_size("64k")         65536 bytes
    parse_time("1.7ms")       Fraction(17, 10000) seconds
    parse_rate("10 Mbit/s")   Fraction(10_000_000) bits per second

Each raises InvalidArgument for text that it cannot read.  `formatting` makes text of values.
"""

import re
from fractions import Fraction
from typing import TypeAlias

from collwise.errors import InvalidArgument, shown

Number: TypeAlias = int | float | str | Fraction

LARGEST_SIZE = 1 << 50
"""The most bytes that are accepted, a pebibyte: more overflows the columns of schedules."""
RANGE = Fraction(10) ** 99
"""Numbers beyond this (or below its inverse) overflow when they become floats."""

_SIZE = re.compile(r"([0-9]+)\s*(?:([kmg])(?:i?b)?|b)?")
_TIME = re.compile(r"\s*(.*[\d.])\s*(m|milli|u|µ|μ|micro|n|nano)?(?:s|sec|seconds?)\s*")
_RATE = re.compile(
    r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kmgt]?)(i?)(b|bits?|bps|bytes?)(?:/s|/sec|/second)?\s*",
    re.IGNORECASE,
)
_HUGE = re.compile(r"e[+-]?0*\d{4}", re.IGNORECASE)
"""Exponents of four digits and more: no float has one, and their digits would fill the memory."""
_LARGE = re.compile(r"e[+-]?0*[1-9]\d{2}", re.IGNORECASE)

_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PARTS = {"": 1, "m": 10**3, "u": 10**6, "µ": 10**6, "μ": 10**6, "n": 10**9}
"""How many of a unit make a second; the micro sign and the Greek letter are two characters."""


def exact(x: Number, what: str = "a number") -> Fraction:
    """The exact value of a number: a float by its shortest decimal (0.1 is 1/10), text as written.

    what: names the number in errors.
    Raises InvalidArgument for non-numbers, NaN, ±inf, and int or str above floats.
    """
    if isinstance(x, Fraction):
        return x
    try:
        text = str(x)  # for NumPy's floats as well, whose repr is a call
        if _HUGE.search(text):
            raise ValueError("an exponent that no float has")
        value = Fraction(text)
        float(value)
        return value
    except (OverflowError, ValueError, TypeError, ZeroDivisionError):
        seen = shown(x) if isinstance(x, int) else repr(x)
        raise InvalidArgument(what, seen, "give a finite number, such as 9/5 or 1.8") from None


def parse_number(text: str, what: str = "a number") -> Fraction:
    """The exact value of text such as 1.7e-3 or 9/5: 0, or from 1e-98 to 1e98 in size."""
    return _scaled(text, text, what, 1)


def parse_share(text: str, what: str) -> float:
    """A share from 0 to 1, written as 2% or 0.02; empty text means 0."""
    text = text.strip()
    share = parse_number(text.removesuffix("%") or "0", what) / (100 if text[-1:] == "%" else 1)
    if not 0 <= share <= 1:
        raise InvalidArgument(what, f"{text[:20]} is no share", "give 0% to 100%, such as 2%")
    return float(share)


def parse_size(text: str) -> int:
    """A number of bytes, such as 512, 64k, 64 KiB or 1MB; k, M and G mean powers of 1024."""
    shown = repr(text if len(text) <= 40 else f"{text[:39]}…")
    most = f"{LARGEST_SIZE >> 30}G"
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        remedy = f"give a whole number of bytes, 0 to {most}, such as 512, 64k or 1M"
        if re.search(r"\^|\*\*|\de\d", text):
            remedy += "; powers are not worked out"
        raise InvalidArgument("a size", f"{shown} is no size", remedy)
    count, prefix = match[1].lstrip("0") or "0", match[2] or ""
    if len(count) > 20 or (nbytes := int(count) * _BINARY[prefix]) > LARGEST_SIZE:
        raise InvalidArgument("a size", f"{shown} is too large", f"give at most {most}")
    return nbytes


def parse_time(text: str, what: str = "a time", *, unit_needed: bool = False) -> Fraction:
    """A time in exact seconds, from text such as 1.7ms, 200 us or, unless `unit_needed`, 1.7e-3."""
    match = _TIME.fullmatch(text)
    if match:
        prefix = {"milli": "m", "micro": "u", "nano": "n"}.get(match[2], match[2] or "")
        return _scaled(match[1], text, what, Fraction(1, _PARTS[prefix]), " seconds, or 1.8ms")
    if unit_needed:
        remedy = "give a number with its unit, such as 5ms or 200us"
        raise InvalidArgument(what, "it is no time with a unit", remedy)
    return _scaled(text, text, what, 1, " seconds, or 1.8ms")


def parse_rate(text: str, what: str = "a rate") -> Fraction:
    """A rate in exact bits per second, from text such as 10mbit, 10 Mbit/s, 10Mbps or 1.25 MB/s.

    mbit is a million bits, as for `tc`.  A lone b is a bit, B a byte; Ki, Mi, Gi are powers of
    1024.
    """
    match = _RATE.fullmatch(text)
    if match is None:
        remedy = "give a number with its unit, such as 10mbit, 10 Mbit/s or 1.25 MB/s"
        raise InvalidArgument(what, "it is no number of bits or bytes per second", remedy)
    number, prefix, binary, unit = match.groups()
    factor = (_BINARY if binary else _DECIMAL)[prefix.lower()]
    is_bytes = unit == "B" or unit.lower().startswith("byte")
    return _scaled(number, text, what, factor * (8 if is_bytes else 1))


def _scaled(number: str, typed: str, what: str, unit: Fraction | int, advice: str = "") -> Fraction:
    """A number times its unit, exact.   typed: the whole text, for errors."""
    if len(number) <= 200 and not _LARGE.search(number):  # else millions of digits are written out
        try:
            value = exact(number) * unit
        except InvalidArgument as problem:
            seen = f"{typed!r} is no number"
            raise InvalidArgument(what, seen, problem.remedy + advice) from None
        if not value or 1 / RANGE < abs(value) < RANGE:
            return value
    raise InvalidArgument(what, f"{typed[:20]!r} is beyond all measure", "give 1e-98 to 1e98")
