"""Measures γ, the cost of combining, by operator, type and length.

Every rank runs a campaign of its own, and the slowest rank's median counts.  In α + nβ + nγ, γ is
the slope of the times over the bytes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self, TypeAlias

from collwise.measure.campaign import Batches, Campaign
from collwise.measure.fit import Seconds
from collwise.measure.statistics import median_interval
from collwise.profiles.records import CombineTime

SIZES = (64, 1024, 16384, 131072, 1048576)
"""Bytes of the vectors that are combined."""
OPERATORS = (("sum", "float64"), ("sum", "float32"), ("max", "float64"), ("sum", "int64"))
"""The pairs of an operator and an element type that are timed."""
MIN_REPETITIONS = 5
MAX_REPETITIONS = 200
BATCH_S = 2e-4
"""About how many seconds all calls of one sample take; the sample is the mean of these calls."""


class CombineSetting(NamedTuple):
    """A setting that is timed: operator, element type, and bytes of a vector."""

    op: str
    dtype: str
    nbytes: int

    @property
    def cell(self) -> Self:
        """The setting itself: samples of equal settings are repetitions of each other."""
        return self


CombineSamples: TypeAlias = Mapping[CombineSetting, Sequence[Seconds]]


class CombineCampaign(Campaign[CombineSamples]):
    """Times settings until the budget is used up: each MIN_REPETITIONS to MAX_REPETITIONS times.

    Each round times every setting once, so that noise affects all settings equally.
    """

    def _plan(self) -> Batches:
        for turn in range(MAX_REPETITIONS):
            if turn < MIN_REPETITIONS or self.elapsed_s <= self.budget_s:
                yield "sampling", cells()

    def result(self) -> CombineSamples:
        """The samples in seconds, by setting."""
        return self._samples


def cells() -> list[CombineSetting]:
    """All settings that are timed: each of OPERATORS with each of SIZES."""
    return [CombineSetting(op, dtype, nbytes) for op, dtype in OPERATORS for nbytes in SIZES]


def slowest(samples: Sequence[CombineSamples]) -> tuple[CombineTime, ...]:
    """One record per setting, with the slowest rank's median.   samples: one entry per rank."""
    records = []
    for cell in samples[0]:
        of_ranks = [by_cell[cell] for by_cell in samples]
        worst = max(map(median_interval, of_ranks))
        records.append(
            CombineTime(
                op=cell.op,
                dtype=cell.dtype,
                nbytes=cell.nbytes,
                median_s=worst.middle,
                interval_s=(worst.low, worst.high),
                repetitions=min(map(len, of_ranks)),
            )
        )
    return tuple(records)
