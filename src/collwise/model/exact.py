"""Exact numbers: floats become fractions (`exact`), and exact times become floats (`seconds`)."""

from fractions import Fraction

from collwise.system.quantities import Number, exact

__all__ = ["LARGEST_DENOMINATOR", "Number", "exact", "rounded_latency", "seconds"]

LARGEST_DENOMINATOR = 32
"""A measured λ is rounded to a fraction with at most this denominator.

The error is at most 1/66, below what any measurement of λ can resolve, and the λ-trees of nearby
fractions stay few, so that their plans can be cached.
"""


def seconds(x: Fraction) -> float:
    """An exact time in seconds as the nearest float; every published time goes through here."""
    return float(x)


def rounded_latency(lam: Fraction) -> Fraction:
    """A measured λ rounded for the postal model: to >= 1, with a small denominator."""
    return max(Fraction(1), lam.limit_denominator(LARGEST_DENOMINATOR))
