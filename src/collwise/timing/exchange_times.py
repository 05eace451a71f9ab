"""Ideal times of exchanges in which ranks differ: all ranks at once, message by message of a stage.

The times are those of `timing.ideal` on machines with independent ports.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange
from collwise.schedule.messages import Messages, Rows
from collwise.schedule.problem import Problem
from collwise.system.integers import Ints
from collwise.timing.port_queues import LARGEST
from collwise.timing.vectorised_laws import Ticks, in_ticks


class ExchangeTimes(NamedTuple):
    """Of virtual ranks: the messages, and per message and rank as in `VectorisedTiming`."""

    messages: Messages
    start: Ticks
    sent: Ticks
    received: Ticks
    finish: Ticks


class _Costs(NamedTuple):
    """Ticks of a message to its sender and to its receiver, and of combining, by bytes."""

    table: dict[int, tuple[int, ...]]
    kind: Any
    rendezvous: bool
    combines: bool


class Sent(NamedTuple):
    """Messages under way: which of `among` there are, from whom to whom, and their costs."""

    among: int
    some: Ints
    source: Ints
    target: Ints
    at_source: Ints
    nbytes: Ints
    start: Ticks
    gap: Ticks
    latency: Ticks


class Play(ABC):
    """Goes through a program, message by message; without costs only to see what sizes there are.

    largest: bytes that a message has at most.
    """

    def __init__(self, problem: Problem, largest: int, costs: _Costs | None) -> None:
        self.problem, self.costs = problem, costs
        kind, p = costs.kind if costs else np.int64, problem.ranks
        self.of_bytes: Any = np.int64 if largest <= LARGEST else object
        self.sizes: set[int] = set()
        self.calls = 0
        self.send_free, self.value, self.finish = (np.zeros(p, kind) for _ in range(3))
        self.receive_free = np.full(p, -1, kind)
        self.place = np.zeros(p, np.int64)  # of the next operation in a rank's list
        self.rows: list[tuple[Ticks, ...]] = []

    @abstractmethod
    def run(self) -> None:
        """All that the ranks do."""

    def _cost(self, nbytes: Ints) -> Any:
        self.calls += 1
        distinct, which = np.unique(nbytes, return_inverse=True)
        if self.costs is None:
            self.sizes.update(distinct.tolist())
            return np.zeros((3, len(nbytes)), np.int64)
        table = [self.costs.table[size] for size in distinct.tolist()]
        return np.array(table, self.costs.kind).reshape(-1, 3)[which].T

    def _next_place(self, ranks: Ints) -> Ints:
        place = self.place[ranks]
        self.place[ranks] += 1
        return place

    def move(
        self, source: Ints, target: Ints, nbytes: Ints, at_source: Ints, ready: Ticks
    ) -> Ticks:
        """One message from each source, ready at these times, as far as there are bytes.

        The receipts, 0 where there is none.
        """
        return self.receive(self.send(source, target, nbytes, at_source, ready))

    def send(self, source: Ints, target: Ints, nbytes: Ints, at_source: Ints, ready: Ticks) -> Sent:
        """As `move`, but for the receipts."""
        some = np.flatnonzero(nbytes)
        count, at_source = len(source), at_source[some]
        source, target, nbytes = source[some], target[some], nbytes[some]
        gap, latency, _ = self._cost(nbytes)
        start = np.maximum(ready[some], self.send_free[source])
        if self.costs and self.costs.rendezvous:
            start = np.maximum(start, self.receive_free[target])
        self.send_free[source] = start + gap
        self.finish[source] = np.maximum(self.finish[source], start + gap)
        return Sent(count, some, source, target, at_source, nbytes, start, gap, latency)

    def receive(self, sent: Sent) -> Ticks:
        """The receipts of messages that were sent."""
        count, some, source, target, at_source, nbytes, start, gap, latency = sent
        all_received = np.zeros(count, self.value.dtype)
        received, free = start + latency, self.receive_free[target]
        if not (self.costs and self.costs.rendezvous):
            received = np.where(free >= 0, np.maximum(received, free + gap), received)
        self.receive_free[target] = received
        self.finish[target] = np.maximum(self.finish[target], received)
        places = at_source, self._next_place(target)
        self.rows.append((source, target, *places, nbytes, start, start + gap, received))
        all_received[some] = received
        return all_received

    def combine(self, ranks: Ints, nbytes: Ints, left: Ticks, right: Ticks) -> Ticks:
        """One combine on each rank that has bytes to combine; when the result is there."""
        some = np.flatnonzero(nbytes)
        done, ranks = np.maximum(left, right), ranks[some]
        adding = self._cost(nbytes[some])[2]
        if self.costs and self.costs.combines:
            free = np.maximum(self.send_free[ranks], self.receive_free[ranks])
            done[some] = np.maximum(done[some], free) + adding
            self.send_free[ranks] = self.receive_free[ranks] = done[some]
        self.place[ranks] += 1
        self.finish[ranks] = np.maximum(self.finish[ranks], done[some])
        return done


class _Exchanging(Play):
    """Of an exchange."""

    def __init__(self, exchange: Exchange, costs: _Costs | None) -> None:
        largest = exchange.problem.nbytes * max((s.radix for s in exchange.stages), default=1)
        super().__init__(exchange.problem, largest, costs)
        self.exchange = exchange

    def run(self) -> None:
        ex, extra = self.exchange, self.exchange.extra
        even = 2 * np.arange(extra)
        whole = np.full(extra, self.problem.nbytes, self.of_bytes)
        received = self.move(even + 1, even, whole, self._next_place(even + 1), self.value[even])
        self.value[even] = self.combine(even, whole, self.value[even], received)
        self._stages()
        if ex.scatters:
            self.place[even] += 1  # a copy
        if not ex.to_root:
            back = whole // (self.problem.ranks if ex.scatters else 1)
            self.move(even, even + 1, back, self._next_place(even), self.value[even])

    def _stages(self) -> None:
        ex, itemsize = self.exchange, self.problem.itemsize
        core = self.problem.ranks - ex.extra
        numbers = np.arange(core)
        ranks = numbers + np.minimum(numbers, ex.extra)  # of all numbers
        low = np.zeros(core, self.of_bytes)
        high = np.full(core, self.problem.nbytes // itemsize, self.of_bytes)
        ways_back, weight = [], 1
        for stage in ex.stages:
            k = stage.radix
            part = _Part(numbers, weight, k, low, high, ex, divided=stage.divided)
            digit, own = part.digit, part.length(part.digit)
            me = ranks[numbers]
            got = np.zeros((k, len(numbers)), self.value.dtype)
            if ex.to_root and not stage.divided:
                sends, hears = numbers[digit > 0], numbers[digit == 0]
                at_source = np.zeros(core, np.int64)
                at_source[sends] = self._next_place(ranks[sends])
                for other in range(k - 1, 0, -1):
                    source, nbytes = hears + other * weight, own[digit == 0]
                    by = ranks[source]
                    received = self.move(
                        by, ranks[hears], nbytes, at_source[source], self.value[by]
                    )
                    got[other, digit == 0] = received
                numbers, own, got = hears, own[digit == 0], got[:, digit == 0]
                me, digit = ranks[numbers], digit[digit == 0]
            else:
                at = np.zeros((k, core), np.int64)
                for offset in range(1, k):
                    some = part.length((digit + offset) % k) > 0
                    at[offset, numbers[some]] = self._next_place(me[some])
                for offset in range(1, k):
                    d = (digit - offset) % k
                    source = part.first + d * weight
                    ready = self.value[ranks[source]]
                    received = self.move(ranks[source], me, own, at[offset, source], ready)
                    got[d, np.arange(len(numbers))] = received
            got[digit, np.arange(len(numbers))] = self.value[me]
            left = got[0]
            for right in got[1:]:
                left = self.combine(me, own, left, right)
            self.value[me] = np.where(own > 0, left, self.value[me])
            if stage.divided:
                ways_back.append(part)
                low[part.numbers], high[part.numbers] = part.bounds(part.digit)
            weight *= k
        for part in [] if ex.scatters else reversed(ways_back):
            numbers = self._way_back(part, numbers, ranks)

    def _way_back(self, part: "_Part", numbers: Ints, ranks: Ints) -> Ints:
        """Parts are put together again; who still takes part."""
        among = np.isin(part.numbers, numbers)
        digit, first, k = part.digit[among], part.first[among], part.radix
        me, ready = ranks[numbers], self.value.copy()
        if self.exchange.to_root:
            hears = digit == 0
            at_source = np.zeros(len(ranks), np.int64)
            sends = numbers[~hears & (part.length(part.digit)[among] > 0)]
            at_source[sends] = self._next_place(ranks[sends])
            digit, first, me = digit[hears], first[hears], me[hears]
            among[np.flatnonzero(among)[~hears]] = False
            numbers = numbers[hears]
        for offset in range(1, k):
            before = (digit - offset) % k
            source = first + before * part.weight
            if self.exchange.to_root:
                at = at_source[source]
            else:
                sends = part.length(part.digit)[among] > 0
                place = np.zeros(len(ranks), np.int64)
                place[numbers[sends]] = self._next_place(me[sends])
                at = place[source]
            nbytes = part.of(before, among)
            received = self.move(ranks[source], me, nbytes, at, ready[ranks[source]])
            self.value[me] = np.maximum(self.value[me], received)
        return numbers


class _Part:
    """The parts of the vector in one stage, for the numbers that take part in it."""

    def __init__(
        self,
        numbers: Ints,
        weight: int,
        radix: int,
        low: Ints,
        high: Ints,
        exchange: Exchange,
        *,
        divided: bool,
    ) -> None:
        self.numbers, self.weight, self.radix = numbers, weight, radix
        self.digit = numbers // weight % radix
        self.first = numbers - self.digit * weight
        self.low, self.high = low[numbers], high[numbers]
        self.exchange, self.divided = exchange, divided

    def bounds(self, digit: Ints) -> tuple[Ints, Ints]:
        """The elements of a member's part, by its digit, one for each number."""
        if not self.divided:
            return self.low, self.high
        items = self.high - self.low
        begin, end = (self.low - -items * at // self.radix for at in (digit, digit + 1))
        return begin, end

    def length(self, digit: Ints) -> Ints:
        """The bytes of that part."""
        problem = self.exchange.problem
        if not self.exchange.scatters:
            begin, end = self.bounds(digit)
            inside: Ints = (end - begin) * problem.itemsize
            return inside
        extra, every = self.exchange.extra, self.weight * self.radix
        alike = self.first % self.weight + self.weight * digit
        blocks = (problem.ranks - extra) // every + np.maximum(
            extra - alike + every - 1, 0
        ) // every
        every_one: Ints = blocks.astype(self.low.dtype) * (problem.nbytes // problem.ranks)
        return every_one

    def of(self, digit: Ints, among: Any) -> Ints:
        """`length` for some of the numbers."""
        digits = np.zeros(len(self.numbers), np.int64)
        digits[among] = digit
        some: Ints = self.length(digits)[among]
        return some


class _Waits(_Exchanging):
    """What waits for what: a moment is how many receipts, and combines, its rank has behind it.

    combines: whether they take time.
    """

    def __init__(self, exchange: Exchange, *, combines: bool) -> None:
        super().__init__(exchange, None)
        self.combines, self.done = combines, np.zeros(len(self.place), np.int64)

    def move(
        self, source: Ints, target: Ints, nbytes: Ints, at_source: Ints, ready: Ticks
    ) -> Ticks:
        moments, some = np.zeros_like(ready), np.flatnonzero(nbytes)
        source, target = source[some], target[some]
        self.done[target] += 1
        moments[some] = self.done[target]
        places = at_source[some], self._next_place(target)
        self.rows.append((source, target, *places, nbytes[some], ready[some]))
        return moments

    def combine(self, ranks: Ints, nbytes: Ints, left: Ticks, right: Ticks) -> Ticks:
        moments, some = np.maximum(left, right), np.flatnonzero(nbytes)
        ranks = ranks[some]
        place = self._next_place(ranks)
        if self.combines:
            self.done[ranks] += 1
            moments[some] = self.done[ranks]
            self.rows.append((ranks, ranks, place, place, nbytes[some], moments[some] - 1))
        return moments


def exchange_rows(exchange: Exchange, *, combines: bool) -> Rows:
    """The messages of the virtual ranks, and what each waits for."""
    play = _Waits(exchange, combines=combines)
    play.run()
    return Rows(*(np.concatenate(column) for column in zip(*play.rows, strict=True)))


def exchange_times(exchange: Exchange, machine: Machine) -> tuple[ExchangeTimes, Fraction]:
    """The times in ticks, and the tick in exact seconds.   machine: with independent ports."""
    return played(lambda costs: _Exchanging(exchange, costs), machine)


def played(
    play_of: Callable[[_Costs | None], Play], machine: Machine
) -> tuple[ExchangeTimes, Fraction]:
    """The times of a program that is played once for its sizes, then for its times."""
    seen = play_of(None)
    seen.run()
    sizes = sorted(seen.sizes)
    combines = machine.combine(1) is not None
    rows = [(*machine.message(n), machine.combine(n) or Fraction(0)) for n in sizes]
    columns, unit = in_ticks(rows)
    most = seen.calls * sum(max(column) for column in columns)
    kind = np.int64 if most <= LARGEST else object
    table = dict(zip(sizes, zip(*columns, strict=True), strict=True))
    play = play_of(_Costs(table, kind, machine.law == "hockney", combines))
    play.run()
    *messages, start, sent, received = (
        np.concatenate(column) for column in zip(*play.rows, strict=True)
    )
    return ExchangeTimes(Messages(*messages), start, sent, received, play.finish), unit
