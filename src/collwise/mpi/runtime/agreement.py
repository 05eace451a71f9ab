"""Agreement of ranks: all of them get the same results and errors, so none waits for ever."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.schedule.problem import Source
from collwise.system.integers import checked_integer

T = TypeVar("T")
_NAP_S = 0.01


def on_root(
    comm: MPI.Intracomm, decide: Callable[[], T], *, takes_long: bool = False, root: int = 0
) -> T:
    """Run `decide` on one rank; all ranks return what it returns, or raise what it raises.

    Collective.  The value is pickled.   takes_long: the other ranks sleep meanwhile; in a
    broadcast they would spin and take the cores from it.
    """
    outcome = _outcome(decide) if comm.Get_rank() == root else b""
    if takes_long:
        wait_asleep(comm)
    value: T = _returned(comm.bcast(outcome, root=root))
    return value


def _outcome(act: Callable[[], object]) -> bytes:
    """What an act returns, or what it raises, as a pickle."""
    try:
        return MPI.pickle.dumps((act(), None))
    except Exception as problem:
        try:
            return MPI.pickle.dumps((None, problem))
        except Exception:
            text = f"{type(problem).__name__}: {problem}"
            return MPI.pickle.dumps((None, RuntimeError(text)))


def _returned(outcome: bytes) -> Any:
    value, failure = MPI.pickle.loads(outcome)
    if failure is not None:
        raise failure
    return value


def wait_asleep(comm: MPI.Intracomm) -> None:
    """A barrier in which ranks sleep; MPI's own would spin and take the cores from others."""
    reached = comm.Ibarrier()
    while not reached.Test():
        time.sleep(_NAP_S)


def in_team(comm: MPI.Intracomm, members: Sequence[int], act: Callable[[MPI.Intracomm], T]) -> T:
    """Run `act` on some ranks while the others sleep.  Collective.

    members: the ranks; `act` gets a communicator of them, in this order.  All ranks return what it
    returns on the first member, or raise what it raises there.  `act` has to fail on all members
    or on none.
    """
    mine = comm.Get_rank() in members
    colour, key = (0, members.index(comm.Get_rank())) if mine else (MPI.UNDEFINED, 0)
    team = comm.Split(colour, key)
    outcome = b""
    if mine:
        outcome = _outcome(lambda: act(MPI.Intracomm(team)))
        team.Free()
    wait_asleep(comm)
    value: T = _returned(comm.bcast(outcome, root=members[0]))
    return value


def everywhere(comm: MPI.Intracomm, act: Callable[[], T]) -> T:
    """Run `act` on all ranks and return its result; if it raises on one, all raise.  Collective.

    The error is that of the lowest rank that has one.
    """
    values: list[T] = []
    for problem in comm.allgather(_outcome(lambda: values.append(act()))):
        _returned(problem)
    return values[0]


def gather_sources(comm: MPI.Intracomm, nbytes: int) -> tuple[Source, ...]:
    """The ranks that have data and their bytes, in rank order, by an allgather of 8 bytes each.

    Collective.   nbytes: this rank's bytes, >= 0.
    Raises InvalidArgument, on all ranks, for any other value.
    """
    try:
        own = checked_integer(nbytes, "the sources", "nbytes", 0, np.iinfo(np.int64).max)
    except InvalidArgument:  # every rank has to learn of it
        own = -1
    lengths = np.empty(comm.Get_size(), np.int64)
    comm.Allgather(np.array([own], np.int64), lengths)
    for rank in np.flatnonzero(lengths < 0):
        seen = repr(nbytes) if rank == comm.Get_rank() else "no such number"
        raise InvalidArgument(
            "the sources and their lengths",
            f"nbytes of rank {rank} is {seen}",
            "give every rank's own bytes, an integer of at least 0",
        )
    return tuple(Source(rank, n) for rank, n in enumerate(lengths.tolist()) if n)
