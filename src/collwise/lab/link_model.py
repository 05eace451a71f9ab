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
"""Nanoseconds per second times bits per byte."""
_DELIVERED = -1
"""The "port" of an event that delivers a packet."""


class LinkModel:
    """All ports of a network, and the packets in flight.

    rates: bits per second of each host's port.   latencies_ns[i][j]: one way, from host i to j.
    trunk_rates: bits per second of each trunk.   trunks: None without any trunk; otherwise
    trunks[i][j] is the number of the trunk from host i to j, or None.
    """

    def __init__(
        self,
        rates: Sequence[int],
        latencies_ns: Sequence[Sequence[int]],
        trunk_rates: Sequence[int] = (),
        trunks: Sequence[Sequence[int | None]] | None = None,
    ) -> None:
        self._latencies, self._trunks = latencies_ns, trunks
        # Ports in this order: those of the senders, of the trunks, of the receivers.
        self._rates = [*rates, *trunk_rates, *rates]
        self._free = [0] * len(self._rates)
        self._first_trunk, self._first_receiver = len(rates), len(rates) + len(trunk_rates)
        # (first bit at, sequence number, port, last bit later by, source, target, packet)
        self._events: list[tuple[int, int, int, int, int, int, bytes]] = []
        self._sequence = 0

    def send(self, now: int, source: int, target: int, packet: bytes) -> int:
        """Take a packet from its sender, at `now`.  Returns when the sender's port will be free."""
        begins, ends = self._transmit(source, packet, now, 0)
        self._sequence += 1
        trunk = self._trunks[source][target] if self._trunks is not None else None
        if trunk is None:
            at, port = begins + self._latencies[source][target], self._first_receiver + target
        else:
            at, port = begins, self._first_trunk + trunk
        heappush(self._events, (at, self._sequence, port, ends - begins, source, target, packet))
        return ends

    def _transmit(self, port: int, packet: bytes, at: int, lag: int) -> tuple[int, int]:
        """Occupy a port with a packet that arrives from `at` to `at + lag`; return (begin, end)."""
        begins = max(at, self._free[port])
        ends = max(begins + len(packet) * _NS_BITS // self._rates[port], at + lag)
        self._free[port] = ends
        return begins, ends

    @property
    def next_event(self) -> int | None:
        """The time of the next event; None if no packet is in flight."""
        return self._events[0][0] if self._events else None

    def deliver(self, now: int) -> list[tuple[int, int, bytes]]:
        """Take out all packets delivered by `now`, in order: (time, target's number, packet)."""
        events = self._events
        delivered = []
        while events and events[0][0] <= now:
            at, sequence, port, lag, source, target, packet = heappop(events)
            if port == _DELIVERED:
                delivered.append((at, target, packet))
                continue
            begins, ends = self._transmit(port, packet, at, lag)
            if port >= self._first_receiver:
                heappush(events, (ends, sequence, _DELIVERED, 0, source, target, packet))
            else:
                at, port = begins + self._latencies[source][target], self._first_receiver + target
                heappush(events, (at, sequence, port, ends - begins, source, target, packet))
        return delivered
