"""A campaign of measurement: says what to time next, and knows when it is enough.

    while batch := campaign.next_batch():
        campaign.record(batch, run(batch), elapsed_s)
    measurement = campaign.result()

Only rank 0 holds one; it broadcasts each batch, and all ranks run it.  A campaign has no clock:
`record` is given the times.  Its stages:

* greeting: ranks exchange messages, so that connecting is not measured; nothing is kept.
* opening: sizes from the smallest up, a few repetitions each, so that a small budget measures the
  small sizes well rather than all sizes poorly.  The cheapest probes of a size go first and only
  tell what the others will cost; what does not fit into the budget is not begun.
* rounds: everything that is not yet known well enough, shuffled, half as often again as before;
  until all is known within the tolerance, or the budget ends.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import isfinite
from random import Random

from collwise.errors import InvalidArgument
from collwise.measure.breakpoints import CurvePoint, find_segments
from collwise.measure.fit import (
    Fit,
    Seconds,
    check_seconds,
    estimate,
    find_median,
    fit_samples,
)
from collwise.measure.probe_costs import ProbeCosts
from collwise.measure.probes import EXPERIMENTS, Cell, Probe, greetings, pick_targets, usual_ks
from collwise.profiles.records import MedianTime

SIZES = (
    *(8, 32, 128, 512, 2048, 4096, 8192, 16384, 32768),
    *(65536, 131072, 262144, 524288, 1048576),
)
"""Bytes: powers of four, and of two where libraries have their eager limits."""

OPENING = 3
"""Repetitions in the opening, and the fewest that a point should have."""
ROUND = 5
"""The least number of repetitions in a round."""
FEWEST = 6
"""With fewer repetitions no median is known with 95 % confidence, however alike they look."""
BATCH = 1024
"""The largest number of probes in a batch."""


class Stage(Enum):
    """What samples are used for: nothing, estimating costs, or the measurement."""

    GREETING = auto()
    SCOUTING = auto()
    SAMPLING = auto()


@dataclass(frozen=True)
class Measurement:
    """The result of a campaign."""

    ranks: int
    seed: int
    budget_s: float
    elapsed_s: float
    fits: tuple[Fit, ...]
    """Sorted by way of sending (non-blocking first), then size."""
    segments: tuple[int, ...]
    """The protocol segment of each fit, from 0 for each way of sending."""
    medians: tuple[MedianTime, ...]
    """The medians from which the fits were computed."""
    unreached: tuple[int, ...] = ()
    """Sizes for which the budget did not suffice."""
    unusable: tuple[tuple[int, bool], ...] = ()
    """(bytes, blocking) left out, because their t0 cannot be told from 0."""
    repeats: bool = False
    """Whether targets had to repeat, for want of ranks."""
    complete: bool = True
    """Whether everything is known within the tolerance: False if the budget ended before."""


class Campaign:
    """Measures t0 and λ over message sizes, for both ways of sending, within a time budget.

    ranks: >= 2.  sizes: bytes, >= 1.  seed: of targets and order.  budget_s: seconds after which
    nothing new begins.  ks: numbers of targets, two or more (`usual_ks` if not given).  modes: ways
    of sending to measure, as values of `blocking`.  tolerance: relative half-width of the 95 %
    intervals of t0 and λ at which a size is known well enough.  repetitions: the most of one probe.
    Raises InvalidArgument for values out of range.
    """

    def __init__(
        self,
        ranks: int,
        *,
        sizes: Iterable[int] = SIZES,
        seed: int = 0,
        budget_s: float = 20.0,
        ks: Iterable[int] | None = None,
        modes: Iterable[bool] = (False, True),
        tolerance: float = 0.01,
        repetitions: int = 1000,
    ) -> None:
        if ranks < 2:
            raise InvalidArgument(
                f"measure with {ranks} rank(s)",
                "measuring needs 2 ranks: one to send and one to answer",
                "start it with 2 ranks or more, better 5 or 9 (-n 9)",
            )
        if not (budget_s > 0 and isfinite(budget_s)):
            raise InvalidArgument("a time budget", f"{budget_s} s", "give seconds, above 0")
        self.ranks = ranks
        self.sizes = _distinct(sizes, "message sizes", " of bytes", 1)
        self.ks = _distinct(usual_ks(ranks) if ks is None else ks, "numbers of targets", "", 2)
        self.modes = tuple(dict.fromkeys(modes))
        if not self.modes:
            raise InvalidArgument("a campaign", "no way of sending", "give at least one mode")
        self.seed, self.budget_s = seed, budget_s
        self.tolerance, self.repetitions = tolerance, repetitions
        self.elapsed_s = 0.0
        self._random = Random(seed)
        self._samples: dict[Cell, list[Seconds]] = {}
        self._costs = ProbeCosts()
        self._open = {(nbytes, mode) for nbytes in self.sizes for mode in self.modes}
        self._batches = self._stages()
        self._outstanding: list[Probe] = []
        self._stage = Stage.GREETING
        self._done = False

    def next_batch(self) -> list[Probe]:
        """What to time next, in this order; empty when done.

        Until its samples are recorded, the same batch is given again.
        """
        if not self._outstanding and not self._done:
            self._outstanding = next(self._batches, [])
            self._done = not self._outstanding
        return list(self._outstanding)

    def record(
        self, batch: Sequence[Probe], samples: Sequence[Seconds | None], elapsed_s: float
    ) -> None:
        """Take the seconds that each probe of a batch took, as seen by rank 0.

        samples: None for a repetition to be thrown away, for instance because a rank was late.
        elapsed_s: seconds since the campaign began, overheads included.
        Raises InvalidArgument if these are not the samples of the batch that is under way.
        """
        if list(batch) != self._outstanding or len(samples) != len(batch):
            raise InvalidArgument(
                "record samples",
                f"{len(samples)} samples of {len(batch)} probes;"
                f" {len(self._outstanding)} probes are under way",
                "record the batch that next_batch() gave, one sample for each probe",
            )
        if not elapsed_s >= self.elapsed_s:
            raise InvalidArgument(
                "record samples",
                f"{elapsed_s} s elapsed, after {self.elapsed_s} s",
                "use a clock that does not run backwards",
            )
        kept = [
            (probe.cell, check_seconds(sample))
            for probe, sample in zip(batch, samples, strict=True)
            if sample is not None
        ]
        if self._stage != Stage.GREETING:
            overhead = elapsed_s - self.elapsed_s
            for cell, sample in kept:
                self._costs.add(cell, float(sample))
                overhead -= float(sample)
                if self._stage == Stage.SAMPLING:
                    self._samples.setdefault(cell, []).append(sample)
            self._costs.add_overhead(len(batch), overhead)
        self.elapsed_s = elapsed_s
        self._outstanding = []

    @property
    def progress(self) -> float:
        """How far it is, from 0 to 1; it never falls."""
        if self._done:
            return 1.0
        known = 1 - len(self._open) / (len(self.sizes) * len(self.modes))
        return min(max(self.elapsed_s / self.budget_s, known), 1.0)

    def result(self) -> Measurement:
        """What the samples so far say; possible at any time, also before the campaign is done.

        Raises InvalidArgument if there is not one size of which they say anything.
        """
        unreached = self._unreached()
        fits: list[Fit] = []
        segments: list[int] = []
        unusable: list[tuple[int, bool]] = []
        for mode in sorted(self.modes):
            sampled = [n for n in self.sizes if self._samples_of(n, mode)]
            usable = [fit for n in sampled if (fit := fit_samples(self._samples_of(n, mode)))]
            if not usable:
                raise InvalidArgument(
                    f"t0 and λ after {self.elapsed_s:.3g} s of measuring",
                    "no message size gave a time that grows with the number of messages",
                    "give more time (--budget), or measure while nothing else runs here",
                )
            # A t0 that might as well be 0 says less about its size than the sizes around it do.
            usable = [fit for fit in usable if fit.is_significant] or usable
            fits += usable
            segments += _segments(usable)
            unusable += [(n, mode) for n in sampled if n not in {fit.nbytes for fit in usable}]
        return Measurement(
            ranks=self.ranks,
            seed=self.seed,
            budget_s=self.budget_s,
            elapsed_s=self.elapsed_s,
            fits=tuple(fits),
            segments=tuple(segments),
            medians=tuple(find_median(cell, self._samples[cell]) for cell in sorted(self._samples)),
            unreached=unreached,
            unusable=tuple(unusable),
            repeats=any(k >= self.ranks for k in self.ks),
            complete=not self._open and not unreached,
        )

    def _stages(self) -> Iterator[list[Probe]]:
        yield list(greetings(self.ranks, self.sizes[0]))
        yield from self._opening()
        while cells := self._open_cells():
            yield from self._round(cells)

    def _opening(self) -> Iterator[list[Probe]]:
        for i, nbytes in enumerate(self.sizes):
            cells = self._cells(nbytes)
            scouts = [cell for cell in cells if cell.k == self.ks[0]]
            if i and not self._affordable(scouts):
                break
            self._stage = Stage.SCOUTING
            yield [self._probe(cell) for cell in scouts]
            times = OPENING
            while i and times and not self._affordable(cells * times):
                times -= 1
            if not times:
                break
            batch = [self._probe(cell) for cell in cells * times]
            self._random.shuffle(batch)
            self._stage = Stage.SAMPLING
            yield batch
        self._stage = Stage.SAMPLING
        unreached = self._unreached()
        self._open -= {(nbytes, mode) for nbytes, mode in self._open if nbytes in unreached}

    def _round(self, cells: Sequence[Cell]) -> Iterator[list[Probe]]:
        pending: list[Cell] = []
        for cell in cells:
            done = len(self._samples.get(cell, ()))
            pending += [cell] * min(max(ROUND, done // 2), self.repetitions - done)
        self._random.shuffle(pending)
        while pending:
            limit = max(self.budget_s / 20, self._costs.of(pending[-1]))
            batch: list[Probe] = []
            cost = 0.0
            while pending and cost < limit and len(batch) < BATCH:
                cell = pending.pop()
                if self._affordable([cell], cost):
                    cost += self._costs.of(cell)
                    batch.append(self._probe(cell))
            if batch:
                yield batch

    def _open_cells(self) -> list[Cell]:
        """What is worth more repetitions; shrinks `_open` to what is not known well enough."""
        for nbytes, mode in list(self._open):
            samples = self._samples_of(nbytes, mode)
            fewest = min(map(len, samples.values()), default=0)
            law = estimate(samples) if fewest >= min(FEWEST, self.repetitions) else None
            if law and max(law.t0_uncertainty, law.lam_uncertainty) <= self.tolerance:
                self._open.remove((nbytes, mode))
        return [
            cell
            for nbytes in self.sizes
            for cell in self._cells(nbytes)
            if (nbytes, cell.blocking) in self._open
            and len(self._samples.get(cell, ())) < self.repetitions
            and self._affordable([cell])
        ]

    def _cells(self, nbytes: int) -> list[Cell]:
        return [
            Cell(experiment, nbytes, k, mode)
            for k in self.ks
            for experiment in EXPERIMENTS
            for mode in self.modes
        ]

    def _samples_of(self, nbytes: int, mode: bool) -> dict[Cell, list[Seconds]]:
        cells = (cell for cell in self._cells(nbytes) if cell.blocking == mode)
        return {cell: self._samples[cell] for cell in cells if cell in self._samples}

    def _unreached(self) -> tuple[int, ...]:
        reached = {cell.nbytes for cell in self._samples}
        return tuple(nbytes for nbytes in self.sizes if nbytes not in reached)

    def _probe(self, cell: Cell) -> Probe:
        targets = pick_targets(self._random, self.ranks, cell.k)
        return Probe(cell.experiment, cell.nbytes, targets, cell.blocking)

    def _affordable(self, cells: Iterable[Cell], spent: float = 0.0) -> bool:
        spent += sum(map(self._costs.of, cells))
        return self.elapsed_s + spent <= self.budget_s and self.elapsed_s < self.budget_s


def _segments(fits: Sequence[Fit]) -> list[int]:
    gaps, latencies = [], []
    for fit in fits:
        t0, lam = fit.uncertainty or (1.0, 1.0)
        latency = max(fit.law.latency, fit.law.t0)
        gaps.append(CurvePoint(fit.nbytes, float(fit.law.t0), t0 / 2))
        latencies.append(CurvePoint(fit.nbytes, float(latency), max(t0, lam) / 2))
    return find_segments(gaps, latencies)


def _distinct(values: Iterable[int], what: str, unit: str, least: int) -> tuple[int, ...]:
    """Integers >= 1, ascending; raises InvalidArgument for fewer than `least` different ones."""
    numbers = list(values)
    if any(not isinstance(x, int) or x < 1 for x in numbers) or len(set(numbers)) < least:
        remedy = f"give {least} or more different whole numbers{unit}, >= 1"
        raise InvalidArgument(f"{what} for a measurement", f"{numbers}", remedy)
    return tuple(sorted(set(numbers)))
