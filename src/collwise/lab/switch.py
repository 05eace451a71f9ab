"""The user-space switch: the process that carries packets and measures how late they are."""

import gc
import os
import socket
import time
from array import array
from collections.abc import Sequence
from typing import Any

from collwise.lab import carrier, control_messages, kernel
from collwise.lab.carrier import DROPS, NBYTES, PACKETS, WORST_NS

try:
    from collwise.lab import _carrier
except ImportError:  # there was no compiler
    COMPILED = False
else:
    COMPILED = True

_LARGEST_US = 100_000
_WINDOW_NS = 250_000_000
_MAX_WINDOWS = 1000
_PRIORITY = 50


class Statistics:
    """How late packets were delivered, and how busy the switch was, also in windows of 0.25 s.

    counts: packets, bytes and drops; counts[WORST_NS] is the worst lateness in the current
    window.   lateness: numbers of packets, by microseconds late.
    """

    def __init__(self) -> None:
        self.lateness = array("Q", bytes(8 * (_LARGEST_US + 1)))  # a histogram in microseconds
        self.counts = array("q", bytes(8 * 4))
        self._worst_ns = 0
        self._began_ns = self._window_ns = time.monotonic_ns()
        self._began_cpu_ns = self._window_cpu_ns = time.process_time_ns()
        self._busiest = 0.0
        self._windows: list[tuple[float, ...]] = []  # the fields of a `Window`

    @property
    def window_ends_ns(self) -> int:
        """The end of the current window, in nanoseconds on the monotonic clock."""
        return self._window_ns + _WINDOW_NS

    def close_window(self) -> None:
        """Note how busy the switch was in the window that is over, and how late packets were."""
        now, cpu = time.monotonic_ns(), time.process_time_ns()
        worst = self.counts[WORST_NS]
        self._busiest = max(self._busiest, (cpu - self._window_cpu_ns) / (now - self._window_ns))
        self._worst_ns = max(self._worst_ns, worst)
        if len(self._windows) < _MAX_WINDOWS:
            times_ns = self._window_ns, now, cpu - self._window_cpu_ns, worst
            self._windows.append(tuple(round(time_ns / 1e9, 6) for time_ns in times_ns))
        self._window_ns, self._window_cpu_ns, self.counts[WORST_NS] = now, cpu, 0

    def quantile_us(self, share: float) -> int:
        """The lateness in µs that this share of the packets does not exceed; 0 without packets."""
        left = share * self.counts[PACKETS]
        for late_us, count in enumerate(self.lateness):
            left -= count
            if count and left <= 0:
                return late_us
        return 0

    def document(self) -> dict[str, Any]:
        """The fields of a lab's `Report` that the switch knows."""
        elapsed = max(time.monotonic_ns() - self._began_ns, 1)
        load = (time.process_time_ns() - self._began_cpu_ns) / elapsed
        return {
            "elapsed_s": elapsed / 1e9,
            "packets": self.counts[PACKETS],
            "nbytes": self.counts[NBYTES],
            "lateness_p50_s": self.quantile_us(0.5) / 1e6,
            "lateness_p95_s": self.quantile_us(0.95) / 1e6,
            "lateness_max_s": max(self._worst_ns, self.counts[WORST_NS]) / 1e9,
            "switch_drops": self.counts[DROPS],
            "load": load,
            "busiest_load": max(self._busiest, load),
            "windows": self._windows,
        }


def _become_realtime() -> bool:
    """Turn garbage collection off and ask for SCHED_FIFO; return False if that is refused."""
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
    tuns: Sequence[int], addresses: Sequence[str], ports: Sequence[Any], control: socket.socket
) -> None:
    """Ask for real-time priority; forward packets until the other end of `control` is closed.

    tuns, addresses: the descriptor of each host's device, and its IPv4 address.   ports: the
    arguments of `LinkModel`.
    Any message on `control` asks for the statistics since the last request.
    """
    realtime = _become_realtime()
    links = (_carrier.Carrier if COMPILED else carrier.Carrier)(*ports)
    links.attach(tuns, b"".join(map(socket.inet_aton, addresses)), control.fileno())
    statistics = Statistics()
    while True:
        if not links.forward(statistics.window_ends_ns, statistics.counts, statistics.lateness):
            statistics.close_window()
            continue
        if control_messages.receive(control) is None:
            return
        control_messages.send(control, {**statistics.document(), "punctual": realtime})
        statistics = Statistics()
