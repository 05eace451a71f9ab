"""The postal law on the queues of all ranks at once, where nothing is compiled.

In each wave all ranks send all that they have, receive all that has arrived, and combine.
"""

import numpy as np
from numpy.typing import NDArray

from collwise.system.integers import Ints
from collwise.timing.port_queues import PortQueues
from collwise.timing.vectorised_laws import Ticks, Times, chained, check_overflow, longest, runs


class Waves:
    """The ranks in the middle of a schedule.

    The number of waves is about that of ranks that forward a message one to the next: the depth of
    a tree, p for a ring or a segmented chain (some 0.2 ms each).
    """

    def __init__(self, queues: PortQueues, step: Ticks, reach: Ticks) -> None:
        self.queues, self.step, self.reach = queues, step, reach
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
        self.stops = np.full(len(queues) + 1, len(queues))  # the next combine
        combines = np.flatnonzero(self.combines)
        self.stops[combines] = combines
        self.stops = np.minimum.accumulate(self.stops[::-1])[::-1]

    def times(self) -> Times | None:
        """When each is sent and received; None if ranks wait for each other in a circle."""
        ranks: Ints = np.arange(len(self.free))
        while len(ranks):
            targets = self._send(ranks)
            combined = self._combine(ranks)
            received_at = self._receive(np.union1d(targets, combined))
            ranks = np.union1d(received_at, combined)
        if (self.next_receive < self.queues.receive_begins[1:]).any():
            return None
        return self.start, self.arrival[self.queues.receive_position]

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


def _until_missing(arrived: NDArray[np.bool_], low: Ints, most: Ints) -> Ints:
    """How many in a row have arrived, from each of `low` on: at least one, at most `most`."""
    places, begins = runs(low, most)
    missing = np.where(arrived[places], len(places), np.arange(len(places)))
    return np.minimum(most, np.minimum.reduceat(missing, begins) - begins)
