"""Checks of allgathers and s-to-p broadcasts on real MPI: what lands where, in which buffers."""

import ctypes
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.mpi.execution.executor import Executor
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.execution.gather_executor import GatherExecutor
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.profiles.records import FORMS
from collwise.schedule.problem import Source
from tests.mpi.programs.alike import MACHINE, PLANNED, complete, perform, run
from tests.mpi.programs.checks import check, raises
from tests.mpi.programs.contributions import (
    KINDS,
    NAMED,
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
    for number in range(2 * KINDS):
        salt = number % 3
        right = the_library(comm, pairs, salt)
        into = received(types, pairs, (number + rank) % KINDS, number)
        mine = numbers(rank, pairs[rank], salt)
        send = given(types, mine, into, pairs, rank, number // KINDS + rank)
        for way in FORMS:
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


class PairsOfFloats:
    """Complex numbers, told as pairs of floats; mpi4py takes them for what they are."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, stream: Any = None) -> Any:
        capsule = self._array.view(self._array.real.dtype).__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_size_t, [ctypes.py_object, ctypes.c_char_p]
        tensor = pointer(capsule, b"dltensor")
        ctypes.c_uint16.from_address(tensor + 22).value = 2  # lanes
        length = ctypes.c_int64.from_address(ctypes.c_size_t.from_address(tensor + 24).value)
        length.value //= 2
        return capsule


@check
def pairs_that_only_dlpack_tells(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
    for dtype in (np.complex64, np.complex128):
        mine, everything = np.full(2, 1j + comm.rank, dtype), np.zeros(2 * comm.size, dtype)
        for one in (ours, comm):
            everything[:] = 0
            one.Allgatherv(PairsOfFloats(mine), [PairsOfFloats(everything), 2])
            assert np.array_equal(everything, np.repeat(1j + np.arange(comm.size), 2)), dtype


@check
def a_type_of_the_users_is_not_taken_for_a_predefined_one(comm: MPI.Intracomm) -> None:
    """Not even where that one is met first after a user's of its size."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=NAMED)
    size = comm.size
    for predefined in (MPI.INT64_T, MPI.UNSIGNED_LONG_LONG, MPI.C_FLOAT_COMPLEX, MPI.LONG_LONG):
        spread = MPI.BYTE.Create_contiguous(8).Create_resized(0, 16).Commit()
        mine, where = np.full(2, comm.rank), [1 + 3 * rank for rank in range(size)]
        for datatype, step in ((spread, 2), (predefined, 1), (spread, 2), (predefined, 1)):
            for displacements in (where, None):
                memory = np.full(8 * size + 8, -1)
                counts: Any = ([2] * size, displacements) if displacements else [2] * size
                ours.Allgatherv([mine, predefined], [memory, counts, datatype])
                starts = displacements or range(0, 2 * size, 2)
                elements = step * np.add.outer(starts, range(2)).ravel()
                assert np.array_equal(memory[elements], np.repeat(range(size), 2)), datatype.name
                assert (np.delete(memory, elements) == -1).all()
        spread.Free()
    ours.Free()


@check
def negative_displacements(comm: MPI.Intracomm) -> None:
    """The buffer may be the middle of something."""
    ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
    size = comm.size
    for each in (1, 8192):
        counts = [each] * size
        starts = [each * (rank - 1) for rank in range(size)]
        mine, right = np.full(each, comm.rank), np.repeat(range(size), each)
        for offset in (each, 0) if comm.rank % 2 else (0, each):
            for _ in range(2):
                memory = np.full(each * size + 1, -1)
                displs = starts if offset else [start + each for start in starts]
                ours.Allgatherv(mine, [memory[offset:], (counts, displs)])
                assert np.array_equal(memory[:-1], right), (each, offset)
            memory[:] = -1
            run(ours.Allgatherv_init(mine, [memory[offset:], (counts, displs)]))
            assert np.array_equal(memory[:-1], right), (each, offset)
            assert memory[-1] == -1


@check
def columns_of_a_matrix(comm: MPI.Intracomm) -> None:
    """A type whose elements interlock: what lies between them is another rank's."""
    ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
    column = MPI.DOUBLE.Create_vector(4, 1, comm.size).Create_resized(0, 8).Commit()
    mine = np.arange(4.0) + 10 * comm.rank
    right = np.stack([np.arange(4.0) + 10 * rank for rank in range(comm.size)], axis=1)
    for call in (ours.Allgather, ours.Allgatherv):
        result = np.zeros((4, comm.size))
        call(mine, [result, 1, column])
        assert np.array_equal(result, right)
    column.Free()


@check
def sources_find_each_other(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, **PLANNED)
    mine = np.arange(3 * (comm.rank % 3)) + comm.rank
    found = ours.sources(np.int16(mine.nbytes))  # type: ignore[arg-type]
    assert found == tuple(Source(r, 24 * (r % 3)) for r in range(comm.size) if r % 3)
    counts = [0] * comm.size
    for rank, nbytes in found:
        counts[rank] = nbytes
    everything = np.zeros(sum(counts) // 8, int)
    ours.Allgatherv([mine, MPI.BYTE], [everything, counts, MPI.BYTE])
    assert np.array_equal(
        everything, np.concatenate([np.arange(3 * (r % 3)) + r for r in range(comm.size)])
    )
    if found and comm.size > 1:
        lengths, ranks = [s.nbytes for s in found], [s.rank for s in found]
        assert ours.plan("allgatherv", lengths, sources=ranks) is not None
    assert ours.sources(0) == ()
    wrong: Any
    for wrong in (-1, 2.5, None, 1 << 70, True, np.True_, [8]):
        with raises(InvalidArgument, match=f"nbytes of rank {comm.size - 1} is"):
            ours.sources(wrong if comm.rank == comm.size - 1 else 8)


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
    ours.Allgatherv(mine, [result, counts])  # it still works
    assert (result == [1.0] * 2 * size + [0.0] * 2).all()


@check
def other_schedules_than_the_buffers_are_refused(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    ring = cw.ALGORITHMS["allgatherv/ring"]
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
    private.free()
