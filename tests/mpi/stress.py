"""`mpiexec -n 4 python -m tests.mpi.stress 100000`: random calls through the memory of a node.

Every result is compared with mpi4py's.  The first rank says whether a byte was wrong, whether ranks
grew after a warm-up, and what the program left in /dev/shm that nobody has mapped.
"""

import sys
import time
from pathlib import Path

from mpi4py import MPI

from tests.mpi.programs.node_memory import TURNS, stress

MOST_KIB = 1024
"""That most ranks may grow by.  A rank without a core for a while keeps what others send it;
where memory leaks, most ranks grow."""
PATIENCE_S = 5
MANY = 10_000
"""Calls from which on growth counts: before, allocators still reserve memory in the later turns."""
SHARED = Path("/dev/shm")


def files() -> set[str]:
    """What is in /dev/shm."""
    return {str(path) for path in SHARED.glob("*")} if SHARED.exists() else set()


def unused(paths: set[str]) -> set[str]:
    """Those that are still there and that no process has mapped."""
    mapped = ""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            mapped += maps.read_text()
        except OSError:  # it has ended, or is not ours
            continue
    return {path for path in paths & files() if path not in mapped}


def main(calls: int) -> str:
    """Make so many calls; returns what was wrong with them."""
    comm, before = MPI.COMM_WORLD, files()
    begin = time.monotonic()
    grown = comm.allgather(stress(comm, calls // TURNS))
    took_s = time.monotonic() - begin
    left, latest = unused(files() - before), time.monotonic() + PATIENCE_S
    while left and time.monotonic() < latest:  # other programs make files, too, and map them later
        time.sleep(0.1)
        left = unused(left)
    if comm.rank == 0:
        print(f"{calls} calls on {comm.size} ranks, {took_s:.0f} s; KiB more, by rank: {grown}")
    too_much = calls >= MANY and sorted(grown)[(comm.size - 1) // 2] > MOST_KIB
    return f"{grown} KiB more" if too_much else f"left: {sorted(left)}" if left else ""


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])) or 0)
