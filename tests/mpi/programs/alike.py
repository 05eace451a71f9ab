"""What holds for every collective of ours, whichever it is; the programs say on what."""

import gc
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.progress import running
from collwise.schedule.program import Schedule


def distinct(comm: MPI.Intracomm, made: Iterable[Schedule]) -> list[Schedule]:
    """Schedules of which no two have the same lists for the same problem: they run alike."""
    every = list(made)
    keep: list[int] | None = None
    if comm.rank == 0:  # it makes the lists of all ranks, which takes longer than running them
        seen = {(one.problem, one.lists): place for place, one in enumerate(reversed(every))}
        keep = [len(every) - 1 - place for place in seen.values()]
    return [every[place] for place in sorted(comm.bcast(keep))]


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


def run_in_different_orders(
    comm: MPI.Intracomm,
    requests: Sequence[PersistentCollective],
    fill: Callable[[int, int], None],
    right: Callable[[int, int], bool],
    between: Callable[[], None] = lambda: None,
) -> None:
    """Every rank starts them in an order of its own and completes them in the opposite one.

    fill, right: put data in, look at the result; of which request, for how manyth time.   between:
    what is done while they run.
    """
    order = list(np.random.default_rng(comm.rank).permutation(len(requests)))
    for again in range(4):
        for number in order:
            fill(number, again)
            requests[number].Start()
        between()
        for number in reversed(order):
            complete(requests[number], testing=number % 2 == 1)
        for number in range(len(requests)):
            assert right(number, again), (number, again)


def run_while_ranks_are_elsewhere(comm: MPI.Intracomm, request: PersistentCollective) -> None:
    """Nobody but the last rank calls collwise until its part is complete.

    Legal with the library's own: everybody else waits for a message that the last rank sends only
    then.
    """
    token = np.zeros(1)
    request.Start()
    if comm.rank == comm.size - 1:
        request.Wait()
        for other in range(comm.size - 1):
            comm.Send(token, other)
    else:
        comm.Recv(token, comm.size - 1)
        request.Wait()
    assert not running()


def allocates_nothing(*acts: Callable[[], object]) -> None:
    """What is done again and again leaves no more objects each time."""
    gc.disable()
    grown = []
    for _ in range(3):
        before = sys.getallocatedblocks()
        for _ in range(10):
            for act in acts:
                act()
        grown.append(sys.getallocatedblocks() - before)
    gc.enable()
    assert min(grown) < 5, grown


def works(comm: MPI.Intracomm) -> None:
    """A communicator on which collectives of all kinds do what they should."""
    size, rank = comm.size, comm.rank
    data = np.full(50, float(rank))
    comm.Bcast(data, size - 1)
    assert (data == size - 1).all()
    total = np.zeros(3)
    comm.Allreduce(np.full(3, rank + 1.0), total)
    assert (total == size * (size + 1) / 2).all()
    everything = np.zeros(2 * size, np.int32)
    comm.Allgatherv(np.full(2, rank, np.int32), [everything, [2] * size])
    assert np.array_equal(everything, np.repeat(np.arange(size), 2))
