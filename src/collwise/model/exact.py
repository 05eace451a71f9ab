"""Exact numbers: floats become fractions (`exact`), and exact times become floats (`seconds`)."""

from fractions import Fraction

from collwise.errors import InvalidArgument
from collwise.system.quantities import Number, exact

__all__ = ["Number", "exact", "not_negative_times", "positive_time", "rounded_latency", "seconds"]

LARGEST_DENOMINATOR = 32
"""A measured λ is rounded to a fraction with at most this denominator.

The error is at most 1/64, below what any measurement of λ can resolve, and the λ-trees of nearby
fractions stay few, so that their plans can be cached.
"""


def seconds(x: Fraction) -> float:
    """Return an exact time in seconds as the nearest float."""
    return float(x)


def rounded_latency(lam: Fraction) -> Fraction:
    """A measured λ as a fraction >= 1 with a denominator of at most LARGEST_DENOMINATOR."""
    return max(Fraction(1), lam.limit_denominator(LARGEST_DENOMINATOR))


def positive_time(x: Number, name: str) -> Fraction:
    """Return a machine's parameter in exact seconds.  Raises InvalidArgument unless it is > 0."""
    value = exact(x, name)
    if value <= 0:
        remedy = "give a time above 0, in seconds"
        raise InvalidArgument(f"a machine's {name}", f"{x} is not above 0", remedy)
    return value


def not_negative_times(**times: Number) -> list[Fraction]:
    """Return a machine's parameters in exact seconds.  Raises InvalidArgument if one is below 0."""
    values = [exact(x, name) for name, x in times.items()]
    for (name, x), value in zip(times.items(), values, strict=True):
        if value < 0:
            remedy = "give a time of 0 or more, in seconds"
            raise InvalidArgument(f"a machine's {name}", f"{x} is below 0", remedy)
    return values
