"""Times combining on this rank: `Op.Reduce_local`, by operator, type and length of the vectors."""

import time
from collections.abc import Sequence

import numpy as np

from collwise.measure.combine_cost import BATCH_S, LEAST, MOST, Cell
from collwise.mpi.buffers.operators import OPERATORS


def time_cells(cells: Sequence[Cell], budget_s: float) -> dict[Cell, list[float]]:
    """Samples of every cell, in seconds, until the budget is used up, at least a few of each.

    Repetitions go round by round over all cells, so that noise affects all of them alike.
    """
    samples: dict[Cell, list[float]] = {cell: [] for cell in cells}
    runs = [_Run(cell) for cell in cells]
    begin = time.perf_counter()
    for turn in range(MOST):
        for run in runs:
            samples[run.cell].append(run.sample())
        if turn + 1 >= LEAST and time.perf_counter() - begin > budget_s:
            break
    return samples


class _Run:
    """One cell's operands, and how many calls make a sample."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.op = cell, OPERATORS[cell.op]
        count = cell.nbytes // np.dtype(cell.dtype).itemsize
        self.left = np.ones(count, dtype=cell.dtype)
        self.right = np.zeros(count, dtype=cell.dtype)
        self.calls = 1
        self.calls = max(1, min(1000, int(BATCH_S / max(min(self.sample(), self.sample()), 1e-8))))

    def sample(self) -> float:
        """Mean seconds of a call."""
        combine, left, right = self.op.Reduce_local, self.left, self.right
        begin = time.perf_counter()
        for _ in range(self.calls):
            combine(left, right)
        return (time.perf_counter() - begin) / self.calls
