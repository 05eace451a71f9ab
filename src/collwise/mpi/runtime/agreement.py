"""Agreement of ranks: if one of them fails, all raise the same error, so none waits for ever."""

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
_SHORT = 128


def on_root(
    comm: MPI.Intracomm, decide: Callable[[], T], *, takes_long: bool = False, root: int = 0
) -> T:
    """Run `decide` on one rank; all ranks return what it returns, or raise what it raises.

    Collective.  The value is pickled.   takes_long: whether the other ranks sleep until
    `decide` is done; otherwise they may spin in a broadcast.   root: the rank that runs `decide`.
    """
    outcome = _outcome(decide) if comm.Get_rank() == root else b""
    if takes_long:
        wait_asleep(comm)
    told = comm.bcast(outcome, root=root)
    value: T = everywhere(comm, lambda: _returned(told))  # reading it may fail on one rank
    return value


def _outcome(act: Callable[[], object]) -> bytes:
    """A pickle of (result of `act`, None) or (None, its error, if need be as a RuntimeError)."""
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
    """A barrier in which ranks sleep, so that they leave the cores to other processes."""
    reached = comm.Ibarrier()
    while not reached.Test():
        time.sleep(_NAP_S)


def in_team(comm: MPI.Intracomm, members: Sequence[int], act: Callable[[MPI.Intracomm], T]) -> T:
    """Run `act` on some ranks while the others sleep.  Collective.

    members: the ranks that run `act`; it gets a communicator of the members, in this order.  All
    ranks return what `act` returns on the first member, or raise what it raises there.  `act` has
    to fail on all members or on none.
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
    """Run `act` on all ranks; each rank returns its own result.  Collective.

    If `act` raises on any rank, all ranks raise the error of the lowest such rank.
    """
    values: list[T] = []
    gathered(comm, lambda: values.append(act()))
    return values[0]


def gathered(comm: MPI.Intracomm, act: Callable[[], T]) -> list[T]:
    """Run `act` on all ranks; return every rank's result, in rank order.  Collective.

    Results are pickled.  If `act` raises on any rank, all ranks raise the error of the lowest such
    rank.  So whatever can fail on one rank before an allgather belongs into `act`.
    """
    return [_returned(outcome) for outcome in allgather(comm, _outcome(act))]


def allgather(comm: MPI.Intracomm, value: T) -> list[T]:
    """Every rank's value, pickled; in one round of messages if all are short.  Collective."""
    pickled = MPI.pickle.dumps(value)
    own = (b"\1" + pickled if len(pickled) < _SHORT else b"").ljust(_SHORT, b"\0")
    every = bytearray(_SHORT * comm.Get_size())
    comm.Allgather([own, MPI.BYTE], [every, MPI.BYTE])
    if not all(every[::_SHORT]):
        return comm.allgather(value)  # it sends lengths first
    return [MPI.pickle.loads(every[at : at + _SHORT]) for at in range(1, len(every), _SHORT)]


def gather_sources(comm: MPI.Intracomm, nbytes: int) -> tuple[Source, ...]:
    """The ranks that contribute data, and the bytes of each, in rank order.  Collective.

    nbytes: the bytes that this rank contributes, >= 0.
    Raises InvalidArgument on all ranks if any rank passes another value.
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
