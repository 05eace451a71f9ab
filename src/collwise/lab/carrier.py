"""Carries packets between hosts: reads one when its port is nearly free, writes it when it is due.

The switch uses the same class in C (`_carrier.c`), which takes half the processor
time, and this slower class only if collwise was installed without a compiler.
"""

import os
import select
import time
from array import array
from collections.abc import Sequence
from heapq import heappop, heappush

from collwise.lab.link_model import LinkModel

READ_AHEAD_NS = 2_000_000
"""A sender's next packet is read this many nanoseconds before its port is free.  Until then packets
wait in the sender's own queue, where TCP sees them."""
PACKETS, NBYTES, DROPS, WORST_NS = range(4)
"""Indices into `counts`: packets, their bytes, dropped packets, and the worst lateness in ns."""
_ADDRESS = slice(16, 20)
"""The bytes of an IPv4 packet with the target's address."""


class Carrier(LinkModel):
    """The switch: the ports of an emulated network, attached to the devices of its hosts."""

    def attach(self, tuns: Sequence[int], addresses: bytes, control: int) -> None:
        """Begin to listen to the hosts' devices and to `control`.

        tuns: for each host, the device (a descriptor) with the packets that it sends and receives.
        addresses: the hosts' IPv4 addresses, four bytes each, one after another.
        control: a descriptor; `forward` returns when it can be read.
        """
        self._tuns, self._control = tuns, control
        self._host_of = {addresses[4 * n : 4 * n + 4]: n for n in range(len(tuns))}
        self._source_of = {tun: number for number, tun in enumerate(tuns)}
        self._paused: list[tuple[int, int]] = []  # (when to read it again, TUN)
        self._epoll = select.epoll()
        for descriptor in (control, *tuns):
            self._epoll.register(descriptor, select.EPOLLIN)

    def forward(self, until: int, counts: "array[int]", lateness: "array[int]") -> bool:
        """Carry packets; True once `control` can be read, False when the clock reaches `until`.

        until: on the monotonic clock, in nanoseconds.   counts: to be increased at PACKETS, NBYTES,
        DROPS and WORST_NS.   lateness: numbers of packets by microseconds late, to be increased.
        """
        clock, epoll = time.monotonic_ns, self._epoll
        while True:
            now = clock()
            self._deliver(now, counts, lateness)
            if now >= until:
                return False
            while self._paused and self._paused[0][0] <= now:
                epoll.modify(heappop(self._paused)[1], select.EPOLLIN)
            if events := epoll.poll(0):
                for descriptor, _ in events:
                    if descriptor == self._control:
                        return True
                    self._read(descriptor, counts)
                continue
            coming = until if self.next_event is None else min(until, self.next_event)
            if self._paused:
                coming = min(coming, self._paused[0][0])
            # epoll itself waits in whole milliseconds; select on it, in microseconds.
            select.select([epoll], [], [], max(coming - clock(), 0) / 1e9)

    def _deliver(self, now: int, counts: "array[int]", lateness: "array[int]") -> None:
        for due, target, packet in self.deliver(now):
            try:
                os.write(self._tuns[target], packet)
            except OSError:
                counts[DROPS] += 1
            late = time.monotonic_ns() - due
            counts[PACKETS] += 1
            counts[NBYTES] += len(packet)
            counts[WORST_NS] = max(counts[WORST_NS], late)
            lateness[min(late // 1000, len(lateness) - 1)] += 1

    def _read(self, tun: int, counts: "array[int]") -> None:
        try:
            packet = os.read(tun, 65536)
        except BlockingIOError:
            return
        receiver = self._host_of.get(packet[_ADDRESS])
        if receiver is None or packet[0] >> 4 != 4:
            counts[DROPS] += 1
            return
        now = time.monotonic_ns()
        free = self.send(now, self._source_of[tun], receiver, packet)
        if free > now + READ_AHEAD_NS:
            self._epoll.modify(tun, 0)
            heappush(self._paused, (free - READ_AHEAD_NS, tun))
