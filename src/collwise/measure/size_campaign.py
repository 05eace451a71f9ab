"""Measures t0 and λ over message sizes.  The stages of a `SizeCampaign`:

* greeting: ranks exchange messages, so that connecting is not measured; no times are kept.
* opening: sizes from the smallest up, a few repetitions each, so that a small budget measures small
sizes well instead of all sizes poorly.  If the caller names the sizes, or the largest of interest,
the largest comes second, since nothing can be extrapolated from small sizes alone; a named one may
take PATIENCE times the budget.  The cheapest probes of a size come first, and only tell the costs
of the others.  Probes of larger sizes that do not fit into the budget are not begun.  Sizes that
would take much of the budget have no probes to many targets.
* rounds: sizes that are not yet known well enough get about half as many further repetitions as
they have, in random order; at first, sizes that take less time get more.  Rounds end when all sizes
are known within the tolerance, or when the budget or the repetitions are used up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from random import Random

from collwise.errors import InvalidArgument
from collwise.measure.breakpoints import find_protocols
from collwise.measure.campaign import Batches, Campaign
from collwise.measure.fit import (
    Fit,
    Seconds,
    find_median,
    find_uncertainty,
    fit_samples,
    fit_together,
)
from collwise.measure.probes import (
    EXPERIMENTS,
    Probe,
    ProbeSetting,
    greetings,
    pick_targets,
    usual_ks,
)
from collwise.measure.stability import OPENING
from collwise.measure.statistics import FEWEST
from collwise.profiles.records import MedianTime
from collwise.system.integers import ratio

SIZES = (
    *(8, 32, 128, 512, 1400, 1500, 2048, 4096, 8192, 16384, 32768),
    *(65536, 131072, 262144, 524288, 1048576),
)
"""Bytes: powers of four; powers of two where libraries have their eager limits; and sizes just
below and above the content of a packet of 1,500 bytes, so that plans know which pieces fit."""

FEWEST_SIZES = 5
"""The least number of usual sizes to measure, however small the messages of interest are."""
PATIENCE = 2
"""The largest named size, and a campaign without a fit, may take this multiple of the budget."""
ROUND = 5
"""The least number of repetitions of a probe in a round."""
LARGEST_SHARE = 1 / 20
"""A long size has fewer probes if one repetition of all would exceed this share of the budget."""
LONG = 1.5
"""A size is long if it takes more than this multiple of the smallest size's time."""
LAST_SHARE = 1 / 2
"""The largest usual size is measured second only if that ends within this share of the budget."""
MORE_OFTEN = 8
"""The largest factor by which short probes are repeated more often than long ones at first."""
TOLERANCE = 0.01
"""A size is known well enough when the 95 % intervals of its t0 and λ are at most ± this share."""
BATCH = 1024
"""The largest number of probes in a batch."""


def usual_sizes(largest: int | None = None) -> tuple[int, ...]:
    """The sizes to measure by default.   largest: None for all SIZES.

    Otherwise the sizes end at the first one >= `largest`, but there are at least FEWEST_SIZES.
    """
    if largest is None:
        return SIZES
    return SIZES[: max(FEWEST_SIZES, 1 + sum(nbytes < largest for nbytes in SIZES))]


@dataclass(frozen=True)
class Measurement:
    """The result of a `SizeCampaign`."""

    ranks: int
    seed: int
    budget_s: float
    elapsed_s: float
    fits: tuple[Fit, ...]
    """Sorted by mode of sending (non-blocking first), then by size."""
    segments: tuple[int, ...]
    """The protocol segment of each fit, counted from 0 in each mode of sending."""
    medians: tuple[MedianTime, ...]
    """The medians from which the fits were computed."""
    unreached: tuple[int, ...] = ()
    """Sizes for which the budget did not suffice."""
    asked: bool = True
    """Whether the caller named the sizes."""
    complete: bool = True
    """Whether all sizes are known within the tolerance, in all modes of sending."""


