"""Medians and ratios of medians with their intervals."""

from math import comb
from random import Random
from statistics import median

import pytest

from collwise.errors import InvalidArgument
from collwise.measure.statistics import (
    FEWEST,
    Interval,
    median_interval,
    ratio_interval,
    standard_error,
    unpaired_ratio_interval,
)


def test_order_statistics_are_those_of_the_textbooks() -> None:
    """95 % intervals of the median: for 6 … 8 samples all of them, for 9 … 11 one less, ..."""
    of = {n: median_interval(range(n))[1:] for n in (1, 2, 6, 8, 9, 20, 100)}
    ends = {1: (0, 0), 2: (0, 1), 6: (0, 5), 8: (0, 7), 9: (1, 7), 20: (5, 14), 100: (39, 60)}
    assert of == ends


@pytest.mark.parametrize("count", [6, 7, 10, 31, 200])
def test_an_interval_holds_the_median_at_95_percent_and_is_the_narrowest(count: int) -> None:
    def outside(rank: int) -> float:
        return 2 * sum(comb(count, j) for j in range(rank + 1)) / (1 << count)

    rank = int(median_interval(range(count)).low)
    assert outside(rank) <= 0.05 < outside(rank + 1)


def test_the_middle_is_the_median() -> None:
    random = Random(1)
    for count in (1, 2, 5, 8):
        samples = [random.random() for _ in range(count)]
        interval = median_interval(samples)
        assert interval.middle == median(samples)
        assert interval.low <= interval.middle <= interval.high


def test_a_standard_error_is_that_of_a_normal_distribution() -> None:
    """9 samples: the ends are the second on either side, beyond which is 1.95 %, z = 2.064."""
    assert standard_error(median_interval(range(9)), 9) == pytest.approx(3 / 2.064, rel=1e-3)


def test_no_samples_have_no_median() -> None:
    with pytest.raises(InvalidArgument, match="there are no samples; time it at least once"):
        median_interval([])


def test_a_ratio_of_paired_samples_knows_that_they_are_paired() -> None:
    """Noise that both have in common cancels."""
    random = Random(2)
    noise = [random.lognormvariate(0, 0.5) for _ in range(50)]
    ratio = ratio_interval([2 * x for x in noise], noise)
    assert tuple(ratio) == pytest.approx((2, 2, 2))
    other = [random.lognormvariate(0, 0.5) for _ in range(50)]
    unpaired = ratio_interval([2 * x for x in noise], other)
    assert unpaired.low < unpaired.middle < unpaired.high


def test_a_few_repetitions_say_nothing_about_a_ratio() -> None:
    assert ratio_interval([2.0] * (FEWEST - 1), [1.0] * (FEWEST - 1)) == (2, 0, float("inf"))
    assert ratio_interval([2.0] * FEWEST, [1.0] * FEWEST) == (2, 2, 2)


def test_the_uncertainty_of_an_interval() -> None:
    assert Interval(10.0, 9.0, 12.0).uncertainty == pytest.approx(0.15)
    assert Interval(0.0, 0.0, 1.0).uncertainty == 0


def test_the_ratio_of_samples_from_different_runs() -> None:
    """Nothing pairs them: numbers of samples may differ; of two samples nothing is known."""
    random = Random(1)
    slow, quick = ([x * random.uniform(0.9, 1.1) for _ in range(n)] for x, n in ((3, 60), (2, 40)))
    found = unpaired_ratio_interval(slow, quick)
    assert found.middle == median(slow) / median(quick)
    assert 1.4 < found.low < 1.5 < found.high < 1.6
    few = unpaired_ratio_interval(slow[:2], quick)
    assert (few.low, few.high) == (0, float("inf"))
