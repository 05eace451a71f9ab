"""Measures the ports that ranks share, and reads of shared memory: campaigns, and their fits.

Each campaign begins with the smallest size; it begins others only if the budget suffices.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot
from random import Random
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from collwise.measure.campaign import Batches, Campaign
from collwise.measure.fit import middle
from collwise.measure.level_probes import (
    BesideProbe,
    PortProbe,
    PortTeam,
    ReadersProbe,
    ReadProbe,
)
from collwise.measure.probes import AnyProbe, ProbeSetting
from collwise.measure.stability import OPENING
from collwise.measure.statistics import median_interval, standard_error
from collwise.model.exact import seconds
from collwise.profiles.records import Bounds, MeasuredSize, PortTime, ReadTime

Found = TypeVar("Found")

MAX_REPETITIONS = 15
"""The largest number of repetitions of one probe."""
KS = (2, 4)
"""The numbers of messages per sender: with fewer, the port is not busy all the time."""
NOTICED = 1.1
"""The port counts as free unless several senders take longer than one does by this factor."""
FILLED = 0.8
"""If the port's time exceeds this share of a single sender's t0, one rank may keep it busy."""
_ERRORS = 1.96


@dataclass(frozen=True)
class PortFit:
    """How long messages of one size keep a port busy that the ranks of a group share.

    senders: how many ranks send at once.   together: seconds added when every sender sends one
    message more.   alone: seconds for which one message keeps its sender itself busy.
    together_error_s, alone_error_s: standard errors; None after a single repetition.
    """

    nbytes: int
    senders: int
    together: Fraction
    together_error_s: float | None
    alone: Fraction
    alone_error_s: float | None
    repetitions: int


class SlopeCampaign(Campaign[tuple[Found, ...]]):
    """Measures how much longer more messages from each sender take, within a time budget.

    senders: the number of ranks that send.   sizes: bytes.   budget_s: seconds.   seed: of the
    random order of probes.
    """

    def __init__(self, senders: int, sizes: Iterable[int], budget_s: float, seed: int) -> None:
        super().__init__(budget_s)
        self.senders = senders
        self.sizes = tuple(sorted(set(sizes)))
        self._random = Random(seed)

    @abstractmethod
    def _of(self, nbytes: int) -> list[AnyProbe]:
        """The probes of a size."""

    @abstractmethod
    def _fit(self, nbytes: int) -> Found:
        """The result for a size, from its samples."""

    def result(self) -> tuple[Found, ...]:
        """The fits to the samples, one for every size that was measured."""
        return tuple(map(self._fit, dict.fromkeys(cell.nbytes for cell in self._samples)))

    def _plan(self) -> Batches:
        yield "greeting", self._probes(self.sizes[0])
        for number, nbytes in enumerate(self.sizes):
            for turn in range(OPENING):
                if (number or turn) and not self._affordable(nbytes):
                    break
                yield "sampling", self._probes(nbytes)
        for _ in range(MAX_REPETITIONS - OPENING):
            for nbytes in dict.fromkeys(cell.nbytes for cell in self._samples):
                if self._affordable(nbytes):
                    yield "sampling", self._probes(nbytes)

    def _probes(self, nbytes: int) -> list[AnyProbe]:
        probes = self._of(nbytes)
        self._random.shuffle(probes)
        return probes

    def _affordable(self, nbytes: int) -> bool:
        cost = sum(self._costs.of(probe.cell) for probe in self._probes(nbytes))
        return self.elapsed_s + cost <= self.budget_s

    def _difference(self, less: ProbeSetting, more: ProbeSetting) -> tuple[Fraction, float | None]:
        """The difference of two settings' medians, and its standard error (None if unknown)."""
        samples = [self._samples[cell] for cell in (less, more)]
        low, high = map(middle, samples)
        if min(map(len, samples)) < 2:
            return high - low, None
        errors = [standard_error(median_interval(values), len(values)) for values in samples]
        return high - low, hypot(*errors)


