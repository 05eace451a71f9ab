"""Which repetitions of a race count."""

import numpy as np
import pytest

from collwise.measure.race import APART, punctual

TIMES = np.full((10, 2), 8e-3)


def test_late_starts_are_dropped_not_counted() -> None:
    """An allreduce of 8 ms came out at 27 ms: a rank had lost its core while it waited."""
    apart = np.full((10, 2), 1e-5)
    times = TIMES.copy()
    for row, column in ((1, 0), (4, 1), (5, 0)):
        apart[row, column] = 19e-3
        times[row, column] += 19e-3
    seen = punctual(times, apart)
    assert (seen.dropped, len(seen.kept)) == (3, 7)
    assert seen.kept.max() == 8e-3
    assert seen.tolerance_s == pytest.approx(APART * 8e-3)


def test_a_repetition_counts_for_all_competitors_or_for_none() -> None:
    apart = np.zeros((10, 2))
    apart[3, 1] = 1.0
    assert punctual(TIMES, apart).kept.shape == (9, 2)


def test_half_of_the_repetitions_count_however_late() -> None:
    """As on nodes with more ranks than cores; the tolerance says how late."""
    apart = np.arange(1, 11)[:, None] * np.array([[1e-3, 0.0]])
    seen = punctual(TIMES, apart)
    assert (seen.dropped, len(seen.kept), seen.tolerance_s) == (5, 5, 5e-3)
    assert punctual(TIMES[:1], apart[:1]).dropped == 0


def test_a_small_share_of_the_fastest_time_does_not_matter() -> None:
    apart = np.zeros((10, 2))
    apart[:3] = 0.04 * 1e-3
    times = TIMES.copy()
    times[:, 1] = 1e-3
    assert punctual(times, apart).dropped == 0
    apart[:3] = 0.06 * 1e-3
    assert punctual(times, apart).dropped == 3
