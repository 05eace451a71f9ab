"""Measures what combining costs: γ by operator, type and length.

Every rank conducts a campaign of its own, and the slowest rank's median counts.  In α + nβ + nγ, γ
is the slope of the times over the bytes.
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
"""The pairs of an operator and a type of which combining is timed."""
MIN_REPETITIONS = 5
MAX_REPETITIONS = 200
BATCH_S = 2e-4
"""A sample is the mean of as many calls in a row as take about this long."""


class CombineSetting(NamedTuple):
    """What is timed: an operator, a type, bytes."""

    op: str
    dtype: str
    nbytes: int

    @property
    def cell(self) -> Self:
        """The setting that samples are collected under: this one itself."""
        return self


CombineSamples: TypeAlias = Mapping[CombineSetting, Sequence[Seconds]]


class CombineCampaign(Campaign[CombineSamples]):
    """Times all settings until the budget is used up, at least MIN_REPETITIONS times each.

    Repetitions go round by round over all settings, so that noise affects all of them alike.
    """

    def _plan(self) -> Batches:
        for turn in range(MAX_REPETITIONS):
            if turn < MIN_REPETITIONS or self.elapsed_s <= self.budget_s:
                yield "sampling", cells()

    def result(self) -> CombineSamples:
        """The samples in seconds, by setting."""
        return self._samples


def cells() -> list[CombineSetting]:
    """All settings that are timed: every operator and type with every length."""
    return [CombineSetting(op, dtype, nbytes) for op, dtype in OPERATORS for nbytes in SIZES]


def slowest(samples: Sequence[CombineSamples]) -> tuple[CombineTime, ...]:
    """Turn the samples of all ranks into a record per setting, with the slowest rank's median."""
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