class PortCampaign(SlopeCampaign[PortFit]):
    """Measures the port of a group.   team: the ranks that run the probes."""

    def __init__(self, team: PortTeam, sizes: Iterable[int], budget_s: float, seed: int) -> None:
        super().__init__(len(team.senders), sizes, budget_s, seed)
        self.neighbour = team.members.index(team.neighbour)

    def _of(self, nbytes: int) -> list[AnyProbe]:
        probes: list[AnyProbe] = [PortProbe(nbytes, self.senders, k) for k in KS]
        return probes + [BesideProbe(nbytes, self.neighbour, self.senders, k) for k in (1, 2)]

    def _fit(self, nbytes: int) -> PortFit:
        few, many, without, beside = cells = [probe.cell for probe in self._of(nbytes)]
        together, together_error_s = self._difference(few, many)
        alone, alone_error_s = self._difference(without, beside)
        messages = KS[1] - KS[0]
        return PortFit(
            nbytes,
            self.senders,
            together / messages,
            together_error_s and together_error_s / messages,
            alone,
            alone_error_s,
            min(len(self._samples[cell]) for cell in cells),
        )


class ReadCampaign(SlopeCampaign[ReadTime]):
    """Measures how long a read of shared memory keeps a reader busy.

    If the only sender is slower than the reader, the campaign measures the sender's t0 instead.
    With several other ranks it also measures how long messages take that all of them read.
    """

    def _of(self, nbytes: int) -> list[AnyProbe]:
        read: list[AnyProbe] = [ReadProbe(nbytes, self.senders, k) for k in KS]
        readers = (1, self.senders) if self.senders > 1 else ()
        return read + [ReadersProbe(nbytes, q, k) for q in readers for k in KS]

    def _fit(self, nbytes: int) -> ReadTime:
        cells = [probe.cell for probe in self._of(nbytes)]
        read, *published = (
            max(self._difference(few, many)[0] / (KS[1] - KS[0]), Fraction(0))
            for few, many in zip(cells[::2], cells[1::2], strict=True)
        )
        read_s, repetitions = seconds(read / self.senders), len(self._samples[cells[1]])
        found = ReadTime(nbytes=nbytes, read_s=read_s, repetitions=repetitions)
        if not published:
            return found
        by_one_s, by_all_s = map(seconds, published)
        return replace(found, readers=self.senders, by_one_s=by_one_s, by_all_s=by_all_s)


def port_sizes(sizes: Sequence[int], asked: Sequence[int] | None) -> Sequence[int]:
    """The sizes for which to measure a port: all of `sizes` if the user named them (`asked`).

    Otherwise every third size from the second on, and the largest, since a port's times are nearly
    a straight line.
    """
    return sizes if asked is not None else (*sizes[1:-1:3], sizes[-1])


def port_times(
    fits: Iterable[PortFit], around: Sequence[MeasuredSize], inside: Sequence[MeasuredSize]
) -> tuple[PortTime, ...]:
    """The records of a port, from its fits and the times of a single sender's messages.

    around: the measured sizes of the level outside of the groups.   inside: the measured sizes of
    the level inside the groups.
    """
    return tuple(
        _port_time(fit, *_between(fit.nbytes, around), _between(fit.nbytes, inside)[0])
        for fit in fits
    )


def _between(nbytes: int, points: Sequence[MeasuredSize]) -> tuple[float, float]:
    """A single sender's t0 in seconds and its interval's upper end, both interpolated by size."""
    judged = [p for p in points if p.mode == "nonblocking"]
    most = [p.t0_interval_s[1] if p.t0_interval_s else p.t0_s for p in judged]
    sizes, times = [p.nbytes for p in judged], [p.t0_s for p in judged]
    return float(np.interp(nbytes, sizes, times)), float(np.interp(nbytes, sizes, most))


def _port_time(fit: PortFit, single_s: float, most_s: float, inside_s: float) -> PortTime:
    """The record of a port for one size, limited to what other measurements allow.

    single_s: seconds of a single sender per message, an upper limit of the rank's time.   most_s:
    the upper end of its interval, an upper limit of the port's time.   inside_s: t0 inside the
    group in seconds, a lower limit of the rank's time.
    """
    noticed = float(fit.together) > NOTICED * single_s
    busy_s = min(float(fit.together / fit.senders), most_s) if noticed else 0.0
    filled = busy_s > FILLED * single_s
    alone_s = min(max(float(fit.alone), inside_s), single_s)
    return PortTime(
        nbytes=fit.nbytes,
        senders=fit.senders,
        port_s=busy_s,
        port_interval_s=_interval(busy_s, fit.together_error_s, fit.senders) if noticed else None,
        rank_s=alone_s if filled else None,
        rank_interval_s=_interval(alone_s, fit.alone_error_s) if filled else None,
        repetitions=fit.repetitions,
    )


def _interval(value_s: float, error_s: float | None, parts: int = 1) -> Bounds | None:
    if error_s is None:
        return None
    return max(value_s - _ERRORS * error_s / parts, 0.0), value_s + _ERRORS * error_s / parts
