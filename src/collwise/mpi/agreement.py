"""One rank decides, all ranks know: results and errors alike, so that nobody waits for nobody."""

import time
from collections.abc import Callable
from typing import TypeVar

from mpi4py import MPI

T = TypeVar("T")


_NAP_S = 0.01


def on_root(comm: MPI.Intracomm, decide: Callable[[], T], *, takes_long: bool = False) -> T:
    """What `decide` returns on rank 0, on all ranks; what it raises there, all ranks raise.

    Collective.  The value travels as a Python object.   takes_long: the others sleep meanwhile, so
    that they do not take the cores from it, which MPI libraries do while they wait.
    """
    outcome: tuple[T | None, Exception | None] | None = None
    if comm.Get_rank() == 0:
        try:
            outcome = (decide(), None)
        except Exception as problem:
            outcome = (None, problem)
    if takes_long:
        decided = comm.Ibarrier()
        while not decided.Test():
            time.sleep(_NAP_S)
    outcome = comm.bcast(outcome, root=0)
    assert outcome is not None
    value, failure = outcome
    if failure is not None:
        raise failure
    return value  # type: ignore[return-value]


def everywhere(comm: MPI.Intracomm, act: Callable[[], T]) -> T:
    """What `act` returns on this rank; if it raises on any rank, every rank raises.  Collective.

    The error of the lowest rank that has one is raised everywhere.
    """
    value: T | None = None
    problem: Exception | None = None
    try:
        value = act()
    except Exception as seen:
        problem = seen
    problems = comm.allgather(problem)
    first = next((p for p in problems if p is not None), None)
    if first is not None:
        raise first
    return value  # type: ignore[return-value]
