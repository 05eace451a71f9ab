"""What holds for every collective of ours, whichever it is; the programs say on what."""

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.decision import HINT
from collwise.comm.recording import Way
from collwise.comm.served import NAMES
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.world import World
from collwise.profiles.profile import Profile
from collwise.profiles.records import RaceResult
from collwise.schedule.program import Schedule
from tests.profiles.example import point, profile

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
PLANNED: dict[str, Any] = {"machine": MACHINE, "algorithms": ALGORITHMS[0]}
"""Settings with which plans serve everything, and nothing is searched for."""


def assumed(world: World, *won: RaceResult) -> Profile:
    """A profile of this machine in which nothing is measured but what was raced."""
    return profile(
        [point(8, lam=2.0)],
        medians=(),
        provenance=world.provenance(),
        fingerprint=world.fingerprint(),
        race_results=won,
    )


@contextmanager
def wrapped(comm: MPI.Intracomm, **settings: Any) -> Iterator[cw.Comm]:
    """A communicator of ours on a duplicate, without a profile; freed in the end."""
    ours = cw.Comm(comm.Dup(), profile=False, **settings)
    yield ours
    ours.Free()


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


def run(request: Any, starts: int = 1) -> None:
    """Start a persistent collective so often, and give it back."""
    for _ in range(starts):
        request.Start()
        request.Wait()
    request.Free()


def perform(
    way: Way, comm: Any, method: str, *arguments: Any, starts: int = 1, **named: Any
) -> None:
    """Make a call in some form, to its end.   starts: how often a persistent one is started."""
    end(way, getattr(comm, NAMES[way, method])(*arguments, **named), starts)


def end(way: Way, made: Any, starts: int = 1) -> None:
    """Bring what a call returned to its end."""
    if way == "persistent":
        run(made, starts)
    elif way == "nonblocking":
        made.Wait()


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


def hint(comm: cw.Comm, algorithms: str) -> None:
    """Choose algorithms by an info key."""
    info = MPI.Info.Create({HINT: algorithms})
    try:
        comm.Set_info(info)
    finally:
        info.Free()


@contextmanager
def adding(act: Callable[[], object] = bool) -> Iterator[MPI.Op]:
    """A user's sum of 32-bit integers that does something else, too."""

    def add(left: Any, right: Any, _: MPI.Datatype) -> None:
        total = np.frombuffer(right, "i4")
        total += np.frombuffer(left, "i4")
        act()

    op = MPI.Op.Create(add, commute=True)
    yield op
    op.Free()


def mapped() -> int:
    """How many mappings this process has of memory that it shares with others."""
    gc.collect()
    return Path("/proc/self/maps").read_text().count("/memfd:collwise")


def resident_kib() -> int:
    """The memory of this process, without what it shares with others."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0])


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

    def run(self, ours: Any, way: Way = "blocking", starts: int = 1) -> None:
        """Call it in some form, and look at the result."""
        end(way, self.make(ours, way), starts)
        self.check()

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


def check_call(
    ours: Any, method: str, count: int, root: int = 0, way: Way = "blocking", salt: int = 1
) -> None:
    """Make a call, once, and look at the result."""
    call = Call(ours, method, count, root)
    call.fill(salt)
    call.run(ours, way)


def works(comm: MPI.Intracomm) -> None:
    """A communicator on which collectives of all kinds do what they should."""
    for method, root in (("Bcast", comm.size - 1), ("Allreduce", 0), ("Allgatherv", 0)):
        check_call(comm, method, 50, root)
