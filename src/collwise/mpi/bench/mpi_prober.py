"""Times the probes of `measure` on real MPI."""

import time
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

from collwise.measure.probes import Probe
from collwise.schedule.operations import Recv, Send

_TAG = 0
_SETTLING_S = 20e-6


class Prober:
    """Times probes on a communicator, which should be private.

    As in the execution of a plan, receives are posted and sends are prepared as persistent requests
    before the clock is read.
    """

    def __init__(self, comm: MPI.Intracomm, largest: int) -> None:
        self._comm = comm
        self._rank = comm.Get_rank()
        self._out = np.zeros(largest, dtype=np.uint8)
        self._largest = largest
        self._in: list[np.typing.NDArray[np.uint8]] = []  # one for each message on its way here

    def run(self, probes: Sequence[Probe]) -> list[float]:
        """Seconds that each probe took, on rank 0; all zeros on the others.  Collective."""
        return [self._one(probe) for probe in probes]

    def _one(self, probe: Probe) -> float:
        comm = self._comm
        operations = probe.operations(self._rank)
        out = self._out[: probe.nbytes]
        sources = [op.peer for op in operations if isinstance(op, Recv)]
        while len(self._in) < len(sources):
            self._in.append(np.zeros(self._largest, dtype=np.uint8))
        receives = [
            comm.Irecv(into[: probe.nbytes], source, _TAG)
            for source, into in zip(sources, self._in, strict=False)
        ]
        targets = [op.peer for op in operations if isinstance(op, Send)]
        sends: list[MPI.Prequest] = []
        if not probe.blocking:
            sends = [comm.Send_init(out, target, _TAG) for target in targets]
        comm.Barrier()
        if self._rank == 0:  # the others leave the barrier a little later: let them settle
            settled = time.perf_counter() + _SETTLING_S
            while time.perf_counter() < settled:
                pass
        begin = time.perf_counter()
        if self._rank:  # P_k answers when everything has come; the others only listen
            MPI.Request.Waitall(receives)
        if probe.blocking:
            for target in targets:
                comm.Send(out, target, _TAG)
        elif sends:
            MPI.Prequest.Startall(sends)
        if self._rank == 0:
            MPI.Request.Waitall(receives)
        if sends:
            MPI.Request.Waitall(sends)
        elapsed = time.perf_counter() - begin
        for request in sends:
            request.Free()
        return elapsed if self._rank == 0 else 0.0
