"""Which ranks of MPI's world run under `collwise run`, asked without disturbing those that do not.

Wrapping COMM_WORLD is collective, and a rank that runs another program never takes part.  Whatever
is sent on COMM_WORLD to find out could match something of that program's.  MPI's name service is
the launcher's, and touches no communicator.  So each rank publishes a name there, rank 0 looks for
all names, and publishes what all of them obey; the first such verdict counts.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import monotonic, sleep

from mpi4py import MPI

log = logging.getLogger("collwise")

LIMIT_S = 5.0
"""Seconds for which ranks are waited for.  They leave MPI_Init together, and come right then."""
PATIENCE_S = 30.0
"""After so many seconds of wrapping, a line says that it waits for all ranks."""
_MOST_NAMED = 16


def absent() -> str:
    """The ranks that do not run under `collwise run`, such as "2, 3"; empty if all do.

    Equal on all ranks that ask; one of them logs a warning.  Ranks that were spawned, and a
    launcher without a name service, cannot tell: then all ranks are taken to be there.
    """
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    if ranks == 1 or MPI.Comm.Get_parent() != MPI.COMM_NULL:
        return ""
    handled = [(comm, comm.Get_errhandler()) for comm in (world, MPI.COMM_SELF)]
    for comm, _ in handled:
        comm.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        return _verdict(rank, ranks)
    except MPI.Exception as problem:
        log.info("no name service: %s", problem)
        return ""
    finally:
        for comm, handler in handled:
            comm.Set_errhandler(handler)


def _verdict(rank: int, ranks: int) -> str:
    MPI.Publish_name(_name(rank), "here")
    nap_s, latest = max(0.001, 2e-5 * ranks), monotonic() + LIMIT_S
    late = []
    if rank == 0:
        late = [other for other in range(1, ranks) if not _comes(_name(other), latest, nap_s)]
    elif not (_comes(_name(0), latest, nap_s) and _comes(_name(), latest + 2 * LIMIT_S, nap_s)):
        late = [0]
    if rank == 0 or late:
        named = ",".join(map(str, late[:_MOST_NAMED])) + ",..." * (len(late) > _MOST_NAMED)
        with suppress(MPI.Exception):  # another rank was first
            MPI.Publish_name(_name(), f"{rank}/{named}")
    by, _, said = MPI.Lookup_name(_name()).partition("/")
    said = said.replace(",", ", ")
    if said and by == str(rank):
        log.warning(
            "collwise run on rank %d: some ranks run another program, or did not begin within %g s"
            " (%s), so this one runs as without collwise: start all programs of a launch by"
            " `collwise run`",
            *(rank, LIMIT_S, said),
        )
    return said


def _name(rank: int | str = "all") -> str:
    """The name that a rank publishes, or the verdict's; other jobs of this launcher have others."""
    job = os.environ.get("PMIX_NAMESPACE") or os.environ.get("SLURM_STEP_ID", "")
    return f"collwise-run-{job}-{rank}"


def _comes(name: str, latest: float, nap_s: float) -> bool:
    """Whether a name is published by then, on the monotonic clock."""
    while True:
        with suppress(MPI.Exception):
            return bool(MPI.Lookup_name(name))
        if monotonic() > latest:
            return False
        sleep(nap_s)


@contextmanager
def patience() -> Iterator[None]:
    """Say on the first and the last rank if what is inside has taken long."""
    rank, ranks = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    asked = f"collwise run has waited {PATIENCE_S:g} s on rank {rank} for all {ranks} ranks"
    timer = Timer(PATIENCE_S, log.warning, (f"{asked}: start all of them by `collwise run`",))
    timer.name, timer.daemon = "collwise", True
    if rank in (0, ranks - 1):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
