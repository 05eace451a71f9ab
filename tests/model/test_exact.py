"""Exact numbers: what comes in is what was meant."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.errors import InvalidArgument
from collwise.model.exact import LARGEST_DENOMINATOR, exact, rounded_latency, seconds


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1.7e-3, Fraction(17, 10_000)),
        (1e300, Fraction(10**300)),
        (3, Fraction(3)),
        (-2, Fraction(-2)),
        ("9/5", Fraction(9, 5)),
        ("1.8", Fraction(9, 5)),
        (" 2e-6 ", Fraction(1, 500_000)),
        (Fraction(9, 5), Fraction(9, 5)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
    ],
)
def test_what_was_meant(given: Any, meant: Fraction) -> None:
    value = exact(given)
    assert value == meant
    assert type(value) is Fraction
    assert type(value.numerator) is int  # NumPy's would overflow


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "nan", "much", "", "1/0", None, True, [1], b"1", 1j]
)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        exact(value, "the latency")
    assert caught.value.asked == "the latency"
    assert caught.value.seen == repr(value)
    assert caught.value.remedy == "give a finite number, such as 9/5 or 1.8"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_there_and_back(x: float) -> None:
    assert seconds(exact(x)) == x


@given(st.fractions(Fraction(1, 10), 1000))
def test_a_rounded_latency_is_near(lam: Fraction) -> None:
    rounded = rounded_latency(lam)
    assert rounded >= 1
    assert rounded.denominator <= LARGEST_DENOMINATOR
    assert abs(rounded - max(lam, Fraction(1))) <= Fraction(1, 2 * LARGEST_DENOMINATOR)
