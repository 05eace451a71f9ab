"""When a packet arrives: the arithmetic of the switch.  No clock, no packets, no waiting.

Times are integers in nanoseconds on whatever clock the caller has.  A packet passes ports, one
after the other.  A port passes one packet at a time, in the order in which first bits reach it, at
its own rate; it may begin before the last bit has come (cut-through) and cannot end before it:

    begins = max(first bit arrives, port is free)
    ends   = max(begins + size / rate, last bit arrives)

The ports are the sender's, the trunk's if there is one between the two hosts' groups, and the
receiver's; the one-way latency lies before the receiver's port.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

_NS_BITS = 8_000_000_000
"""Nanoseconds per second × bits per byte."""


class Wires:
    """All ports of a network, and the packets that are on their way.

    rates: bits per second of each host's port.   latencies_ns[i][j]: one way, from i to j.
    trunk_rates: bits per second of each trunk.   trunks[i][j]: the trunk between i and j, or None.
    """

    def __init__(
        self,
        rates: Sequence[int],
        latencies_ns: Sequence[Sequence[int]],
        trunk_rates: Sequence[int] = (),
        trunks: Sequence[Sequence[int | None]] | None = None,
    ) -> None:
        count = len(rates)
        self._rates = list(rates)
        self._latencies = [list(row) for row in latencies_ns]
        self._trunk_rates = list(trunk_rates)
        self._trunks = trunks
        self._egress_free = [0] * count
        self._ingress_free = [0] * count
        self._trunk_free = [0] * len(self._trunk_rates)
        # (due, number, port still to pass: trunk >= 0, -1 receiver, -2 none, last bit's lag, …)
        self._events: list[tuple[int, int, int, int, int, int, bytes]] = []
        self._number = 0

    def accept(self, now: int, source: int, target: int, packet: bytes) -> int:
        """Take a packet from its sender.  Returns when the sender's port will be free."""
        takes = len(packet) * _NS_BITS // self._rates[source]
        begins = max(now, self._egress_free[source])
        self._egress_free[source] = ends = begins + takes
        self._number += 1
        trunk = self._trunks[source][target] if self._trunks is not None else None
        if trunk is None:
            due = begins + self._latencies[source][target]
            event = (due, self._number, -1, takes, source, target, packet)
        else:
            event = (begins, self._number, trunk, takes, source, target, packet)
        heappush(self._events, event)
        return ends

    @property
    def next_event(self) -> int | None:
        """When something is to be done next; None if nothing is on its way."""
        return self._events[0][0] if self._events else None

    @property
    def on_the_way(self) -> int:
        """How many packets are on their way."""
        return len(self._events)

    def collect(self, now: int) -> list[tuple[int, int, bytes]]:
        """All packets that have arrived by now: (when, at which host, packet), in order."""
        events = self._events
        arrived = []
        while events and events[0][0] <= now:
            due, number, port, lag, source, target, packet = heappop(events)
            if port == -2:
                arrived.append((due, target, packet))
                continue
            if port == -1:
                begins = max(due, self._ingress_free[target])
                takes = len(packet) * _NS_BITS // self._rates[target]
                ends = self._ingress_free[target] = max(begins + takes, due + lag)
                heappush(events, (ends, number, -2, 0, source, target, packet))
            else:
                begins = max(due, self._trunk_free[port])
                takes = len(packet) * _NS_BITS // self._trunk_rates[port]
                ends = self._trunk_free[port] = max(begins + takes, due + lag)
                latency = self._latencies[source][target]
                event = (begins + latency, number, -1, ends - begins, source, target, packet)
                heappush(events, event)
        return arrived
