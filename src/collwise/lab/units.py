"""Times and rates as people write them: "5ms", "10 Mbit/s", "10mbit", "1.25 MB/s"."""

import re
from functools import cache
from typing import TYPE_CHECKING

from collwise.errors import InvalidArgument

if TYPE_CHECKING:
    from pint import UnitRegistry

_QUANTITY = re.compile(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-zµμ/]+)\s*", re.IGNORECASE)
_BITS = re.compile(r"[kmgt]?i?(bits?|bps|b|bytes?)(/s|/sec|/second)?", re.IGNORECASE)

LATENCIES_S = (100e-6, 2.0)
"""One-way latencies that the switch can keep: below, its own lateness would show; above, TCP's
timers would."""
RATES = (64_000, 500_000_000)
"""Bits per second: below, one packet takes longer than TCP waits; above, there are more packets
than the switch can carry."""


@cache
def _registry() -> "UnitRegistry[float]":
    from pint import UnitRegistry  # loads for half a second

    return UnitRegistry(cache_folder=None)


def latency_ns(text: str) -> int:
    """Nanoseconds of a one-way latency such as "5ms".  Raises InvalidArgument."""
    asked = f"a latency of {text!r}"
    remedy = "give a number with its unit, such as 5ms or 200us"
    found = _convert(text, "second", asked, remedy)
    low, high = LATENCIES_S
    if not low <= found <= high:
        raise InvalidArgument(
            asked,
            f"an emulated network can keep {low * 1e6:g} us to {high:g} s",
            "choose a latency in this range",
        )
    return round(found * 1e9)


def rate_bits(text: str) -> int:
    """Bits per second of a rate such as "10mbit", "10 Mbit/s" or "1.25 MB/s".

    Raises InvalidArgument.
    """
    asked = f"a rate of {text!r}"
    remedy = "give a number with its unit, such as 10mbit, 10 Mbit/s or 1.25 MB/s"
    match = _QUANTITY.fullmatch(text)
    if match is None or not _BITS.fullmatch(match[2]):
        raise InvalidArgument(asked, "it is no number of bits or bytes per second", remedy)
    unit = re.sub(r"(/s|/sec|/second)$", "", match[2], flags=re.IGNORECASE)
    # As `tc` has it, mbit is a million bits: nobody means a thousandth of a bit.
    unit = {"m": "M", "g": "G", "t": "T", "K": "k"}.get(unit[0], unit[0]) + unit[1:]
    unit = re.sub(r"bps$", "bit", unit, flags=re.IGNORECASE)
    found = _convert(f"{match[1]} {unit}/s", "bit/second", asked, remedy)
    low, high = RATES
    if not low <= found <= high:
        raise InvalidArgument(
            asked,
            f"an emulated network can keep {rate_words(low)} to {rate_words(high)}",
            "choose a rate in this range",
        )
    return round(found)


def _convert(text: str, unit: str, asked: str, remedy: str) -> float:
    from pint.errors import PintError

    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InvalidArgument(asked, "it is no number with a unit", remedy)
    try:
        return float(_registry().Quantity(float(match[1]), match[2]).to(unit).magnitude)
    except (PintError, ValueError) as problem:
        raise InvalidArgument(asked, str(problem), remedy) from None


def rate_words(bits: float) -> str:
    """A rate for people: "10 Mbit/s"."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bits >= size:
            return f"{bits / size:g} {prefix}bit/s"
    return f"{bits:g} bit/s"


def latency_words(nanoseconds: int) -> str:
    """A latency for people: "5 ms", "200 µs"."""
    if nanoseconds >= 1_000_000_000:
        return f"{nanoseconds / 1e9:g} s"
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1e6:g} ms"
    return f"{nanoseconds / 1e3:g} µs"