class SizeCampaign(Campaign[Measurement]):
    """Measures t0 and λ over message sizes, in the given modes of sending, within a time budget.

    ranks: >= 2.   sizes: bytes, >= 1; None for the usual ones up to `largest`.   seed: of random
    targets and order.   budget_s: seconds after which no probe begins, apart from the first ones of
    the smallest size and the exceptions of PATIENCE.   modes: modes of sending, as values of
    `blocking`.
    repetitions: the largest number for one probe.
    Raises InvalidArgument for ranks, sizes and budgets out of range.
    """

    def __init__(
        self,
        ranks: int,
        *,
        sizes: Iterable[int] | None = None,
        largest: int | None = None,
        seed: int = 0,
        budget_s: float = 20.0,
        modes: Iterable[bool] = (False, True),
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
        super().__init__(budget_s)
        self.ranks = ranks
        numbers = list(usual_sizes(largest) if sizes is None else sizes)
        if not numbers or any(not isinstance(x, int) or x < 1 for x in numbers):
            remedy = "give 1 or more different whole numbers of bytes, >= 1"
            raise InvalidArgument("message sizes for a measurement", f"{numbers}", remedy)
        self.asked, self._limited = sizes is not None, largest is not None
        self.sizes = tuple(sorted(set(numbers)))
        self.modes, self.repetitions, self.seed = tuple(modes), repetitions, seed
        self._limit_s = budget_s
        self._random = Random(seed)
        self._ks = dict.fromkeys(self.sizes, usual_ks(ranks))
        self._open = {(nbytes, mode) for nbytes in self.sizes for mode in self.modes}

    @property
    def progress(self) -> float:
        """The part of the campaign that is done, from 0 to 1; it never falls."""
        known = 1 - len(self._open) / (len(self.sizes) * len(self.modes))
        return max(super().progress, known)

    def result(self) -> Measurement:
        """The fits to the samples so far, also before the campaign is done.

        Raises InvalidArgument if no size could be fitted in one of the modes of sending.
        """
        fits: list[Fit] = []
        segments: list[int] = []
        for mode in sorted(self.modes):
            samples = {n: own for n in self.sizes if (own := self._samples_of(n, mode))}
            significant = self._significant_fits(mode)
            numbers = find_protocols(
                (fit.nbytes, float(fit.cost.gap), float(fit.cost.lam), fit.uncertainty)
                for fit in significant.values()
            )
            protocols = {n: _nearest(n, numbers) for n in samples}
            for n, number in protocols.items():
                fit = significant.get(n) or fit_together(
                    n, {size: samples[size] for size in samples if protocols[size] == number}
                )
                if fit is not None:
                    fits.append(fit)
                    segments.append(number)
            if not fits or fits[-1].blocking != mode:
                raise InvalidArgument(
                    f"t0 and λ after {self.elapsed_s:.3g} s of measuring",
                    "no message size gave times that can be used",
                    "give more time (--budget), or measure while nothing else runs here",
                )
        unreached = self._unreached()
        return Measurement(
            ranks=self.ranks,
            seed=self.seed,
            budget_s=self.budget_s,
            elapsed_s=self.elapsed_s,
            fits=tuple(fits),
            segments=tuple(segments),
            medians=tuple(find_median(cell, self._samples[cell]) for cell in sorted(self._samples)),
            unreached=unreached,
            asked=self.asked,
            complete=not self._open and not unreached,
        )

    def _plan(self) -> Batches:
        yield "greeting", greetings(self.ranks, self.sizes[0])
        yield from self._opening()
        while cells := self._open_cells():
            yield from self._round(cells)
        # Where no size can be fitted yet, the smallest, which costs least, gets more repetitions.
        self._limit_s = PATIENCE * self.budget_s
        while not all(map(self._significant_fits, self.modes)):
            cells = [cell for cell in self._cells(self.sizes[0]) if self._affordable([cell])]
            if not cells or len(self._samples[cells[0]]) >= self.repetitions:
                break
            yield from self._round(cells)

    def _opening(self) -> Batches:
        smallest, *larger = self.sizes
        second = larger[-1:] if self.asked or self._limited else []
        for nbytes in dict.fromkeys([smallest, *second, *larger]):
            share = 1.0 if nbytes not in second else PATIENCE if self.asked else LAST_SHARE
            self._limit_s = share * self.budget_s
            scouts = [cell for cell in self._cells(nbytes) if cell.k == self._ks[nbytes][0]]
            if nbytes > smallest and not self._affordable(scouts):
                continue
            yield "scouting", [self._probe(cell) for cell in scouts]
            cells = self._worth_their_time(nbytes)
            times = OPENING
            while nbytes > smallest and times and not self._affordable(cells * times):
                times -= 1
            if not times:
                continue
            batch = [self._probe(cell) for cell in cells * times]
            self._random.shuffle(batch)
            yield "sampling", batch
        self._limit_s = self.budget_s
        unreached = self._unreached()
        self._open -= {(nbytes, mode) for nbytes, mode in self._open if nbytes in unreached}

    def _worth_their_time(self, nbytes: int) -> list[ProbeSetting]:
        """The probe settings of a size; drops the largest numbers of targets if they take long."""
        cells, limit = self._cells(nbytes), LARGEST_SHARE * self.budget_s
        if self._costs.of(cells[0]) <= LONG * self._costs.of(self._cells(self.sizes[0])[0]):
            return cells
        while len(self._ks[nbytes]) > 2 and sum(map(self._costs.of, cells)) > limit:
            self._ks[nbytes] = self._ks[nbytes][:-1]
            cells = self._cells(nbytes)
        return cells

    def _round(self, cells: Sequence[ProbeSetting]) -> Batches:
        costs: defaultdict[int, float] = defaultdict(float)
        for cell in cells:
            costs[cell.nbytes] += self._costs.of(cell)
        longest = max(costs.values())
        pending: list[ProbeSetting] = []
        for cell in cells:
            done = len(self._samples[cell])
            often = min(longest / costs[cell.nbytes], MORE_OFTEN)
            pending += [cell] * min(max(round(ROUND * often), done // 2), self.repetitions - done)
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
                yield "sampling", batch

    def _open_cells(self) -> list[ProbeSetting]:
        """The probe settings to repeat; removes sizes known well enough from `_open`."""
        for nbytes, mode in list(self._open):
            samples = self._samples_of(nbytes, mode)
            enough = min(map(len, samples.values())) >= min(FEWEST, self.repetitions)
            if enough and max(find_uncertainty(samples) or (1.0,)) <= TOLERANCE:
                self._open.remove((nbytes, mode))
        return [
            cell
            for nbytes in self.sizes
            for cell in self._cells(nbytes)
            if (nbytes, cell.blocking) in self._open
            and len(self._samples[cell]) < self.repetitions
            and self._affordable([cell])
        ]

    def _significant_fits(self, mode: bool) -> dict[int, Fit]:
        """Maps sizes to their fits, if the size's own samples tell t0 from 0."""
        fits = (fit_samples(own) for n in self.sizes if (own := self._samples_of(n, mode)))
        return {fit.nbytes: fit for fit in fits if fit is not None and fit.is_significant}

    def _cells(self, nbytes: int) -> list[ProbeSetting]:
        return [
            ProbeSetting(experiment, nbytes, k, mode)
            for k in self._ks[nbytes]
            for experiment in EXPERIMENTS
            for mode in self.modes
        ]

    def _samples_of(self, nbytes: int, mode: bool) -> dict[ProbeSetting, list[Seconds]]:
        cells = (cell for cell in self._cells(nbytes) if cell.blocking == mode)
        return {cell: self._samples[cell] for cell in cells if cell in self._samples}

    def _unreached(self) -> tuple[int, ...]:
        reached = {cell.nbytes for cell in self._samples}
        return tuple(nbytes for nbytes in self.sizes if nbytes not in reached)

    def _probe(self, cell: ProbeSetting) -> Probe:
        targets = pick_targets(self._random, self.ranks, cell.k)
        return Probe(cell.experiment, cell.nbytes, targets, cell.blocking)

    def _affordable(self, cells: Iterable[ProbeSetting], spent: float = 0.0) -> bool:
        spent += sum(map(self._costs.of, cells))
        return self.elapsed_s + spent <= self._limit_s and self.elapsed_s < self._limit_s


def _nearest(nbytes: int, numbers: Mapping[int, int]) -> int:
    """The protocol of the size in `numbers` nearest to nbytes by ratio (the smaller in a tie)."""
    nearest = min(numbers, key=lambda size: (ratio(size, nbytes), size), default=nbytes)
    return numbers.get(nearest, 0)
