"""When a packet arrives: the switch's arithmetic, without clock, I/O or waiting.

Times are integers in nanoseconds on the caller's clock.  A packet passes several ports.  A port
transmits one packet at a time, in the order in which first bits reach it, at its own rate.  It may
begin before the last bit has arrived (cut-through) and cannot end before it:

    begins = max(first bit arrives, port is free)
    ends   = max(begins + size / rate, last bit arrives)

The ports are the sender's, the trunk's if there is one between the two hosts' groups, and the
receiver's; the one-way latency lies before the receiver's port.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

_NS_BITS = 8_000_000_000
"""Nanoseconds per second × bits per byte."""
_RECEIVER, _DELIVERED = -1, -2
"""Stages of an event: the packet reaches its receiver's port, or is delivered.  A stage ≥ 0 is the
number of a trunk that the packet reaches."""


class LinkModel:
    """All ports of a network, and the packets in flight.

    rates: bits per second of each host's port.   latencies_ns[i][j]: one way, from host i to j.
    trunk_rates: bits per second of each trunk.   trunks[i][j]: the number of the trunk from host i
    to j, or None.
    """

    def __init__(
        self,
        rates: Sequence[int],
        latencies_ns: Sequence[Sequence[int]],
        trunk_rates: Sequence[int] = (),
        trunks: Sequence[Sequence[int | None]] | None = None,
    ) -> None:
        self._rates = rates
        self._latencies = latencies_ns
        self._trunk_rates = trunk_rates
        self._trunks = trunks
        self._egress_free = [0] * len(rates)
        self._ingress_free = [0] * len(rates)
        self._trunk_free = [0] * len(trunk_rates)
        # (first bit at, sequence number, trunk or _…, last bit later by, source, target, packet)
        self._events: list[tuple[int, int, int, int, int, int, bytes]] = []
        self._sequence = 0

    def send(self, now: int, source: int, target: int, packet: bytes) -> int:
        """Take a packet from its sender, at `now`.  Returns when the sender's port will be free."""
        transmission = len(packet) * _NS_BITS // self._rates[source]
        begins = max(now, self._egress_free[source])
        self._egress_free[source] = ends = begins + transmission
        self._sequence += 1
        trunk = self._trunks[source][target] if self._trunks is not None else None
        if trunk is None:
            at, stage = begins + self._latencies[source][target], _RECEIVER
        else:
            at, stage = begins, trunk
        heappush(self._events, (at, self._sequence, stage, transmission, source, target, packet))
        return ends

    @property
    def next_event(self) -> int | None:
        """The time of the next event; None if no packet is in flight."""
        return self._events[0][0] if self._events else None

    def deliver(self, now: int) -> list[tuple[int, int, bytes]]:
        """All packets delivered by `now`, in order: (time, number of the target, packet)."""
        events = self._events
        delivered = []
        while events and events[0][0] <= now:
            at, sequence, stage, lag, source, target, packet = heappop(events)
            if stage == _DELIVERED:
                delivered.append((at, target, packet))
            elif stage == _RECEIVER:
                begins = max(at, self._ingress_free[target])
                transmission = len(packet) * _NS_BITS // self._rates[target]
                ends = self._ingress_free[target] = max(begins + transmission, at + lag)
                heappush(events, (ends, sequence, _DELIVERED, 0, source, target, packet))
            else:
                begins = max(at, self._trunk_free[stage])
                transmission = len(packet) * _NS_BITS // self._trunk_rates[stage]
                ends = self._trunk_free[stage] = max(begins + transmission, at + lag)
                at = begins + self._latencies[source][target]
                heappush(events, (at, sequence, _RECEIVER, ends - begins, source, target, packet))
        return delivered
