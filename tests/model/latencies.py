"""Latencies of the postal model that tests of several files try."""

from fractions import Fraction

from hypothesis import strategies as st

LATENCIES = [
    Fraction(lam)
    for lam in ("1", "5/4", "1.293", "3/2", "9/5", "39/20", "2", "5/2", "17/5", "4", "10")
]
latencies = st.fractions(1, 12, max_denominator=60)
