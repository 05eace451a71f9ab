"""What a rank sees of the network: latency, rate, t0 and λ.  Rank 0 prints one line of JSON."""

import json
import os
import socket
import time

import numpy as np
from mpi4py import MPI

from collwise.mpi.bench.measuring import run_campaign
from collwise.mpi.runtime.agreement import on_root
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.world import describe, world
from tests.lab.programs import NBYTES, PIECE, STREAMED

ATTEMPTS = 4


def round_trip_s(comm: MPI.Intracomm, nbytes: int, repetitions: int) -> float:
    """The shortest of some round trips between ranks 0 and 1."""
    data, best = np.zeros(nbytes, np.uint8), float("inf")
    for _ in range(repetitions):
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.Send(data, 1)
            comm.Recv(data, 1)
        elif comm.rank == 1:
            comm.Recv(data, 0)
            comm.Send(data, 0)
        best = min(best, time.perf_counter() - begin)
    return best


def stream_s(comm: MPI.Intracomm) -> float:
    """From the first of many messages to the answer after the last."""
    data = np.zeros(PIECE, np.uint8)
    comm.Barrier()
    begin = time.perf_counter()
    if comm.rank == 0:
        MPI.Request.Waitall([comm.Isend(data, 1) for _ in range(STREAMED)])
        comm.Recv(data[:1], 1)
    elif comm.rank == 1:
        for _ in range(STREAMED):
            comm.Recv(data, 0)
        comm.Send(data[:1], 0)
    return time.perf_counter() - begin


def arrivals(comm: MPI.Intracomm) -> list[int]:
    """The order in which messages arrive that rank 0 sends, by turns, to ranks 1 and 2."""
    data = np.zeros((3, PIECE // 16), np.uint8)
    came: list[tuple[float, int]] = []
    sent: list[MPI.Request] = []
    comm.Barrier()
    for turn in range(3):
        if comm.rank == 0:
            sent += [comm.Isend(data[turn], 1), comm.Isend(data[turn], 2)]
        elif comm.rank < 3:
            comm.Recv(data[turn], 0)
            came.append((time.monotonic(), 2 * turn + comm.rank - 1))
    MPI.Request.Waitall(sent)
    return [number for _, number in sorted(one for rank in comm.allgather(came) for one in rank)]


def agree(experiments: tuple[float | None, float | None], within: float) -> bool:
    first, second = experiments
    if first is None or second is None:
        return False
    return max(first, second) <= within * min(first, second)


def main() -> None:
    comm = world()
    here = describe(comm)
    private = PrivateCommunicator(comm)
    memory = comm.Split_type(MPI.COMM_TYPE_SHARED)
    private.comm.Alltoall(MPI.IN_PLACE, np.zeros(comm.size))  # connections are made lazily
    observed = {
        "hosts": comm.allgather(socket.gethostname()),
        "memory": comm.allgather(memory.size),
        "devices": comm.allgather(sorted(os.listdir("/sys/class/net"))),  # noqa: PTH208
        "emulated": here.emulated,
        "oversubscribed": here.oversubscribed,
        "small_s": round_trip_s(comm, 1, 20),
        "large_s": round_trip_s(comm, PIECE, 4),
        "stream_s": stream_s(comm),
        "arrivals": arrivals(comm),
    }
    memory.Free()
    for _ in range(ATTEMPTS):  # on a busy machine the two experiments disagree
        profile = run_campaign(private.comm, here, budget_s=2.0, sizes=[NBYTES])
        point = next(p for p in profile.points if p.mode == "nonblocking")
        if comm.bcast(agree(point.t0_experiments_s, 1.06) and agree(point.lam_experiments, 1.1)):
            break
    private.free()
    observed.update(t0_s=point.t0_s, lam=point.lam, lam_experiments=point.lam_experiments)
    observed["fingerprint"] = profile.fingerprint.emulated
    observed["notes"] = profile.provenance.notes
    on_root(comm, lambda: print(json.dumps(observed), flush=True))


if __name__ == "__main__":
    main()
