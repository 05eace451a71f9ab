"""What holds for every collective of ours, whichever it is; the programs say on what."""

import gc
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.comm.served import NAMES
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.world import World
from collwise.profiles.profile import Profile
from collwise.profiles.records import MeasuredSize, Measurements, RaceResult
from collwise.schedule.program import Schedule

MACHINE = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-9)
ALGORITHMS: tuple[dict[str, str], ...] = (
    {
        "broadcast": "chain", "reduce": "binomial", "allreduce": "ring", "allgatherv": "ring",
        "reduce_scatter_block": "pairwise",
    },
    {
        "broadcast": "scatter_ring", "reduce": "chain_segmented(segment=64)",
        "allreduce": "recursive_doubling", "allgatherv": "bruck",
        "reduce_scatter_block": "as_allreduce",
    },
)  # fmt: skip
"""For each collective, one that sends everything at once or in a ring, and one that cuts it."""


def assumed(world: World, *results: RaceResult) -> Profile:
    """A profile of this machine in which nothing is measured but what was raced."""
    point = MeasuredSize(
        nbytes=8, mode="nonblocking", t0_s=1e-6, lam=2.0, t0_interval_s=None, lam_interval=None,
        t0_experiments_s=(None, None), lam_experiments=(None, None), disagreement=None,
        repetitions=1, segment=0, verdict="assumed",
    )  # fmt: skip
    measured = Measurements(verdict="assumed", provenance=world.provenance(), points=(point,))
    return Profile(fingerprint=world.fingerprint(), measurements=measured, race_results=results)


def distinct(comm: MPI.Intracomm, made: Iterable[Schedule]) -> list[Schedule]:
    """Schedules of which no two have the same lists for the same problem: they run alike."""
    every = list(made)
    keep: list[int] | None = None
    if comm.rank == 0:  # it makes the lists of all ranks, which takes longer than running them
        seen = {(one.problem, one.lists): place for place, one in enumerate(reversed(every))}
        keep = [len(every) - 1 - place for place in seen.values()]
    return [every[place] for place in sorted(comm.bcast(keep))]


def accepts(call: Callable[..., Any], *given: Any) -> bool:
    """Whether a call raises nothing."""
    try:
        call(*given)
    except Exception:
        return False
    return True


def run(request: Any) -> None:
    """Start a persistent collective once, and give it back."""
    request.Start()
    request.Wait()
    request.Free()


def complete(request: PersistentCollective, *, testing: bool) -> None:
    """By `Wait`, or by `Test` again and again."""
    while testing and not request.Test():
        time.sleep(0)  # others need the core
    request.Wait()


def allocates_nothing(*acts: Callable[[], object]) -> None:
    """What is done again and again leaves no more objects each time: six would be six more."""
    gc.disable()
    grown = []
    for _ in range(3):
        before = sys.getallocatedblocks()
        for _ in range(6):
            for act in acts:
                act()
        grown.append(sys.getallocatedblocks() - before)
    gc.enable()
    assert min(grown) < 5, grown


class Call:
    """A collective call's buffers of integers, and what has to be in them in the end."""

    def __init__(
        self, comm: MPI.Intracomm, method: str, count: int, root: int = 0, op: MPI.Op = MPI.SUM
    ) -> None:
        parts = comm.size
        self.comm, self.method, self.root, self.op, self.salt = comm, method, root, op, 0
        self.given: Any = np.zeros(count * (parts if method.endswith("block") else 1), "i4")
        self.result: Any = np.zeros(count * (parts if method.startswith("Allg") else 1), "i4")
        self.counts = [count] * parts

    def fill(self, salt: int) -> None:
        """Data of this rank's, and something wrong where the result will be."""
        self.salt, rank = salt, self.comm.rank
        self.given[:] = np.arange(len(self.given)) + 1000 * salt + rank
        self.result[:] = self.given if (self.method, rank) == ("Bcast", self.root) else -1

    def make(self, ours: Any, way: Way = "blocking") -> Any:
        """Call it in some form: a request is returned."""
        into = [self.result, self.counts] if self.method == "Allgatherv" else self.result
        arguments = [self.result] if self.method == "Bcast" else [self.given, into]
        arguments += [self.op] if "educe" in self.method else []
        arguments += [self.root] if self.method in ("Bcast", "Reduce") else []
        return getattr(ours, NAMES[way, self.method])(*arguments)

    def right(self) -> Any:
        """What the result has to be."""
        rank, size = self.comm.rank, self.comm.size
        every = [np.arange(len(self.given)) + 1000 * self.salt + other for other in range(size)]
        if self.method == "Bcast":
            return every[self.root]
        if self.method.startswith("Allgather"):
            return np.concatenate(every)
        if self.method == "Reduce_scatter_block":
            return sum(every).reshape(size, -1)[rank]  # type: ignore[union-attr]
        return sum(every) if self.method == "Allreduce" or rank == self.root else -1

    def check(self) -> None:
        """Compare; the rank's own data is as it was."""
        right = np.broadcast_to(self.right(), self.result.shape)
        assert np.array_equal(self.result, right), (self.method, self.salt)


def works(comm: MPI.Intracomm) -> None:
    """A communicator on which collectives of all kinds do what they should."""
    for method, root in (("Bcast", comm.size - 1), ("Allreduce", 0), ("Allgatherv", 0)):
        call = Call(comm, method, 50, root)
        call.fill(1)
        call.make(comm)
        call.check()
