"""The user-space switch: the process that carries packets between hosts, on time."""

import gc
import os
import select
import socket
import time
from array import array
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from collwise.lab import control_messages, kernel
from collwise.lab.link_model import LinkModel

READ_AHEAD_NS = 2_000_000
"""A sender's packets wait in its own queue, where TCP sees them, until its port is nearly free."""
_LARGEST_US = 100_000
_WINDOW_NS = 250_000_000
_LATE_WINDOW_NS = 500_000
_MAX_WINDOWS = 1000
_PRIORITY = 50


class Statistics:
    """How late packets were delivered, and how busy the switch was."""

    def __init__(self) -> None:
        self._lateness = array("Q", bytes(8 * (_LARGEST_US + 1)))  # a histogram in microseconds
        self.packets = self.nbytes = self.drops = self.worst_ns = 0
        self._began_ns = self._window_ns = time.monotonic_ns()
        self._began_cpu_ns = self._window_cpu_ns = time.process_time_ns()
        self._window_worst_ns = 0
        self._busiest = 0.0
        self._late_windows: list[tuple[float, float]] = []

    def add(self, late_ns: int, nbytes: int) -> None:
        """Count one packet."""
        self.packets += 1
        self.nbytes += nbytes
        self._lateness[min(late_ns // 1000, _LARGEST_US)] += 1
        if late_ns > self._window_worst_ns:
            self._window_worst_ns = late_ns

    def tick(self, now_ns: int) -> None:
        """Close the current window if its time is over."""
        if (length := now_ns - self._window_ns) < _WINDOW_NS:
            return
        cpu = time.process_time_ns()
        self._busiest = max(self._busiest, (cpu - self._window_cpu_ns) / length)
        self.worst_ns = max(self.worst_ns, self._window_worst_ns)
        if self._window_worst_ns > _LATE_WINDOW_NS and len(self._late_windows) < _MAX_WINDOWS:
            self._late_windows.append((self._window_ns / 1e9, now_ns / 1e9))
        self._window_ns, self._window_cpu_ns, self._window_worst_ns = now_ns, cpu, 0

    def quantile_us(self, share: float) -> int:
        """The lateness that this share of the packets does not exceed."""
        left = share * self.packets
        for late_us, count in enumerate(self._lateness):
            left -= count
            if count and left <= 0:
                return late_us
        return 0

    def document(self) -> dict[str, Any]:
        """The fields of the report that the switch knows."""
        elapsed = max(time.monotonic_ns() - self._began_ns, 1)
        load = (time.process_time_ns() - self._began_cpu_ns) / elapsed
        return {
            "elapsed_s": elapsed / 1e9,
            "packets": self.packets,
            "nbytes": self.nbytes,
            "lateness_p50_s": self.quantile_us(0.5) / 1e6,
            "lateness_p95_s": self.quantile_us(0.95) / 1e6,
            "lateness_max_s": max(self.worst_ns, self._window_worst_ns) / 1e9,
            "switch_drops": self.drops,
            "load": load,
            "busiest_load": max(self._busiest, load),
            "late_windows_s": self._late_windows,
        }


def _become_realtime() -> bool:
    """Have the kernel run this process before any other; False if that is not permitted."""
    kernel.prctl(kernel.PR_SET_TIMERSLACK, 1)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError:
        return False
    return True


def forward(
    tuns: Sequence[int], addresses: Sequence[str], links: LinkModel, control: socket.socket
) -> None:
    """Forward packets until the other end of `control` is closed.

    Any message on `control` asks for the statistics since the last request.
    """
    realtime = _become_realtime()
    host_of = {socket.inet_aton(address): number for number, address in enumerate(addresses)}
    source_of = {tun: number for number, tun in enumerate(tuns)}
    epoll = select.epoll()
    requests = control.fileno()
    for descriptor in (requests, *tuns):
        epoll.register(descriptor, select.EPOLLIN)
    paused: list[tuple[int, int]] = []  # (when to read it again, TUN)
    statistics = Statistics()
    clock, read, write = time.monotonic_ns, os.read, os.write
    while True:
        now = clock()
        for due, target, packet in links.deliver(now):
            try:
                write(tuns[target], packet)
            except OSError:
                statistics.drops += 1
            statistics.add(clock() - due, len(packet))
        statistics.tick(now)
        while paused and paused[0][0] <= now:
            epoll.modify(heappop(paused)[1], select.EPOLLIN)
        events = epoll.poll(0)
        if not events:
            coming = links.next_event
            if paused and (coming is None or paused[0][0] < coming):
                coming = paused[0][0]
            wait = None if coming is None else max(coming - clock(), 0) / 1e9
            # epoll itself waits in whole milliseconds; select on it, in microseconds.
            select.select([epoll], [], [], wait)
            continue
        for descriptor, _ in events:
            if descriptor == requests:
                if control_messages.receive(control) is None:
                    return
                answer = {**statistics.document(), "punctual": realtime}
                control_messages.send(control, answer)
                statistics = Statistics()
                continue
            try:
                packet = read(descriptor, 65536)
            except BlockingIOError:
                continue
            receiver = host_of.get(packet[16:20])
            if receiver is None or packet[0] >> 4 != 4:
                statistics.drops += 1
                continue
            now = clock()
            free = links.send(now, source_of[descriptor], receiver, packet)
            if free > now + READ_AHEAD_NS:
                epoll.modify(descriptor, 0)
                heappush(paused, (free - READ_AHEAD_NS, descriptor))
