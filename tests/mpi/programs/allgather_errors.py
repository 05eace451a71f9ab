"""Checks of allgathers that cannot be right, on real MPI: refused before anything is sent."""

from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import BrokenCommunicator, InvalidArgument
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from tests.mpi.programs.checks import check, raises
from tests.mpi.programs.contributions import MACHINE, NAMED


@check
def what_cannot_be_right_is_refused_before_anything_is_sent(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
    size = comm.size
    counts = [2] * size
    mine, result = np.ones(2), np.zeros(2 * size + 2)
    wrong: list[tuple[Any, Any, str]] = [
        (mine, [result, counts, list(range(size)), MPI.DOUBLE], "overlap: both have"),
        (mine, [result, (counts, 0)], "overlap"),
        (np.ones(3), [result, counts], "rank"),
        (np.ones(1), [result, counts], "its send buffer has 8"),
    ]
    if size > 1:  # alone, the library's own serves
        for send, recv, words in wrong:
            for call in (ours.Allgatherv, ours.Allgatherv_init):
                with raises(InvalidArgument, match=words):
                    call(send, recv)
        for call in (ours.Allgather, ours.Allgather_init):
            with raises(InvalidArgument, match="send buffer has 24"):
                call(np.ones(3), result[:-2])
    for call in (ours.Allgatherv, ours.Allgatherv_init):  # (Open MPI would take it)
        with raises(InvalidArgument, match=f"count of rank {size - 1} is -1"):
            call(mine, [result, [*counts[:-1], -1]])
    for which in (ours, comm):
        with raises(ValueError, match="items"):
            which.Allgatherv(mine, [result, [2] * (size + 1)])
        with raises(TypeError):
            which.Allgatherv(mine, [result, [2.5] * size])
        with raises(TypeError):
            which.Allgatherv(mine, [result, [[2]] * size])
        with raises((KeyError, TypeError, ValueError, BufferError)):
            which.Allgatherv(mine, [np.array([None] * size), [1] * size])
        with raises(BufferError):
            which.Allgatherv(mine, [bytes(16 * size), [2] * size, MPI.DOUBLE])
        with raises(BufferError):
            which.Allgatherv(mine, [np.zeros((2 * size, 2))[:, 0], counts])
        with raises(BufferError):
            which.Allgatherv(np.zeros((2, 2))[:, 0], [result, counts])
        with raises(ValueError, match=r"multiple|infer"):
            which.Allgather(mine, np.zeros(size + 1) if size > 1 else [bytearray(9), MPI.DOUBLE])
        with raises(ValueError, match="negative count"):
            which.Allgather(mine, [result, -1, MPI.DOUBLE])
    ours.Allgatherv(mine, [result, counts])  # it still works
    assert (result == [1.0] * 2 * size + [0.0] * 2).all()


@check
def other_schedules_than_the_buffers_are_refused(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    ring = cw.ALGORITHMS["s_to_p/ring"]
    result = np.zeros(comm.size + 1, np.uint8)
    with raises(InvalidArgument, match="ranks"):
        executor_for(ring.schedule(comm.size + 1, 1, sources=[0]), private).persistent(None, result)
    schedule = ring.schedule(comm.size, 1, sources=range(comm.size))
    counts = [1] * comm.size
    with raises(InvalidArgument, match="plan for the counts"):
        executor_for(schedule, private).persistent(
            np.zeros(1, np.uint8), [result, [*counts[:-1], 2]]
        )
    with raises(InvalidArgument, match=f"count of rank {comm.size - 1} is -1"):
        executor_for(schedule, private).run(np.zeros(1, np.uint8), [result, [*counts[:-1], -1]])
    run = executor_for(schedule, private).run
    request = executor_for(schedule, private).persistent(None, [result, counts])
    private.mark_broken(KeyboardInterrupt())
    with raises(BrokenCommunicator):
        run(None, [result, counts])
    with raises(BrokenCommunicator):
        request.Start()
