"""Which ranks of MPI's world run under `collwise run`, asked without disturbing those that do not.

Wrapping COMM_WORLD is collective, and a rank that runs another program never takes part.  Whatever
is sent on COMM_WORLD to find out could match something of that program's.  MPI's name service is
the launcher's, and touches no communicator.  So each rank publishes a name there, rank 0 looks for
all names, and publishes a verdict; all ranks obey the first one.
"""

import logging
import os
from contextlib import ExitStack, suppress
from threading import Timer
from time import monotonic, sleep

from mpi4py import MPI

log = logging.getLogger("collwise")

LIMIT_S = 5.0
"""Seconds for which ranks are waited for.  They leave MPI_Init together, and come right then."""
PATIENCE_S = 30.0
"""Seconds after which, without a name service, a line says that wrapping waits for all ranks."""
_REMEDY = "start all programs of a launch by `collwise run`"


def absent() -> str:
    """The ranks that do not run under `collwise run`, such as "2, 3"; empty if all do.

    Equal on all ranks that ask; one of them logs a warning.  Spawned ranks, and those of a launcher
    without a name service, cannot tell: the result is empty.
    """
    world = MPI.COMM_WORLD
    if world.Get_size() == 1 or MPI.Comm.Get_parent() != MPI.COMM_NULL:
        return ""
    with ExitStack() as later:
        for comm in (world, MPI.COMM_SELF):
            later.callback(comm.Set_errhandler, comm.Get_errhandler())
            comm.Set_errhandler(MPI.ERRORS_RETURN)
        try:
            return _verdict(world.Get_rank(), world.Get_size())
        except MPI.Exception:
            timer = Timer(PATIENCE_S, _say_that_it_waits)
            timer.name, timer.daemon = "collwise", True
            timer.start()
            return ""


def _verdict(rank: int, ranks: int) -> str:
    MPI.Publish_name(_name(rank), "here")
    nap_s, latest, late = max(0.001, 2e-5 * ranks), monotonic() + LIMIT_S, []
    if rank == 0:
        late = [other for other in range(1, ranks) if not _comes(_name(other), latest, nap_s)]
    elif not (_comes(_name(0), latest, nap_s) and _comes(_name(), latest + 2 * LIMIT_S, nap_s)):
        late = [0]
    if rank == 0 or late:
        named = ",".join(map(str, late[:16])) + ",..." * (len(late) > 16)
        with suppress(MPI.Exception):  # another rank was first
            MPI.Publish_name(_name(), f"{rank}/{named}")
    by, _, said = MPI.Lookup_name(_name()).partition("/")
    said = said.replace(",", ", ")
    if said and by == str(rank):
        seen = f"some ranks run another program, or did not begin within {LIMIT_S:g} s ({said})"
        asked = f"collwise run on rank {rank}"
        log.warning("%s: %s, so this one runs as without collwise: %s", asked, seen, _REMEDY)
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


def _say_that_it_waits() -> None:
    rank, ranks = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    if type(MPI.COMM_WORLD) is MPI.Intracomm and rank in (0, ranks - 1):
        log.warning("collwise run on rank %d: it waits for all %d ranks: %s", rank, ranks, _REMEDY)
