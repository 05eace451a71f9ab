"""The base class of campaigns, which decide what to time next, and when to stop.

    while batch := campaign.next_batch():
        campaign.record(batch, run(batch), elapsed_s)
    result = campaign.result()

A campaign has no clock: the caller passes the times to `record`.  On MPI only rank 0 of a
communicator has the campaign; it broadcasts each batch, and all ranks run it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from collwise.measure.fit import Seconds
from collwise.measure.probe_costs import ProbeCosts

Result = TypeVar("Result")
Stage: TypeAlias = Literal["greeting", "scouting", "sampling"]
"""Samples have no use (greeting), estimate costs (scouting), or also give the result (sampling)."""
Batches: TypeAlias = Iterator[tuple[Stage, Sequence[Any]]]


class Campaign(ABC, Generic[Result]):
    """Decides which batches to time within a budget of seconds.

    A batch is a list of items, such as probes.  The items of equal `cell` are repetitions of each
    other.
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
        """Yield batches of items to time; `record` gets each batch before the next is yielded."""

    @abstractmethod
    def result(self) -> Result:
        """The result that the samples so far give."""

    def next_batch(self) -> list[Any]:
        """The items to time next, in this order; empty at the end of the campaign."""
        self._stage, batch = next(self._batches, (self._stage, ()))
        self._done = not batch
        return list(batch)

    def record(self, batch: Sequence[Any], samples: Sequence[Seconds], elapsed_s: float) -> None:
        """Take the samples of a batch: the seconds of each item.

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
        """The part of the campaign that is done, from 0 to 1; it never falls."""
        return 1.0 if self._done else min(self.elapsed_s / self.budget_s, 1.0)
