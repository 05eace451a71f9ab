"""Ideal times of up to millions of ranks: a schedule played as NumPy columns, exactly.

The times are those of `collwise.schedule.timing.ideal`, which plays one event after another; here
array operations settle whatever can be settled at once.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from collwise.model.exact import seconds
from collwise.model.machine import Hockney, LogGP, Machine, Wormhole
from collwise.schedule.program import Schedule
from collwise.timing import vectorised_laws
from collwise.timing.event_queues import Queues, queues
from collwise.timing.events import Passage, Transfer, machine_numbers
from collwise.timing.vectorised_laws import Ticks

EXACT_IN_FLOAT = 2**53
"""Up to here every integer is a float, and the quotient of two is the nearest float."""


@dataclass(frozen=True, eq=False)
class ColumnTiming:
    """The ideal times of a schedule, as `schedule.timing.Timing` has them, made when asked for.

    start, sent, received: per message, as in `Transfer`, in ticks of `unit` seconds.
    """

    messages: Queues
    start: Ticks
    sent: Ticks
    received: Ticks
    unit: Fraction

    @cached_property
    def ticks(self) -> Ticks:
        """Per rank: when its last operation is done, in ticks."""
        q = self.messages
        done = np.zeros(len(q.sends) - 1, dtype=self.start.dtype)
        sending, receiving = (np.flatnonzero(np.diff(begins)) for begins in (q.sends, q.receives))
        done[sending] = self.sent[q.sends[sending + 1] - 1]  # the last of a queue is the latest
        received = self.received[q.inbound[q.receives[receiving + 1] - 1]]
        done[receiving] = np.maximum(done[receiving], received)
        return done

    @cached_property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation is done, in exact seconds."""
        return tuple(self._exact(self.ticks))

    @cached_property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        num, den = self.unit.as_integer_ratio()
        if int(self.ticks.max()) * num <= EXACT_IN_FLOAT and den <= EXACT_IN_FLOAT:
            return tuple((self.ticks.astype(np.float64) * num / den).tolist())
        distinct, which = np.unique(self.ticks, return_inverse=True)
        floats = np.array([seconds(int(t) * self.unit) for t in distinct.tolist()])
        return tuple(floats[which].tolist())

    @property
    def completion(self) -> Fraction:
        """When the last rank is done, in exact seconds."""
        return int(self.ticks.max()) * self.unit

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message in time, as they are received: some microseconds for each."""
        q = self.messages
        _, when = np.unique(self.received, return_inverse=True)
        order = np.lexsort((q.place_at_target, q.target, when))
        what = (q.source, q.target, q.place_at_source, q.place_at_target, q.nbytes)
        times = (self.start, self.sent, self.received)
        columns = [*(c[order].tolist() for c in what), *(self._exact(t[order]) for t in times)]
        return tuple(map(Transfer, *columns))

    @property
    def passages(self) -> tuple[Passage, ...]:
        """None: there are no links."""
        return ()

    def link_busy(self) -> dict[int, Fraction]:
        """None: there are no links."""
        return {}

    def _exact(self, ticks: Ticks) -> list[Fraction]:
        """Ticks as exact seconds, equal ones made once."""
        num, den = self.unit.as_integer_ratio()
        distinct, which = np.unique(ticks, return_inverse=True)
        made = np.empty(len(distinct), dtype=object)
        made[:] = [Fraction(t * num, den) for t in distinct.tolist()]
        exact: list[Fraction] = made[which].tolist()
        return exact


def column_timing(schedule: Schedule, machine: Machine) -> ColumnTiming | None:
    """The exact ideal times of a schedule that sends and receives, and does nothing else.

    Down a tree (every rank receives one message, and then sends) about a second for 10^6 ranks,
    whatever its depth; otherwise as `waves` says: slow are chains and rings of very many ranks
    with several messages each.  Some hundred bytes of memory per message.
    None for what it cannot do, which `ideal` can: links, combining, bytes that a rank receives
    twice, LogGP other than down a tree (messages are processed in the order in which they arrive
    there); also if ranks wait for each other in a circle.
    """
    if isinstance(machine, Wormhole) or schedule.problem.kind.combines:
        return None
    if (messages := queues(schedule)) is None:
        return None
    sizes, which = np.unique(messages.nbytes, return_inverse=True)
    table, unit = _costs(machine, sizes.tolist())
    try:
        played = _played(messages, machine, [np.array(row, np.int64)[which] for row in table])
    except OverflowError:
        played = _played(messages, machine, [np.array(row, object)[which] for row in table])
    return None if played is None else ColumnTiming(messages, *played, unit)


def _costs(machine: Machine, sizes: list[int]) -> tuple[list[list[int]], Fraction]:
    """For each size: from a send to the next one, until it is received, until its sender is free.

    In ticks of the second result, in exact seconds: as few ticks as possible.
    """
    numbers = machine_numbers(machine, set(sizes))
    rows = []
    for size in sizes:
        if isinstance(machine, LogGP):
            o, gap, busy, latency = numbers[size]
            rows.append((max(o, gap), o + latency + busy, o))
        else:
            gap, latency = numbers[size]
            rows.append((gap, latency, gap))
    ratios = [x.as_integer_ratio() for row in rows for x in row]
    unit = Fraction(gcd(*(n for n, _ in ratios)), lcm(*(d for _, d in ratios))) or Fraction(1)
    return [[int(x / unit) for x in column] for column in zip(*rows, strict=True)], unit


def _played(
    messages: Queues, machine: Machine, costs: list[Ticks]
) -> tuple[Ticks, Ticks, Ticks] | None:
    """When each message starts, its sender is free, it is received; None if that is not known."""
    if not len(messages):
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    step, reach, busy = costs
    played = vectorised_laws.down_trees(messages, step, reach)
    if played is None and not isinstance(machine, LogGP):
        law = vectorised_laws.hockney if isinstance(machine, Hockney) else vectorised_laws.postal
        played = law(messages, step, reach)
    if played is None:
        return None
    start, received = played
    return start, start + busy, received
