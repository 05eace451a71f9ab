"""A clock that all ranks share, and common starts by it.

Processes on one kernel and in one time namespace share the monotonic clock, on emulated hosts, too.
On other hosts, the offset to rank 0's clock is taken from the fastest of some exchanges, assuming
half a round trip each way.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from mpi4py import MPI

_EXCHANGES = 25
_SPIN_S = 100e-6
"""Where ranks share cores, a rank sleeps until this many seconds before the end of a wait, and only
then spins: a spinning rank keeps the core from others."""
_LONGEST_NOTICE_S = 2e-3
"""The longest notice of a `StartingLine` on one host; other hosts add _LONGEST_TRIPS trips of a
message."""
_LONGEST_TRIPS = 20


class CommonClock:
    """Rank 0's clock, as every rank can read it.  Making one is collective over `comm`.

    offset_s: seconds to add to this rank's own clock.   uncertainty_s: the largest error of the
    offset, half of the fastest round trip (0 with rank 0's clock).   trip_s: seconds of a message
    from rank 0 (0 on its host).
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.offset_s = 0.0
        self.trip_s = 0.0
        places = comm.allgather((MPI.Get_processor_name(), _kernel()))
        for rank, (host, _) in enumerate(places):
            if host == places[0][0]:
                continue
            if comm.Get_rank() == 0:
                self._answer(rank)
            elif comm.Get_rank() == rank:
                self._ask()
        if places[comm.Get_rank()][1] == places[0][1]:
            self.offset_s = 0.0
        self.uncertainty_s = self.trip_s if self.offset_s else 0.0

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
        self.trip_s = best / 2

    def _answer(self, rank: int) -> None:
        reading = np.zeros(1)
        for _ in range(_EXCHANGES):
            self._comm.Recv(reading, rank, 0)
            reading[0] = time.perf_counter()
            self._comm.Send(reading, rank, 0)


class StartingLine:
    """Starts all ranks at one moment, which the last rank to arrive at the line announces.

    So no rank starts while others, or the network, are busy with what was timed before: a rank that
    only sends is done long before its messages have arrived.

    The notice is the time between the announcement and the start.  It doubles, up to a limit, if
    more than a tenth of the starts found a rank late, and shrinks if fewer than 2 % did.
    apart: whether a rank is on another host than rank 0.
    """

    def __init__(self, comm: MPI.Intracomm, clock: CommonClock, *, oversubscribed: bool) -> None:
        self._comm = comm
        self._clock = clock
        # Ranks that share a core must let each other reach the line.
        self._pause = getattr(os, "sched_yield", None) if oversubscribed else None
        # How many one-way trips an allreduce takes, about.
        trips = comm.Get_size().bit_length() + 1
        slowest = comm.allreduce(clock.trip_s, MPI.MAX)
        self.apart = slowest > 0
        self._longest_notice_s = _LONGEST_NOTICE_S + _LONGEST_TRIPS * slowest
        self.notice_s = 50e-6 * min(max(2, comm.Get_size()), 20) + trips * slowest
        self._named = np.zeros(1)

    def line_up(self, after_s: float | None = None) -> tuple[float, bool]:
        """Wait for the next common start.

        after_s: seconds from the start before to this one, equal on all ranks, which then exchange
        no messages; None: the ranks agree on a start.
        Returns the time by the common clock at which this rank started, and whether it was at the
        line in time.  A rank that lost its core while it waited starts later than the others.
        """
        now = self._clock.now
        if after_s is None:
            self._named[0] = now() + self.notice_s
            self._comm.Allreduce(MPI.IN_PLACE, self._named, MPI.MAX)
        else:
            self._named[0] += after_s
        moment = float(self._named[0])
        in_time = now() <= moment
        if self._pause is not None and (early := moment - now() - _SPIN_S) > 0:
            time.sleep(early)
        while (began := now()) < moment:
            if self._pause is not None:
                self._pause()
        return began, in_time

    def adapt(self, late: float) -> None:
        """Change the notice.   late: the share of starts that found a rank late."""
        if late > 0.1:
            self.notice_s = min(self.notice_s * 2, self._longest_notice_s)
        elif late < 0.02:
            self.notice_s = max(self.notice_s * 0.9, 20e-6)


def _kernel() -> str:
    """A text that is equal for processes with the same monotonic clock, and differs for others."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return boot + os.readlink("/proc/self/ns/time")  # noqa: PTH115
    return MPI.Get_processor_name()
