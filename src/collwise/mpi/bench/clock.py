"""A clock that all ranks share, and common starts by it.

On one kernel the monotonic clock is common to all processes.  Between hosts its offset to rank 0's
is taken from the fastest of some exchanges, half a round trip each way.
"""

import os
import time

import numpy as np
from mpi4py import MPI

_EXCHANGES = 25
_SPIN_S = 300e-6
"""Where ranks share cores, waits longer than this sleep first, so that all can arrive."""
_WAKE_S = 100e-6
"""Time for waking one of the ranks that share cores."""
_LONGEST_NOTICE_S = 2e-3
"""On one host; between hosts the news of a start travels first, perhaps behind other messages."""
_LONGEST_TRIPS = 20


class CommonClock:
    """Rank 0's clock, as every rank can read it.  Making one is collective over `comm`.

    offset_s: what to add to this rank's own clock.   uncertainty_s: half of the fastest round trip
    (0 on rank 0's own host).
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.offset_s = 0.0
        self.uncertainty_s = 0.0
        hosts = comm.allgather(MPI.Get_processor_name())
        for rank in range(1, comm.Get_size()):
            if hosts[rank] == hosts[0]:
                continue
            if comm.Get_rank() == 0:
                self._answer(rank)
            elif comm.Get_rank() == rank:
                self._ask()

    def now(self) -> float:
        """Seconds on rank 0's monotonic clock."""
        return time.perf_counter() + self.offset_s

    def _ask(self) -> None:
        reading = np.zeros(1)
        best = float("inf")
        for _ in range(_EXCHANGES):
            sent = time.perf_counter()
            self._comm.Send(reading, 0, 0)
            self._comm.Recv(reading, 0, 0)
            back = time.perf_counter()
            if back - sent < best:
                best = back - sent
                self.offset_s = float(reading[0]) - (sent + back) / 2
        self.uncertainty_s = best / 2

    def _answer(self, rank: int) -> None:
        reading = np.zeros(1)
        for _ in range(_EXCHANGES):
            self._comm.Recv(reading, rank, 0)
            reading[0] = time.perf_counter()
            self._comm.Send(reading, rank, 0)


class StartingLine:
    """Common starts: rank 0 names a moment a little ahead, everybody waits for it.

    The notice doubles when more than a tenth of the starts were late, and shrinks below 2 %.  Where
    even the longest notice does not bring everybody in time (more ranks than cores), lateness up
    to `tolerance_s` is let pass; times count from the moment named, so nobody looks faster by it.
    """

    def __init__(self, comm: MPI.Intracomm, clock: CommonClock, *, crowded: bool) -> None:
        self._comm = comm
        self._clock = clock
        # Ranks that share a core must let each other reach the line.
        self._pause = getattr(os, "sched_yield", None) if crowded else None
        self._spin_s = max(_SPIN_S, _WAKE_S * comm.Get_size())
        # A broadcast takes at most so many one-way trips (half of a round trip each).
        trips = comm.Get_size().bit_length() + 1
        slowest = comm.allreduce(clock.uncertainty_s, MPI.MAX)
        self._longest_notice_s = _LONGEST_NOTICE_S + _LONGEST_TRIPS * slowest
        self.notice_s = 50e-6 * min(max(2, comm.Get_size()), 20) + trips * slowest
        self.tolerance_s = 0.0
        self._named = np.zeros(2)

    def line_up(self) -> tuple[float, bool]:
        """Wait for the next common moment.  Returns it, and whether this rank was there in time."""
        now = self._clock.now
        if self._comm.Get_rank() == 0:
            self._named[:] = now() + self.notice_s, self.tolerance_s
        self._comm.Bcast(self._named, root=0)
        moment, tolerance = map(float, self._named)
        if self._pause is not None and (early := moment - now() - self._spin_s) > 0:
            time.sleep(early)
        on_time = now() <= moment + tolerance
        while now() < moment:
            if self._pause is not None:
                self._pause()
        return moment, on_time

    def adapt(self, late: float) -> None:
        """Change notice and tolerance by the share of late starts."""
        if late > 0.1 and self.notice_s >= self._longest_notice_s:
            self.tolerance_s = max(2 * self.tolerance_s, 10e-6)
        elif late > 0.1:
            self.notice_s = min(self.notice_s * 2, self._longest_notice_s)
        elif late < 0.02:
            self.notice_s = max(self.notice_s * 0.9, 20e-6)
