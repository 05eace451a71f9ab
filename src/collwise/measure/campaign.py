"""The base class of campaigns, which say what to time next, and when enough was measured.

    while batch := campaign.next_batch():
        campaign.record(batch, run(batch), elapsed_s)
    result = campaign.result()

A campaign has no clock: `record` is given the times.  In a team of ranks only rank 0 has the
campaign; it broadcasts each batch, and all ranks run it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from collwise.measure.fit import Seconds
from collwise.measure.probe_costs import ProbeCosts

Result = TypeVar("Result")
Stage: TypeAlias = Literal["greeting", "scouting", "sampling"]
"""What samples are used for: nothing, estimating costs, or the measurement."""
Batches: TypeAlias = Iterator[tuple[Stage, Sequence[Any]]]


class Campaign(ABC, Generic[Result]):
    """Times batches within a budget of seconds.

    A batch has probes, or anything else whose `cell` says what it is a repetition of.
    """

    def __init__(self, budget_s: float) -> None:
        self.budget_s, self.elapsed_s = budget_s, 0.0
        self._samples: dict[Any, list[Seconds]] = {}
        self._costs = ProbeCosts()
        self._stage: Stage = "greeting"
        self._batches = self._plan()
        self._done = False

    @abstractmethod
    def _plan(self) -> Batches:
        """Yield what to time, batch by batch; each is recorded before the next is asked for."""

    @abstractmethod
    def result(self) -> Result:
        """The result of the samples so far."""

    def next_batch(self) -> list[Any]:
        """What to time next, in this order; empty when done."""
        self._stage, batch = next(self._batches, (self._stage, ()))
        self._done = not batch
        return list(batch)

    def record(self, batch: Sequence[Any], samples: Sequence[Seconds], elapsed_s: float) -> None:
        """Take the seconds that each item of a batch took, as seen by rank 0.

        elapsed_s: seconds since the campaign began, overheads included.
        """
        cells = [item.cell for item in batch]
        if self._stage != "greeting":
            self._costs.add(cells, samples, elapsed_s - self.elapsed_s)
        if self._stage == "sampling":
            for cell, sample in zip(cells, samples, strict=True):
                self._samples.setdefault(cell, []).append(sample)
        self.elapsed_s = elapsed_s

    @property
    def progress(self) -> float:
        """How far the campaign is, from 0 to 1; it never falls."""
        return 1.0 if self._done else min(self.elapsed_s / self.budget_s, 1.0)
