"""A large table that every rank reads: one copy on each node.  On ranks: mpiexec -n 4."""

import numpy as np
from mpi4py import MPI

import collwise as cw

comm = cw.Comm(MPI.COMM_WORLD, profile=False)
squares = np.arange(100_000.0) ** 2 if comm.rank == 0 else None  # only the root needs it

with comm.share(squares) as table:  # read-only, in memory that the node's ranks share
    mine = table[comm.rank :: comm.size]
    total = comm.allreduce(float(mine.sum()))
    if comm.rank == 0:
        print(f"{table.nbytes:,} bytes on each node, whose sum is {total:.0f}")
    del mine  # the memory is given back once no view of it is left
