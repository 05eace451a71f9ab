"""Estimates how many seconds a probe takes, from the probes measured so far."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

from collwise.measure.probes import ProbeSetting


class ProbeCosts:
    """The mean time of each probe setting so far, and the mean overhead per probe."""

    def __init__(self) -> None:
        self._counts: Counter[ProbeSetting] = Counter()
        self._totals_s: defaultdict[ProbeSetting, float] = defaultdict(float)
        self._probes, self._overhead_s = 0, 0.0

    def add(
        self, cells: Sequence[ProbeSetting], samples: Sequence[Fraction | float], took_s: float
    ) -> None:
        """Add the samples of a batch.   took_s: seconds for the whole batch, overheads included."""
        for cell, sample in zip(cells, samples, strict=True):
            self._counts[cell] += 1
            self._totals_s[cell] += float(sample)
        self._probes += len(cells)
        self._overhead_s += max(took_s - float(sum(samples)), 0.0)

    def of(self, cell: ProbeSetting) -> float:
        """The expected seconds of one probe, with its share of the overhead of batches."""
        return self._time(cell) + self._overhead_s / self._probes

    def _time(self, cell: ProbeSetting) -> float:
        """The mean time of a setting; if unmeasured, an estimate from fewer targets or bytes."""
        if cell in self._counts:
            return self._totals_s[cell] / self._counts[cell]
        fewer = [c for c in self._counts if c[:2] == cell[:2] and c.k < cell.k]
        if fewer:
            nearest = max(fewer, key=lambda c: (c.k, c.blocking == cell.blocking))
            return self._time(nearest) * cell.k / nearest.k
        # Along the straight line through the two nearest smaller sizes, never falling.
        smaller = sorted(c for c in self._counts if c == cell._replace(nbytes=c.nbytes))
        last = self._time(smaller[-1])
        if len(smaller) < 2:
            return last
        slope = (last - self._time(smaller[-2])) / (smaller[-1].nbytes - smaller[-2].nbytes)
        return last + max(slope, 0.0) * (cell.nbytes - smaller[-1].nbytes)
