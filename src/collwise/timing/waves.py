"""The postal law on the queues of all ranks at once: alone, or with the ports that groups share.

In each wave all ranks send all that they have, receive all that has arrived, and combine.  Messages
that pass shared ports are served when nothing else is left to do, those of a *window* of time
together: it ends before anything that they cause can come to a port.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collwise.model.placement import Placement
from collwise.system.integers import Ints
from collwise.timing.port_queues import LARGEST, PortQueues
from collwise.timing.rank_state import PastLimit
from collwise.timing.vectorised_laws import Ticks, Times, chained, check_overflow, longest, runs

ENOUGH, FEW = 128, 32
"""After so many windows with fewer messages each, it is quicker to serve one after another."""


class Sparse(Exception):
    """Too few messages come to the ports in a window."""


class Waves:
    """The ranks in the middle of a schedule.

    The number of waves is about that of ranks that forward a message one to the next: the depth of
    a tree, p for a ring or a segmented chain (some 0.2 ms each).
    """

    def __init__(
        self,
        queues: PortQueues,
        step: Ticks,
        reach: Ticks,
        ports: Sequence[Ticks] = (),
        placement: Placement | None = None,
    ) -> None:
        self.queues, self.step, self.reach, self.ports = queues, step, reach, ports
        self.start = np.zeros_like(step)
        self.arrival = np.zeros_like(step)  # in receive order: when it arrives, then is received
        self.arrived = np.zeros(len(queues), dtype=bool)
        ranks = len(queues.send_begins) - 1
        self.waiting = np.zeros(ranks, dtype=np.int64)  # arrived, but not received
        self.next_send = queues.send_begins[:-1].copy()
        self.next_receive = queues.receive_begins[:-1].copy()
        self.free = np.zeros(ranks, dtype=step.dtype)
        self.waits, self.latest = queues.forwards, 0
        self.rise = 2 * longest(queues) * int(step.max()) + int(reach.max())  # at most, in a wave
        self.combines = queues.source == queues.target
        self.passes, self.asked = (np.zeros(len(queues), dtype=bool) for _ in range(2))
        for busy in ports:
            self.passes |= busy > 0
        self.stops = np.full(len(queues) + 1, len(queues))  # the next that is no plain message
        special = np.flatnonzero(self.combines | self.passes)
        self.stops[special] = special
        self.stops = np.minimum.accumulate(self.stops[::-1])[::-1]
        # The requests of messages that pass ports, and those on their way in, by level.
        none = np.zeros(0, np.int64)
        self.wanted, self.coming = none, [none for _ in ports]
        self.ready = np.zeros_like(step)  # of a message that is wanted
        self.there = np.zeros_like(step)  # when a message arrives at the next port
        tables = placement.table if placement else ()
        self.groups = [(table[queues.source], table[queues.target]) for table in tables]
        self.out_free, self.last_in = (
            [np.full(int(table.max()) + 1, -1, step.dtype) for table in tables] for _ in range(2)
        )
        self.rise += sum(int(busy.max()) for busy in ports) * len(queues)
        self.never = LARGEST // 4 if step.dtype != object else len(queues) * self.rise
        self.ahead = self._ahead() if ports else step

    def times(self, limit: int | None = None) -> Times | None:
        """When each is sent and received; None if ranks wait for each other in a circle.

        limit: PastLimit is raised once anything happens at a port after this tick.
        Raises Sparse where this takes long.
        """
        self._settle(np.arange(len(self.free)))
        windows = served = 0
        while len(self.wanted) or any(map(len, self.coming)):
            first = min(
                int(times[some].min())
                for times, some in (
                    (self.ready, self.wanted),
                    *((self.there, c) for c in self.coming),
                )
                if len(some)
            )
            if limit is not None and first > limit:
                raise PastLimit
            check_overflow(self.step, self.latest + self.rise)
            heads = self.next_send[self.next_send < self.queues.send_begins[1:]]
            end = first + int(self.ahead[heads].min(initial=self.never))
            delivered = self._pass(end)
            self._settle(self._receive(self._deliver(delivered, self.there[delivered])))
            served += self._serve(end)
            windows += 1
            if windows == ENOUGH:
                if served < ENOUGH * FEW:
                    raise Sparse
                windows = served = 0
        if (self.next_receive < self.queues.receive_begins[1:]).any():
            return None
        return self.start, self.arrival[self.queues.receive_position]

    def _ahead(self) -> Ticks:
        """How much later than a rank comes to a message anything can come to a port, at least."""
        ahead, begins = np.full_like(self.step, self.never), self.queues.send_begins
        ahead[self.passes] = self.reach[self.passes]
        for back in range(2, int(np.diff(begins).max()) + 1):
            at = begins[1:][np.diff(begins) >= back] - back
            later = np.minimum(ahead[at + 1], self.never) + self.step[at]
            ahead[at] = np.minimum(ahead[at], later)
        return ahead

    def _settle(self, ranks: Ints) -> None:
        """Wave after wave, until there are only messages left that pass ports."""
        while len(ranks):
            targets = self._send(ranks)
            combined = self._combine(ranks)
            received_at = self._receive(np.union1d(targets, combined))
            ranks = np.union1d(received_at, combined)

    def _send(self, ranks: Ints) -> Ints:
        """Send all that some ranks can; to whom something has arrived."""
        queues, low = self.queues, self.next_send[ranks]
        stop = np.searchsorted(queues.ready_at, self.next_receive[ranks], side="right")
        stop = np.minimum(stop, queues.send_begins[ranks + 1])
        end = np.minimum(stop, self.stops[low])
        able = end > low
        senders, low, last = ranks[able], low[able], end[able]
        targets: Ints = low[:0]
        if len(senders):
            check_overflow(self.step, self.latest + self.rise)
            m, begins = runs(low, last - low)
            held = self._held(m)
            held[begins] = np.maximum(held[begins], self.free[senders])
            self.start[m] = begun = chained(held, self.step[m - 1], begins, last - low)
            self.free[senders] = self.start[last - 1] + self.step[last - 1]
            self.next_send[senders] = last
            targets = self._deliver(m, begun + self.reach[m])
        if self.ports:
            heads = end[end < stop]
            wanted = heads[self.passes[heads]]
            wanted = wanted[~self.asked[wanted]]
            self.asked[wanted] = True
            self.ready[wanted] = np.maximum(self._held(wanted), self.free[queues.source[wanted]])
            self.wanted = np.concatenate((self.wanted, wanted))
        return targets

    def _held(self, messages: Ints) -> Ticks:
        """When what they wait for has been received."""
        before: Ticks = self.arrival[self.queues.ready_at[messages] - 1]
        before[~self.waits[messages]] = 0
        return before

    def _deliver(self, messages: Ints, times: Ticks) -> Ints:
        """They arrive at their targets at these times; these ranks."""
        if not len(messages):
            return messages
        position = self.queues.receive_position[messages]
        self.arrival[position] = times
        self.arrived[position] = True
        self.latest = max(self.latest, int(times.max()))
        targets, counts = np.unique(self.queues.target[messages], return_counts=True)
        self.waiting[targets] += counts
        return targets

    def _receive(self, ranks: Ints) -> Ints:
        """Receive all that has arrived and is next; the ranks that received something."""
        queues = self.queues
        ranks = ranks[self.waiting[ranks] > 0]
        ranks = ranks[self.arrived[self.next_receive[ranks]]]
        if not len(ranks):
            return ranks
        low = self.next_receive[ranks]
        lengths = _until_missing(self.arrived, low, self.waiting[ranks])
        positions, begins = runs(low, lengths)
        receipt, gap = self.arrival[positions], self.step[queues.receive_order[positions]]
        again = low > queues.receive_begins[ranks]
        since = np.maximum(receipt[begins], self.arrival[low - 1] + gap[begins])
        receipt[begins] = np.where(again, since, receipt[begins])
        self.arrival[positions] = received = chained(receipt, gap, begins, lengths)
        self.latest = max(self.latest, int(received.max()))
        self.next_receive[ranks] += lengths
        self.waiting[ranks] -= lengths
        return ranks

    def _combine(self, ranks: Ints) -> Ints:
        """Combine where that is next at both ports; the ranks that did."""
        queues, heads = self.queues, self.next_send[ranks]
        more = heads < queues.send_begins[ranks + 1]
        ranks, heads = ranks[more], heads[more]
        at = queues.receive_position[heads]
        able = self.combines[heads] & (at == self.next_receive[ranks])
        ranks, heads, at = ranks[able], heads[able], at[able]
        if len(ranks):
            behind = np.where(at > queues.receive_begins[ranks], self.arrival[at - 1], 0)
            self.start[heads] = begun = np.maximum(self.free[ranks], behind)
            self.arrival[at] = self.free[ranks] = done = begun + self.step[heads]
            self.latest = max(self.latest, int(done.max()))
            self.arrived[at] = True
            self.next_send[ranks] += 1
            self.next_receive[ranks] += 1
        return ranks

    def _pass(self, end: int) -> Ints:
        """All that arrives at a port before this moment passes it; what is then at its target."""
        delivered = [np.zeros(0, np.int64)]
        for level in reversed(range(len(self.ports))):
            coming = self.coming[level]
            now = self.there[coming] < end
            self.coming[level], coming = coming[~now], coming[now]
            if not len(coming):
                continue
            queues, busy = self.queues, self.ports[level]
            group = self.groups[level][1]
            ends = coming, queues.target[coming], queues.source[coming]
            coming = coming[np.lexsort((*ends, self.there[coming], group[coming]))]
            group, busy, last = group[coming], busy[coming], self.last_in[level]
            begins, lengths = _groups(group)
            passage, before = self.there[coming], last[group[begins]]
            after = np.maximum(passage[begins], before + busy[begins])
            passage[begins] = np.where(before >= 0, after, passage[begins])
            passage = chained(passage, busy, begins, lengths)
            last[group[begins]] = passage[begins + lengths - 1]
            self.there[coming] = passage
            self.latest = max(self.latest, int(passage.max()))
            delivered.append(self._to_ports(coming, level))
        return np.concatenate(delivered)

    def _to_ports(self, messages: Ints, outside: int) -> Ints:
        """They come to the outermost port inside a level; those that come to none."""
        for level in reversed(range(outside)):
            stops = self.ports[level][messages] > 0
            self.coming[level] = np.concatenate((self.coming[level], messages[stops]))
            messages = messages[~stops]
        return messages

    def _serve(self, end: int) -> int:
        """Serve all requests that come before anything that they cause, and before this moment.

        How many there were.
        """
        if not len(self.wanted):
            return 0
        wanted, queues = self.wanted, self.queues
        least = self.ready[wanted]
        for busy, (group, _), free in zip(self.ports, self.groups, self.out_free, strict=True):
            behind = np.where(busy[wanted] > 0, free[group[wanted]], 0)
            least = np.maximum(least, behind)
        end = min(end, int((least + self.step[wanted]).min()))
        now = self.ready[wanted] < end
        self.wanted, m = wanted[~now], wanted[now]
        m = m[np.lexsort((queues.target[m], queues.source[m], self.ready[m]))]
        start, before = self.ready[m], None
        through = [self._through(m, level) for level in range(len(self.ports))]
        while before is None or (len(through) > 1 and (start != before).any()):
            before = start.copy()
            for order, begins, lengths, gap, free in through:
                times = start[order]
                times[begins] = np.maximum(times[begins], free)
                start[order] = chained(times, gap, begins, lengths)
        for level, (order, begins, lengths, *_) in enumerate(through):
            last = order[begins + lengths - 1]
            group = self.groups[level][0][m[last]]
            self.out_free[level][group] = start[last] + self.ports[level][m[last]]
        source = queues.source[m]
        self.start[m] = start
        self.free[source] = start + self.step[m]
        self.next_send[source] += 1
        self.there[m] = start + self.reach[m]
        self.latest = max(self.latest, int(self.there[m].max(initial=0)))
        self._to_ports(m, len(self.ports))
        self._settle(source)
        return len(m)

    def _through(self, m: Ints, level: int) -> tuple[Ints, Ints, Ints, Ticks, Ticks]:
        """Those of some messages that leave groups of a level, group by group, in their order."""
        busy, group = self.ports[level][m], self.groups[level][0][m]
        passing = np.flatnonzero(busy)
        order = passing[np.argsort(group[passing], kind="stable")]
        group = group[order]
        begins, lengths = _groups(group)
        busy = busy[order]
        busy[1:] = busy[:-1]
        return order, begins, lengths, busy, self.out_free[level][group[begins]]


def _groups(sorted_: Ints) -> tuple[Ints, Ints]:
    """Where each run of equal numbers begins, and its length."""
    bounds = np.ones(len(sorted_) + 1, dtype=bool)
    np.not_equal(sorted_[1:], sorted_[:-1], out=bounds[1:-1])
    bounds = np.flatnonzero(bounds)
    return bounds[:-1], bounds[1:] - bounds[:-1]


def _until_missing(arrived: NDArray[np.bool_], low: Ints, most: Ints) -> Ints:
    """How many in a row have arrived, from each of `low` on: at least one, at most `most`."""
    places, begins = runs(low, most)
    missing = np.where(arrived[places], len(places), np.arange(len(places)))
    return np.minimum(most, np.minimum.reduceat(missing, begins) - begins)
