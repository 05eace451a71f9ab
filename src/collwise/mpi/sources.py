"""Who has data, and how much, where every rank knows only what it has itself."""

import numpy as np
from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.schedule.problem import Source
from collwise.system.integers import checked_integer


def gather_sources(comm: MPI.Intracomm, nbytes: int) -> tuple[Source, ...]:
    """The ranks that have data, with their bytes, by rank: one allgather of 8 bytes.  Collective.

    nbytes: of this rank, >= 0.   Raises InvalidArgument, on all ranks, for any other value.
    """
    try:
        told = checked_integer(nbytes, "the sources", "nbytes", 0, np.iinfo(np.int64).max)
    except InvalidArgument:  # all ranks shall know
        told = -1
    mine = np.array([told], np.int64)
    every = np.empty(comm.Get_size(), np.int64)
    comm.Allgather(mine, every)
    for rank in np.flatnonzero(every < 0):
        seen = repr(nbytes) if rank == comm.Get_rank() else "no such number"
        raise InvalidArgument(
            "the sources and their lengths",
            f"nbytes of rank {rank} is {seen}",
            "give every rank's own bytes, an integer of at least 0",
        )
    return tuple(Source(rank, n) for rank, n in enumerate(every.tolist()) if n)
