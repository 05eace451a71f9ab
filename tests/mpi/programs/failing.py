"""What fails on one rank only: all ranks end alike, with the same error or the same service."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm import agreed_decision, checking, communicator, dispatch, family, sharing
from collwise.comm.checking import ENVIRONMENT
from collwise.comm.decision import Decision
from collwise.mpi.engine import node_transport
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.library import own_algorithms, switching
from collwise.mpi.runtime import agreement, node_memory, private_communicator, roll_call, world
from tests.mpi.programs.checks import check, environment, logged, raises, replaced
from tests.mpi.programs.learning import ENOUGH, learner
from tests.mpi.programs.node_memory import shared, uses_memory


class Replaced:
    """A module with other functions."""

    def __init__(self, module: Any, **functions: Callable[..., Any]) -> None:
        self._module = module
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def failing_at(comm: MPI.Intracomm, owner: Any, name: str, error: Exception) -> Iterator[None]:
    """On the last rank, this function first does its work, if it is collective, and then raises."""
    real = getattr(owner, name)

    def fail(*arguments: Any, **named: Any) -> NoReturn:
        if name == "plain_duplicate":
            real(*arguments, **named)
        raise error

    last = comm.rank == comm.size - 1
    with replaced(owner, **{name: fail}) if last else replaced(owner):
        yield


def ends_alike(comm: MPI.Intracomm, act: Callable[[], object]) -> object:
    """What `act` returns, or the error that it raises, in words; the same on all ranks."""
    try:
        outcome = act()
    except (cw.errors.CollwiseError, OSError, MemoryError, MPI.Exception) as problem:
        outcome = f"{type(problem).__name__}: {problem}"
    every = comm.allgather(outcome)
    assert len(set(every)) == 1, every
    return outcome


def broadcasts(ours: cw.Comm) -> bool:
    """Whether a broadcast by this communicator is right, and a broadcast by its duplicate."""
    for one in (ours, ours.Dup()):
        data = np.full(300, float(ours.rank))
        one.Bcast(data, ours.size - 1)
        assert (data == ours.size - 1).all()
    one.Free()
    used = uses_memory(ours)
    ours.Free()
    return used


NO_MEMORY, NO_FILE = MemoryError("none is left"), OSError(24, "Too many open files")
WRAPPING = (
    (agreed_decision, "_version", NO_FILE),
    (world, "affinity", NO_FILE),
    (family, "Dispatch", NO_MEMORY),
    (family, "ArgumentExchange", NO_MEMORY),
    (checking, "plain_duplicate", NO_MEMORY),
    (communicator, "Learning", NO_MEMORY),
    (own_algorithms, "digest", NO_FILE),
)
"""Steps of wrapping that fail: the ranks raise the same error."""
SERVED = (
    (node_memory, "_made", NO_MEMORY),
    (node_memory, "_mapped", NO_FILE),
    (os, "urandom", NO_FILE),
    (private_communicator, "plain_duplicate", NO_MEMORY),
)
"""Steps without which messages serve, or the library."""


def wrapped(comm: MPI.Intracomm) -> bool:
    named = {"broadcast": "chain", "allreduce": "library:recursive_doubling"}
    with environment(comm, {ENVIRONMENT: "1"}):
        return broadcasts(shared(comm, named, learn="1%"))


@check
def a_step_of_wrapping_that_fails_on_one_rank(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    fine = ends_alike(comm, lambda: wrapped(comm))
    assert fine is (COMPILED is not None)
    for owner, name, error in WRAPPING:
        with failing_at(comm, owner, name, error):
            seen = ends_alike(comm, lambda: wrapped(comm))
        assert str(error) in str(seen), (name, seen)
    for owner, name, error in SERVED:
        with failing_at(comm, owner, name, error):
            seen = ends_alike(comm, lambda: broadcasts(shared(comm)))
        # The rank that makes the memory is the first one.
        assert seen is (name in ("_made", "urandom") and fine), (name, seen)
    assert ends_alike(comm, lambda: wrapped(comm)) == fine


@check
def the_engines_end_of_the_memory_cannot_be_made_on_one_rank(comm: MPI.Intracomm) -> None:
    if COMPILED is None or comm.size == 1:
        return
    last = comm.rank == comm.size - 1

    def no_memory(*_: object) -> NoReturn:
        raise NO_MEMORY

    engine = Replaced(COMPILED, Node=no_memory) if last else COMPILED
    with replaced(node_transport, COMPILED=engine):
        assert ends_alike(comm, lambda: broadcasts(shared(comm))) is False


@check
def what_rank_0_decided_cannot_be_read_on_one_rank(comm: MPI.Intracomm) -> None:
    real, calls = agreement._returned, iter([True, False])

    def read(outcome: bytes) -> Any:
        if comm.rank == comm.size - 1 and next(calls, False):
            raise NO_MEMORY
        return real(outcome)

    with replaced(agreement, _returned=read):
        seen = ends_alike(comm, lambda: agreement.on_root(comm, lambda: 1))
    assert "none is left" in str(seen)


@check
def a_duplicate_for_the_librarys_algorithms_cannot_be_made(comm: MPI.Intracomm) -> None:
    for name, error in (
        ("where_made", NO_FILE),
        ("alone", NO_MEMORY),
        ("plain_duplicate", NO_MEMORY),
    ):
        own = switching.OwnCalls(comm)
        with failing_at(comm, switching, name, error), logged() as lines:
            assert ends_alike(comm, lambda own=own: own._duplicate(())) is None  # type: ignore[misc]
        own.free()
        assert len(lines) == (comm.rank == 0)
    with failing_at(comm, np, "resize", NO_MEMORY):
        switched = switching.Switched(None)
        seen = ends_alike(comm, lambda: switched.alike("Allreduce", 80, comm))
    assert "none is left" in str(seen)


@check
def an_array_cannot_be_shared_on_one_rank(comm: MPI.Intracomm) -> None:
    ours, root = shared(comm), comm.size - 1
    for owner, name in ((np, "copyto"), (sharing, "SharedArray"), (sharing, "_view")):
        with failing_at(comm, owner, name, NO_MEMORY):
            seen = ends_alike(comm, lambda: ours.share(np.arange(9.0), root)[:].tolist())
        assert "none is left" in str(seen), (name, seen)
    with failing_at(comm, node_memory, "_mapped", NO_FILE), logged() as lines:
        assert ours.share(np.arange(9.0), root).sum() == 36
    assert len(lines) == 1, lines
    ours.Free()


@check
def what_learning_tries_cannot_be_made_on_one_rank(comm: MPI.Intracomm) -> None:
    """All ranks go on with the library's default, and no trial is made again."""
    if comm.size == 1:
        return
    steps: Sequence[tuple[Any, str]] = (
        (Decision, "best_plans"),
        (dispatch, "executor_for"),
        (np, "resize"),
    )
    for owner, name in steps:
        ours, data = learner(comm, learn="100%"), np.zeros(64)
        budget: Any = ours._learning
        budget.planning_s = 1e-3
        with failing_at(comm, owner, name, NO_MEMORY), logged() as lines:
            for number in range(ENOUGH):
                data[:] = comm.rank + number
                ours.Allreduce(MPI.IN_PLACE, data)
                assert data[0] == comm.size * number + sum(range(comm.size))
                over = None in ours._dispatch._trials.values()
                if number % 50 == 0 and comm.allreduce(over, MPI.LAND):
                    break
        assert len(lines) == (comm.rank == 0), lines
        ours.Free()


