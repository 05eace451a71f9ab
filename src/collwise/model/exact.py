"""Exact numbers: how floats come in, and how seconds go out.  The only two doors."""

import re
from fractions import Fraction
from typing import TypeAlias

from collwise.errors import InvalidArgument

Number: TypeAlias = int | float | str | Fraction

_ENDLESS = re.compile(r"e[+-]?0*\d{4}", re.IGNORECASE)
"""Exponents of four digits and more: no float has one."""

LARGEST_DENOMINATOR = 32
"""A measured λ is rounded to a fraction with at most this denominator.

The error is at most 1/66, below what any measurement of λ can resolve, and the λ-trees of nearby
fractions stay few, so that their plans can be cached.
"""


def exact(x: Number, what: str = "a number") -> Fraction:
    """The number that was meant: floats by their shortest decimal (0.1 is 1/10), strings as read.

    Raises InvalidArgument for NaN, infinities and what is no number.
    """
    if isinstance(x, Fraction):
        return x
    try:
        text = str(x)  # for NumPy's floats as well, whose repr is a call
        if _ENDLESS.search(text):
            raise ValueError("its digits would fill the memory")
        return Fraction(text)
    except (ValueError, TypeError, ZeroDivisionError):
        raise InvalidArgument(what, repr(x), "give a finite number, such as 9/5 or 1.8") from None


def seconds(x: Fraction) -> float:
    """An exact time in seconds as the nearest float; every published time goes through here."""
    return float(x)


def rounded_latency(lam: Fraction) -> Fraction:
    """A measured λ as it enters the postal model: ≥ 1, with a small denominator."""
    return max(Fraction(1), lam.limit_denominator(LARGEST_DENOMINATOR))
