"""Checks of s-to-p broadcasts on real MPI: what lands where, whatever the buffers."""

from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.mpi.execution.executor import Executor
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.execution.gather_executor import GatherExecutor
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from tests.mpi.programs.alike import MACHINE, complete, perform, run
from tests.mpi.programs.checks import check
from tests.mpi.programs.contributions import (
    KINDS,
    PAIR,
    Types,
    given,
    numbers,
    patterns,
    received,
    schedules,
    the_library,
)


@check
def every_algorithm_gives_what_the_library_gives(comm: MPI.Intracomm) -> None:
    """Blocking and persistent, twice on the same buffers, of which what lies there now counts."""
    private, types, rank = PrivateCommunicator(comm), Types(), comm.rank
    number = 0
    for pairs in patterns(comm.size):
        right = [the_library(comm, pairs, salt) for salt in range(2)]
        for schedule in schedules(comm, pairs):
            gather = executor_for(schedule, private)
            for persistent in (False, True):
                number += 1
                into = received(types, pairs, (number + rank) % KINDS, number)
                mine = numbers(rank, pairs[rank])
                send: Any = mine if (number + rank) % 3 else MPI.IN_PLACE
                request = gather.persistent(send, into.spec) if persistent else None
                for salt in range(2):
                    mine[:] = numbers(rank, pairs[rank], salt)
                    into.memory[into.where] = -2
                    if request is None:
                        send = given(types, mine, into, pairs, rank, number // KINDS + rank)
                        gather.run(send, into.spec)
                    else:
                        if send is MPI.IN_PLACE:
                            into.memory[into.own(pairs, rank)] = mine
                        request.Start()
                        complete(request, testing=number % 4 == 1)
                    assert into.right(right[salt]), (schedule.algorithm, pairs, number)
                if request is not None:
                    request.Free()
            gather.Free()
    private.free()
    types.free()


@check
def long_contributions(comm: MPI.Intracomm) -> None:
    """Every algorithm blocking or persistent, in turn; on other numbers of ranks the other one."""
    private, types = PrivateCommunicator(comm), Types()
    pairs = [8192 * (rank % 2 == comm.size % 2) + 3 * rank for rank in range(comm.size)]
    pairs[-1] += 32768 // PAIR
    right = the_library(comm, pairs)
    for number, schedule in enumerate(schedules(comm, pairs)):
        into = received(types, pairs, (number + comm.rank) % KINDS, number)
        mine = numbers(comm.rank, pairs[comm.rank])
        send = given(types, mine, into, pairs, comm.rank, number + comm.rank)
        executor = executor_for(schedule, private)
        if (number + comm.size) % 2:
            executor.run(send, into.spec)
        else:
            run(executor.persistent(send, into.spec))
        assert into.right(right), schedule.algorithm
    private.free()
    types.free()


@check
def one_source_broadcasts_in_segments(comm: MPI.Intracomm) -> None:
    """Planned, in calls of every form, on whatever buffers."""
    ours, types, rank = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate"), Types(), comm.rank
    pairs = [0] * comm.size
    pairs[-1] = 9001
    plan = ours.plan("allgatherv", PAIR * pairs[-1], sources=[comm.size - 1])
    assert comm.size <= 2 or (plan and plan.algorithm == "allgatherv/as_broadcast")
    ways: tuple[Way, ...] = "blocking", "nonblocking", "persistent"
    for number in range(2 * KINDS):
        salt = number % 3
        right = the_library(comm, pairs, salt)
        into = received(types, pairs, (number + rank) % KINDS, number)
        mine = numbers(rank, pairs[rank], salt)
        send = given(types, mine, into, pairs, rank, number // KINDS + rank)
        for way in ways:
            perform(way, ours, "Allgatherv", send, into.spec)
            assert into.right(right), (number, way)
            into.memory[into.where] = -2
            if send is MPI.IN_PLACE:
                into.memory[into.own(pairs, rank)] = mine
    types.free()
    ours.Free()


def derived_types(gather: Executor) -> int:
    """Kept for blocking calls."""
    return sum(len(bound.types) for bound in gather._bound.values())


@check
def types_do_not_pile_up(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    private, size = PrivateCommunicator(comm), comm.size
    each = 5
    schedule = cw.ALGORITHMS["allgatherv/bruck"].schedule(size, 8 * each, sources=range(size))
    mine, right = np.full(each, comm.rank), np.repeat(range(size), each)
    gather = GatherExecutor(schedule, private)
    memory = np.zeros(each * size + 70 * size, int)
    counts, seen = [each] * size, []
    for gap in (*range(1, 70), 1):
        starts = [(each + gap) * rank for rank in range(size)]
        gather.run(mine, [memory, (counts, starts)])
        at = np.add.outer(starts, range(each)).ravel()
        assert np.array_equal(memory[at], right), gap
        seen.append(derived_types(gather))
    assert max(seen) == 64 * seen[0], seen
    assert seen[0] or size < 5, "messages of several pieces have types"
    gather.Free()
    assert derived_types(gather) == 0
    bytewise, seen = bytearray(8 * each * size), []
    for method in ("Allgatherv", "Allgather"):
        gather = GatherExecutor(schedule, private, method)
        for _ in range(10):
            gather.run(mine, [bytewise, MPI.LONG])
        assert np.array_equal(np.frombuffer(bytewise, int), right)
        seen.append(derived_types(gather))
    assert seen[1] == seen[0] <= len(schedule.rank(comm.rank)), seen
    private.free()
    assert derived_types(gather) == 0


@check
def more_than_two_gigabytes_are_addressed(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    counts = [2**28 + 8, *[5] * (comm.size - 1)]  # Open MPI counts up to 2^31, not more
    large = np.empty(sum(counts) + 3 * comm.size, np.int64)  # never touched: it takes no memory
    starts = [sum(counts[:rank]) + 3 * rank for rank in range(comm.size)]
    for name in ("bruck", "two_step"):
        algorithm = cw.ALGORITHMS[f"allgatherv/{name}"]
        schedule = algorithm.schedule(
            comm.size, [8 * count for count in counts], sources=range(comm.size)
        )
        executor_for(schedule, private).persistent(MPI.IN_PLACE, [large, (counts, starts)]).Free()
    private.free()
