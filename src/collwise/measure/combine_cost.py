"""What combining costs: γ by operator, type and length.  Nothing is timed here.

A cell is one operator on vectors of one type and length.  All ranks time it, and the slowest rank's
median counts.  In α + nβ + nγ, γ is the slope of the times over the bytes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from collwise.measure.statistics import median_interval
from collwise.profiles.records import CombineTime

SIZES = (64, 1024, 16384, 131072, 1048576)
"""Bytes of the vectors."""
OPERATORS = (("sum", "float64"), ("sum", "float32"), ("max", "float64"), ("sum", "int64"))
"""(operator, type) measured by default."""
MIN_REPETITIONS = 5
MAX_REPETITIONS = 200
BATCH_S = 2e-4
"""A sample is the mean of as many calls in a row as take about this long."""


class CombineSetting(NamedTuple):
    """What is timed: an operator, a type, bytes."""

    op: str
    dtype: str
    nbytes: int


def cells(
    operators: Sequence[tuple[str, str]] = OPERATORS, sizes: Sequence[int] = SIZES
) -> list[CombineSetting]:
    """All cells; sizes are cut to whole elements."""
    return [
        CombineSetting(
            op, dtype, max(nbytes // np.dtype(dtype).itemsize, 1) * np.dtype(dtype).itemsize
        )
        for op, dtype in operators
        for nbytes in sizes
    ]


def slowest(samples: Sequence[Mapping[CombineSetting, Sequence[float]]]) -> tuple[CombineTime, ...]:
    """The records of a measurement, from the seconds that each rank took for each cell."""
    records = []
    for cell in samples[0]:
        of_ranks = [by_cell[cell] for by_cell in samples if cell in by_cell]
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
