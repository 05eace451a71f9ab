"""Calls of all kinds, each with a size of its own; prints the memory of rank 0 in KiB in between.

python -m tests.mpi.many_sizes SIZES
"""

import sys

import numpy as np
from mpi4py import MPI

import collwise as cw
from tests.mpi.programs.alike import resident_kib, run

ALGORITHMS = {"broadcast": "binomial", "allreduce": "recursive_doubling", "allgatherv": "ring"}


def main(sizes: int) -> None:
    ours = cw.Comm(MPI.COMM_WORLD, profile=False, algorithms=ALGORITHMS)
    for size in range(1, sizes + 1):
        mine, total = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        match size % 5:
            case 0:
                ours.Bcast(mine)
            case 1:
                ours.Allreduce(mine, total)
            case 2:
                ours.Ibcast(mine).Wait()
            case 3:
                ours.Allgather(mine, np.zeros(size * ours.size, np.uint8))
            case _:
                run(ours.Bcast_init(mine))
        if size in (sizes // 5, sizes) and ours.rank == 0:
            print(resident_kib(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
