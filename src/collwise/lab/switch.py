"""The process that carries packets between hosts, on time."""

import gc
import json
import os
import select
import socket
import time
from array import array
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from collwise.lab.wires import Wires

READ_AHEAD_NS = 2_000_000
"""A sender's packets wait in its own queue, where TCP sees them, until its port is nearly free."""
_LARGEST_US = 100_000
_WINDOW_NS = 250_000_000
_LATE_WINDOW_US = 500
_MOST_WINDOWS = 1000
PRIORITY = 50


class Lateness:
    """How late packets were delivered, and how busy the switch was."""

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * (_LARGEST_US + 1)))
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
        self._counts[min(late_ns // 1000, _LARGEST_US)] += 1
        if late_ns > self._window_worst_ns:
            self._window_worst_ns = late_ns

    def tick(self, now_ns: int) -> None:
        """Close the current window if its time is over."""
        if (length := now_ns - self._window_ns) < _WINDOW_NS:
            return
        cpu = time.process_time_ns()
        self._busiest = max(self._busiest, (cpu - self._window_cpu_ns) / length)
        self.worst_ns = max(self.worst_ns, self._window_worst_ns)
        if (
            self._window_worst_ns > _LATE_WINDOW_US * 1000
            and len(self._late_windows) < _MOST_WINDOWS
        ):
            self._late_windows.append((self._window_ns / 1e9, now_ns / 1e9))
        self._window_ns, self._window_cpu_ns, self._window_worst_ns = now_ns, cpu, 0

    def quantile_us(self, share: float) -> int:
        """The lateness that this share of the packets does not exceed."""
        left = share * self.packets
        for late_us, count in enumerate(self._counts):
            left -= count
            if count and left <= 0:
                return late_us
        return 0

    def document(self) -> dict[str, Any]:
        """All of it, for the report."""
        now = time.monotonic_ns()
        elapsed = max(now - self._began_ns, 1)
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


def become_punctual() -> bool:
    """Have the kernel wake this process before any other; False if it may not be so."""
    from collwise.lab import kernel

    kernel.set_timer_slack(1)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return False
    return True


def carry(
    tuns: Sequence[int], addresses: Sequence[str], wires: Wires, control: socket.socket
) -> None:
    """Carry packets until `control` is closed at its other end.

    A line on `control` asks for what was counted since the last one; it is answered by a line.
    """
    punctual = become_punctual()
    numbers = {socket.inet_aton(address): number for number, address in enumerate(addresses)}
    source_of = {tun: number for number, tun in enumerate(tuns)}
    ready = select.epoll()
    asks = control.fileno()
    for descriptor in (asks, *tuns):
        ready.register(descriptor, select.EPOLLIN)
    full: list[tuple[int, int]] = []  # (when to read it again, TUN)
    counted = Lateness()
    clock, read, write = time.monotonic_ns, os.read, os.write
    while True:
        now = clock()
        for due, target, packet in wires.collect(now):
            try:
                write(tuns[target], packet)
            except OSError:
                counted.drops += 1
            counted.add(clock() - due, len(packet))
        counted.tick(now)
        while full and full[0][0] <= now:
            ready.modify(heappop(full)[1], select.EPOLLIN)
        events = ready.poll(0)
        if not events:
            coming = wires.next_event
            if full and (coming is None or full[0][0] < coming):
                coming = full[0][0]
            wait = None if coming is None else max(coming - clock(), 0) / 1e9
            # epoll itself waits in whole milliseconds; select on it, in microseconds.
            select.select([ready], [], [], wait)
            continue
        for descriptor, _ in events:
            if descriptor == asks:
                if not control.recv(64):
                    return
                told = {**counted.document(), "punctual": punctual}
                control.sendall(json.dumps(told).encode() + b"\n")
                counted = Lateness()
                continue
            try:
                packet = read(descriptor, 65536)
            except BlockingIOError:
                continue
            number = numbers.get(packet[16:20])
            if number is None or packet[0] >> 4 != 4:
                counted.drops += 1
                continue
            now = clock()
            free = wires.accept(now, source_of[descriptor], number, packet)
            if free > now + READ_AHEAD_NS:
                ready.modify(descriptor, 0)
                heappush(full, (free - READ_AHEAD_NS, descriptor))
