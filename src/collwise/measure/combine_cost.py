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
"""Bytes of the vectors."""
OPERATORS = (("sum", "float64"), ("sum", "float32"), ("max", "float64"), ("sum", "int64"))
"""(operator, type)."""
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
        """What this is a repetition of: itself."""
        return self


CombineSamples: TypeAlias = Mapping[CombineSetting, Sequence[Seconds]]


class CombineCampaign(Campaign[CombineSamples]):
    """Times all cells until the budget is used up, at least a few times each.

    Repetitions go round by round over all cells, so that noise affects all of them alike.
    """

    def _plan(self) -> Batches:
        for turn in range(MAX_REPETITIONS):
            if turn < MIN_REPETITIONS or self.elapsed_s <= self.budget_s:
                yield "sampling", cells()

    def result(self) -> CombineSamples:
        """Seconds, by cell."""
        return self._samples


def cells() -> list[CombineSetting]:
    """All cells."""
    return [CombineSetting(op, dtype, nbytes) for op, dtype in OPERATORS for nbytes in SIZES]


def slowest(samples: Sequence[CombineSamples]) -> tuple[CombineTime, ...]:
    """The records of a measurement, from the seconds that each rank took for each cell."""
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
