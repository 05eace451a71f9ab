"""Checks of what holds for the requests of every collective, on real MPI."""

import gc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.comm.served import METHODS
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.progress import running
from tests.mpi.programs.alike import (
    ALGORITHMS,
    MACHINE,
    Call,
    adding,
    allocates_nothing,
    complete,
)
from tests.mpi.programs.checks import check, raises


def planned(comm: MPI.Intracomm) -> Iterator[cw.Comm]:
    for algorithms in ALGORITHMS:
        ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=algorithms)
        yield ours
        ours.Free()


@check
def started_in_different_orders(comm: MPI.Intracomm) -> None:
    """Every rank starts them in an order of its own and completes them in the opposite one."""
    for ours in planned(comm):
        calls = [Call(ours, method, 40, n % comm.size) for n, method in enumerate(METHODS * 2)]
        requests = [call.make(ours, "persistent") for call in calls]
        between = Call(ours, "Allreduce", 3)
        order = list(np.random.default_rng(comm.rank).permutation(len(calls)))
        for again in range(4):
            for number in order:
                calls[number].fill(number + again)
                requests[number].Start()
            between.fill(again)
            between.make(ours)  # it moves the started ones on
            between.check()
            for number in reversed(order):
                complete(requests[number], testing=number % 2 == 1)
            for call in calls:
                call.check()
        for request in requests:
            request.Free()


@check
def ranks_forward_while_they_are_elsewhere(comm: MPI.Intracomm) -> None:
    """Nobody but the last rank calls collwise until its part is complete.

    Legal with the library's own: everybody else waits for a message that the last rank sends only
    then.
    """
    token, last = np.zeros(1), comm.size - 1
    ways: tuple[Way, ...] = "persistent", "nonblocking"
    for ours in planned(comm):
        for number, method in enumerate(METHODS * 2):
            call, way = Call(ours, method, 100, last * (method == "Reduce")), ways[number % 2]
            call.fill(number)
            request: Any = call.make(ours, way)
            if way == "persistent":
                request.Start()
            if comm.rank == last:
                request.Wait()
                for other in range(last):
                    comm.Send(token, other)
            else:
                comm.Recv(token, last)
                request.Wait()
            assert not running()
            call.check()
            if way == "persistent":
                request.Free()


@check
def what_is_repeated_allocates_nothing(comm: MPI.Intracomm) -> None:
    for number, ours in enumerate(planned(comm), comm.size):
        for method in METHODS[number % 2 :: 2]:  # by other algorithms on other numbers of ranks
            call = Call(ours, method, 10)
            request = call.make(ours, "persistent")
            allocates_nothing(request.Start, request.Wait)
            if COMPILED is not None:  # Python's own lists of free memory grow
                allocates_nothing(partial(call.make, ours))
            request.Free()


@check
def types_can_be_freed_before_the_request(comm: MPI.Intracomm) -> None:
    """Every second of four numbers, and pairs that a user's operator adds."""
    size = comm.size
    for ours in planned(comm):
        gaps = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
        pairs = MPI.INT.Create_contiguous(2).Commit()
        data, every = np.full(4 * size, comm.rank, "i4"), np.full((size, 4), -1, "i4")
        mine, total = np.arange(20, dtype="i4"), np.zeros(20, "i4")
        with adding() as op:
            requests = [
                ours.Bcast_init([data, size, gaps]),
                ours.Allgatherv_init([mine, 1, pairs], [every, [1] * size, gaps]),
                ours.Allreduce_init([mine, 10, pairs], [total, 10, pairs], op),
            ]
            if all(isinstance(request, PersistentCollective) for request in requests):
                gaps.Free()
                pairs.Free()  # Open MPI's own requests read types that were freed, and die
            others = [MPI.DOUBLE.Create_vector(2, 1, 2).Commit() for _ in range(2)]  # same handles
            gc.collect()
            for _ in range(2):
                data[::2] = comm.rank
                cw.startall(requests)
                cw.waitall(requests)
                assert not data[::2].any()
                assert (data[1::2] == comm.rank).all()
                assert (every[:, ::2] == [0, 1]).all()
                assert (every[:, 1::2] == -1).all()
                assert np.array_equal(total, mine * size)
            for request in requests:
                request.Free()
        for datatype in (gaps, pairs, *others):
            if datatype != MPI.DATATYPE_NULL:
                datatype.Free()


@check
def a_request_runs_once_at_a_time(comm: MPI.Intracomm) -> None:
    for ours in planned(comm):
        for method in METHODS:
            call = Call(ours, method, 10)
            request = call.make(ours, "persistent")
            if not isinstance(request, PersistentCollective):  # the library's own serves
                request.Free()
                continue
            for again in range(2):
                request.Wait()  # it is not started: nothing happens, as in MPI
                assert request.Test()
                call.fill(again)
                request.Start()
                with raises(RuntimeError, match="running"):
                    request.Start()
                request.Wait()
                call.check()
            call.fill(2)
            request.Start()
            request.Free()  # completes it first
            call.check()
