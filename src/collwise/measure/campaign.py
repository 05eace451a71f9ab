"""What every campaign of measurement is: it says what to time next, and knows when it is enough.

    while batch := campaign.next_batch():
        campaign.record(batch, run(batch), elapsed_s)
    result = campaign.result()

A campaign has no clock: `record` is given the times.  Of a team of ranks only rank 0 holds one; it
broadcasts each batch, and all ranks run it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from math import isfinite
from typing import Any, Generic, TypeVar

from collwise.errors import InvalidArgument
from collwise.measure.fit import Seconds
from collwise.measure.probe_costs import ProbeCosts

Result = TypeVar("Result")


class CampaignStage(Enum):
    """What samples are used for: nothing, estimating costs, or the measurement."""

    GREETING = auto()
    SCOUTING = auto()
    SAMPLING = auto()


class Campaign(ABC, Generic[Result]):
    """Times batches within a budget of seconds.

    A batch has probes, or anything else whose `cell` says what it is a repetition of.
    """

    def __init__(self, budget_s: float) -> None:
        self.budget_s, self.elapsed_s = budget_s, 0.0
        self._samples: dict[Any, list[Seconds]] = {}
        self._costs = ProbeCosts()
        self._stages = self._batches()
        self._stage = CampaignStage.GREETING
        self._outstanding: Sequence[Any] = ()
        self._done = False

    @abstractmethod
    def _batches(self) -> Iterator[tuple[CampaignStage, Sequence[Any]]]:
        """What to time, batch by batch, and what its samples are used for."""

    @abstractmethod
    def result(self) -> Result:
        """What the samples so far say."""

    def next_batch(self) -> list[Any]:
        """What to time next, in this order; empty when done.

        Until its samples are recorded, the same batch is given again.
        """
        if not self._outstanding and not self._done:
            self._stage, self._outstanding = next(self._stages, (self._stage, ()))
            self._done = not self._outstanding
        return list(self._outstanding)

    def record(self, batch: Sequence[Any], samples: Sequence[Seconds], elapsed_s: float) -> None:
        """Take the seconds that each item of a batch took, as seen by rank 0.

        elapsed_s: seconds since the campaign began, overheads included.
        Raises InvalidArgument if these are not the samples of the batch that is under way.
        """
        if list(batch) != list(self._outstanding) or len(samples) != len(batch):
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
        if odd := [x for x in samples if not isfinite(x) or x < 0]:
            remedy = "give seconds, finite and >= 0"
            raise InvalidArgument("a timing sample", f"{odd[0]} s", remedy)
        if self._stage != CampaignStage.GREETING:
            for item, sample in zip(batch, samples, strict=True):
                self._costs.add(item.cell, float(sample))
                if self._stage == CampaignStage.SAMPLING:
                    self._samples.setdefault(item.cell, []).append(sample)
            overhead_s = elapsed_s - self.elapsed_s - float(sum(samples))
            self._costs.add_overhead(len(batch), overhead_s)
        self.elapsed_s, self._outstanding = elapsed_s, ()

    @property
    def progress(self) -> float:
        """How far it is, from 0 to 1; it never falls."""
        return 1.0 if self._done else min(self.elapsed_s / self.budget_s, 1.0)