@check
def wrapping_the_world_says_that_it_waits(comm: MPI.Intracomm) -> None:
    """Where the launcher has no name service, nobody can tell which ranks will come."""
    world = MPI.COMM_WORLD
    ends = world.rank in (0, world.size - 1) and world.size > 1

    def nowhere(*_: object) -> NoReturn:
        raise MPI.Exception(MPI.ERR_SERVICE)

    instead = {"PATIENCE_S": 0.001, "MPI": Replaced(MPI, Publish_name=nowhere)}
    with replaced(roll_call, **instead), logged() as lines:
        assert roll_call.absent() == ""
        latest = time.monotonic() + 20
        while ends and not lines and time.monotonic() < latest:
            time.sleep(0.001)
    assert len(lines) == ends
    assert all("waits for all" in line for line in lines)


@check
def a_call_that_finds_no_memory_may_be_made_again(comm: MPI.Intracomm) -> None:
    """It counts as not made: others wait for it, as they wait for a rank that is late."""
    if comm.size == 1:
        return
    for name, make in (("executor_for", shared), ("Trial", partial(learner, learn="100%"))):
        ours, data = make(comm), np.full(50, float(comm.rank))
        ours.Bcast(np.zeros(3))
        with failing_at(comm, dispatch, name, NO_MEMORY):
            if comm.rank == comm.size - 1:
                with raises(MemoryError):
                    ours.Bcast(data)
        for _ in range(40):
            ours.Bcast(data)
        assert not data.any()
        ours.Free()
