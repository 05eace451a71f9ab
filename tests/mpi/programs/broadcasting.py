"""Checks of broadcasts, and of what all requests and communicators share, on real MPI."""

import gc
import weakref
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.algorithms.registry import algorithms_for
from collwise.mpi.buffers.buffer import Buffer
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.operations import Block
from tests.algorithms.examples import settings_of
from tests.mpi.programs.alike import MACHINE, distinct
from tests.mpi.programs.checks import check, raises

WANTED = {"lam": Fraction(9, 5), "segment": 300}


def pattern(nbytes: int, salt: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return _pattern(nbytes, salt).copy()


@cache
def _pattern(nbytes: int, salt: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return ((np.arange(nbytes) * 7 + 31 * salt + 5) % 251).astype(np.uint8)


def roots(comm: MPI.Intracomm) -> list[int]:
    return sorted({0, 1 % comm.size, comm.size // 2, comm.size - 1})


def schedules(comm: MPI.Intracomm, nbytes: int, root: int) -> list[cw.Schedule]:
    """Of every algorithm; a schedule that two make, once."""
    ranks = comm.size
    every = (
        algorithm.schedule(ranks, nbytes, root, **settings_of(algorithm, ranks, **WANTED))
        for algorithm in algorithms_for("broadcast")
        # Hundreds of segments: shorter messages show it.
        if nbytes <= 2000 or "segment" not in algorithm.parameters
    )
    return distinct(comm, every)


@check
def every_algorithm_from_every_root(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    sizes = 0, 1, comm.size + 1, 1000, 70_000
    for turn, root in enumerate(roots(comm)):
        for nbytes in sizes[turn : turn + 2] if root else sizes:
            for schedule in schedules(comm, nbytes, root):
                data = pattern(nbytes, comm.rank + 1)
                executor = executor_for(schedule, private)
                executor.run(data)
                assert np.array_equal(data, pattern(nbytes, root + 1)), (schedule.algorithm, root)
                request = executor.persistent(data)
                for again in range(2):
                    data[:] = pattern(nbytes, comm.rank + again)
                    request.Start()
                    request.Wait()
                    expected = pattern(nbytes, root + again)
                    assert np.array_equal(data, expected), (schedule.algorithm, root, again)
                request.Free()
    private.free()


@check
def every_kind_of_buffer(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    vector = MPI.INT.Create_vector(50, 2, 5).Commit()
    pairs = MPI.INT.Create_contiguous(2).Commit()
    holes = MPI.INT.Create_indexed([30, 70], [0, 100]).Commit()
    backwards = MPI.INT.Create_indexed([50, 50], [50, 0]).Commit()
    root = comm.size // 2

    def numbers(salt: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        return np.arange(100, dtype=np.int32) * 3 + 1000 * salt

    def kinds() -> list[tuple[Any, Any, Any]]:
        """Memory of int32, what to pass, and where its 100 numbers are, in the order sent."""
        a, b = np.empty(100, np.int32), np.empty(120, np.int32)
        c, d = np.full(250, -1, np.int32), np.full(170, -1, np.int32)
        return [
            (a, a, np.r_[0:100]),
            (a, [memoryview(a.data), 50, pairs], np.r_[0:100]),
            (a, [a, 1, backwards], np.r_[50:100, 0:50]),
            (b, [b, (100, 20), MPI.INT], np.r_[20:120]),
            (c, [c, 1, vector], np.arange(250).reshape(50, 5)[:, :2].ravel()),
            (d, [d, 1, holes], np.r_[0:30, 100:170]),
        ]

    for turn, schedule in enumerate(schedules(comm, 400, root)):
        executor = executor_for(schedule, private)
        for number in range((turn + comm.size) % 3, len(kinds()), 3):
            made = kinds()
            flat, spec, where = made[(number + comm.rank) % len(made)]  # mixed over the ranks
            flat[where] = numbers(comm.rank)
            executor.run(spec)
            assert np.array_equal(flat[where], numbers(root)), (schedule.algorithm, number)
            request = executor.persistent(spec)
            flat[where] = numbers(comm.rank + 1)
            request.Start()
            while not request.Test():
                pass
            assert np.array_equal(flat[where], numbers(root + 1)), (schedule.algorithm, number)
            request.Free()
            if len(flat) in (250, 170):
                assert (np.delete(flat, where) == -1).all(), "wrote into the holes"
    for datatype in (vector, pairs, holes, backwards):
        datatype.Free()
    private.free()


@check
def only_the_root_may_have_read_only_memory(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    executor = executor_for(cw.ALGORITHMS["broadcast/binomial"].schedule(comm.size, 5), private)
    data: Any = b"hello" if comm.rank == 0 else bytearray(5)
    executor.run([data, MPI.BYTE])
    assert bytes(data) == b"hello"
    if comm.rank:
        with raises((BufferError, TypeError, ValueError)):
            executor.persistent([b"fixed", MPI.BYTE])
    private.free()


@check
def user_traffic_is_never_met(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    inbox = np.full(64, 255, np.uint8)
    waiting = comm.Irecv(inbox, MPI.ANY_SOURCE, MPI.ANY_TAG)
    for schedule in schedules(comm, 64, 0):
        data = pattern(64, comm.rank)
        executor_for(schedule, private).run(data)
    assert not waiting.Test()
    waiting.Cancel()
    waiting.Wait()
    assert (inbox == 255).all()
    private.free()


@check
def a_request_keeps_its_buffer(comm: MPI.Intracomm) -> None:
    """Nobody can resize it, and who forgets it leaves it to the request."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"broadcast": "binomial"})
    data, array = bytearray(64), np.full(8, comm.rank)
    request = ours.Bcast_init(data, 0)
    with raises(BufferError):
        data.extend(bytes(1 << 20))
    request.Free()
    kept, request = weakref.ref(array), ours.Bcast_init(array, 0)
    with raises(ValueError, match="cannot resize"):
        array.resize(1 << 20)
    del array
    gc.collect()
    for _ in range(2):
        request.Start()
        request.Wait()
        assert np.asarray(kept()).tolist() == [0] * 8
    request.Free()
    if comm.size > 1:
        gc.collect()
        assert kept() is None
    ours.Free()


@check
def more_than_two_gigabytes_are_addressed(comm: MPI.Intracomm) -> None:
    large = np.empty(2**31 + 4096, np.uint8)  # never touched, so it takes no memory
    buffer = Buffer(large, writable=True)
    assert buffer.nbytes == 2**31 + 4096
    memory, count, _ = buffer.memory.at(buffer.memory.message([Block(0, 2**31 + 100, 50)]))
    assert memory.address == large.ctypes.data + 2**31 + 100
    assert count == 50
    private = PrivateCommunicator(comm)
    problem = cw.ALGORITHMS["broadcast/chain_segmented"]
    schedule = problem.schedule(comm.size, 2**31 + 4096, 0, segment=2**30)
    executor_for(schedule, private).persistent(large).Free()
    private.free()
