"""Checks of the communicator's allgathers on real MPI: every form that mpi4py takes."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.errors import InvalidArgument
from collwise.schedule.problem import Source
from tests.mpi.programs.alike import run
from tests.mpi.programs.checks import check, main, raises
from tests.mpi.programs.contributions import (
    KINDS,
    MACHINE,
    NAMED,
    Types,
    given,
    numbers,
    patterns,
    received,
    the_library,
)


@check
def the_communicator_is_a_drop_in(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
    types = Types()
    _, nobody, _, some, everybody = patterns(comm.size)
    for pairs in (nobody, some, everybody):
        right = the_library(comm, pairs)
        mine = numbers(comm.rank, pairs[comm.rank])
        # Open MPI's own refuses MPI.BOTTOM; it serves where there is nothing to do.
        for kind in range(KINDS if comm.size > 1 and any(pairs) else KINDS - 1):
            for again in range(2):
                into = received(types, pairs, kind, kind + again)
                send = given(types, mine, into, pairs, comm.rank, kind + again)
                ours.Allgatherv(send, into.spec)
                assert into.right(right), (pairs, kind)
            into.memory[into.where] = -2
            if send is MPI.IN_PLACE:
                into.memory[into.own(pairs, comm.rank)] = mine
            run(ours.Allgatherv_init(send, into.spec))
            assert into.right(right), (pairs, kind)
    types.free()
    if comm.size > 1:
        made = ours.plan("s_to_p", 24, sources=range(comm.size))
        assert made is not None
        assert made.algorithm.startswith("s_to_p/")
        assert ours.plan("s_to_p", [8], sources=[1], form="persistent") is not None
    ours.Free()
    with raises(MPI.Exception):
        ours.Allgatherv(mine, into.spec)


@check
def a_named_algorithm_runs(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, algorithms={"s_to_p": "ring"})
    counts = [3 * (rank % 2) + 1 for rank in range(comm.size)]
    mine, result = np.full(counts[comm.rank], comm.rank), np.zeros(sum(counts), int)
    ours.Allgatherv(mine, [result, counts])
    assert np.array_equal(result, np.repeat(range(comm.size), counts))
    if comm.size > 1:
        made = ours.plan("s_to_p", [8 * n for n in counts], sources=range(comm.size))
        assert made is not None
        assert made.algorithm == "s_to_p/ring"
        assert cw.Comm(comm, algorithms={"s_to_p": "library"}, machine=MACHINE).plan(
            "s_to_p", 8, sources=[0]
        ) is None  # fmt: skip
        # Without a machine nothing says how to set it; the same on all ranks.
        with raises(InvalidArgument, match="no profile"):
            cw.Comm(comm, algorithms={"broadcast": "postal_tree"}).Bcast(mine)


@check
def forms_of_counts_and_displacements(comm: MPI.Intracomm) -> None:
    """Whatever mpi4py makes of them, the two communicators make the same."""
    ours, size = cw.Comm(comm, machine=MACHINE, algorithms=NAMED), comm.size
    grown = [rank + 1 for rank in range(size)]
    starts = [size * rank for rank in range(size)]
    total = size * (size + 1)

    def forms(a: Any) -> list[tuple[Any, list[int]]]:
        """What to pass, and the counts that it means."""
        evenly = [total // size + (rank < total % size) for rank in range(size)]
        return [
            (a, evenly),
            ([a, MPI.LONG], evenly),
            ([a, "l"], evenly),
            ([a, None, MPI.LONG], evenly),
            ([a, 2], [2] * size),
            ([a, (2, None)], [2] * size),
            ([a, (2, size)], [2] * size),
            ([a, grown], grown),
            ([a, np.array(grown, np.int16)], grown),
            ([a, np.array(grown).data], grown),
            ([a, range(1, size + 1)], grown),
            ([a, (grown, starts)], grown),
            ((a, (tuple(grown), size)), grown),
            ((a, grown, starts, "l"), grown),
            ((a, tuple(grown), None, None), grown),
            ([a.data, grown, np.array(starts), MPI.LONG], grown),
            ([a[1:], grown], grown),
        ]

    for number in range(len(forms(np.zeros(total, np.int64)))):
        seen = []
        for which in (ours, comm):
            result = np.full(total, -1)
            spec, counts = forms(result)[number]
            mine = np.arange(counts[comm.rank]) + 100 * comm.rank
            which.Allgatherv(mine, spec)
            seen.append(result)
        assert np.array_equal(seen[0], seen[1]), (number, seen)


@check
def forms_of_equal_contributions(comm: MPI.Intracomm) -> None:
    ours, size = cw.Comm(comm, machine=MACHINE, algorithms=NAMED), comm.size
    mine = np.arange(3) + 10 * comm.rank
    right = np.concatenate([np.arange(3) + 10 * rank for rank in range(size)])
    forms: list[Callable[[Any, int], Any]] = [
        lambda a, place: a[place:],
        lambda a, place: [a[place:], MPI.LONG],
        lambda a, place: [a, 3, place, MPI.LONG],
        lambda a, place: [a, (3, place), "l"],
        lambda a, place: memoryview(a)[place:],
    ]

    def given(place: int, send: Any) -> Any:
        """A receive buffer, with what is in its place already."""
        result = np.full(3 * size + place, -1)
        if send is not mine:
            result[place + 3 * comm.rank :][:3] = mine
        return result

    for place in (0, 2):
        for form in forms:
            for send in (mine, None if place else MPI.IN_PLACE):
                results = [given(place, send) for _ in range(3)]
                for result in results[:2]:
                    ours.Allgather(send, form(result, place))
                run(ours.Allgather_init(send, form(results[2], place)))
                for result in results:
                    assert np.array_equal(result[place:], right)
                    assert (result[:place] == -1).all()


@check
def one_form_after_another(comm: MPI.Intracomm) -> None:
    """What was found for one form serves no other that means something else."""
    size = comm.size
    total = 3 * size + 1

    def forms(a: Any) -> list[tuple[Any, list[int]]]:
        """What to pass, and the counts that it means; bytes and counts are the same numbers."""
        evenly = [total // size + (rank < total % size) for rank in range(size)]
        return [
            (a, evenly),
            ([a, MPI.BYTE], evenly),
            ([a, None, MPI.BYTE], evenly),
            ([np.zeros(0, np.uint8) if not a.size else a[:-1], MPI.BYTE], [3] * size),
            ([np.concatenate([a] * total), total], [total] * size),
            ([np.concatenate([a] * total), total, MPI.BYTE], [total] * size),
            ([np.concatenate([a] * total), [total] * size], [total] * size),
        ]

    there = range(len(forms(np.zeros(total, np.uint8))))
    for order in (there, there[::-1]):  # of any two forms, either comes first once
        ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
        for number in (*order, *order, *order[::2], *order[1::2]):
            spec, counts = forms(np.zeros(total, np.uint8))[number]
            mine = np.full(counts[comm.rank], comm.rank + 1, np.uint8)
            ours.Allgatherv(mine, spec)
            data = spec[0] if isinstance(spec, list) else spec
            right = np.repeat(np.arange(1, size + 1), counts)
            assert np.array_equal(data[: sum(counts)], right), (order, number)
            assert not data[sum(counts) :].any(), (order, number)


class OnlyDLPack:
    """Memory that tells its type in this way only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self._array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


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
def elements_that_only_dlpack_tells(comm: MPI.Intracomm) -> None:
    others = {"allreduce": "recursive_doubling", "reduce": "binomial", "broadcast": "binomial"}
    ours = cw.Comm(comm, machine=MACHINE, algorithms={**NAMED, **others})
    size, counts = comm.size, [2 * (rank % 2) + 1 for rank in range(comm.size)]
    for dtype in (np.float64, np.int32, np.complex128):
        for wrap in (OnlyDLPack, np.asarray) if comm.rank % 2 else (OnlyDLPack, OnlyDLPack):
            mine = (np.arange(3) + 200 + comm.rank).astype(dtype)
            total = sum((np.arange(3) + 200 + rank).astype(dtype) for rank in range(size))
            result = np.zeros(3, dtype)
            calls: list[tuple[Any, Any, tuple[Any, ...], bool]] = [
                (ours.Allreduce, ours.Allreduce_init, (MPI.SUM,), True),
                (ours.Reduce, ours.Reduce_init, (MPI.SUM, size - 1), comm.rank == size - 1),
            ]
            for call, make, more, owed in calls:
                right = total if owed else np.zeros(3)
                call(OnlyDLPack(mine), wrap(result), *more)
                assert np.array_equal(result, right), dtype
                result[:] = 0
                run(make(OnlyDLPack(mine), wrap(result), *more))
                assert np.array_equal(result, right), dtype
                result[:] = 0
            everything = np.zeros(sum(counts), dtype)
            some = mine[: counts[comm.rank]]
            ours.Allgatherv(OnlyDLPack(some), [wrap(everything), counts])
            starts = np.repeat(range(size), counts)
            inside = np.concatenate([np.arange(count) for count in counts])
            assert np.array_equal(everything, starts + inside + 200), dtype
            equal = np.zeros(3 * size, dtype)
            ours.Allgather(OnlyDLPack(mine), wrap(equal))
            assert np.array_equal(equal[-3:], np.arange(3) + 200 + size - 1), dtype
            moved = mine.copy()
            for buf in (wrap(moved), [wrap(moved), 3]):
                moved[:] = mine
                ours.Bcast(buf)
                assert np.array_equal(moved, np.arange(3) + 200), dtype


class Unified:
    """Memory of a device that the host reaches, too: only mpi4py knows its type."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 2}


@check
def elements_that_nobody_tells_us(comm: MPI.Intracomm) -> None:
    """mpi4py finds out what they are, and so do we."""
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size = comm.size
    mine, total = np.arange(3.0) + comm.rank, np.arange(3.0) * size + sum(range(size))
    result, everything = np.zeros(3), np.zeros(3 * size)
    right = np.concatenate([np.arange(3.0) + rank for rank in range(size)])
    ours.Allreduce(Unified(mine), Unified(result))
    assert np.array_equal(result, total)
    request = ours.Allreduce_init(Unified(mine), Unified(result))
    assert isinstance(request, MPI.Prequest) == (size == 1)
    request.Free()
    result[:] = 0
    ours.Reduce(Unified(mine), Unified(result))
    assert np.array_equal(result, total * (comm.rank == 0))
    recv: Any
    for call, recv in (
        (ours.Allgather, Unified(everything)),
        (ours.Allgatherv, Unified(everything)),
        (ours.Allgatherv, [Unified(everything), [3] * size]),
    ):
        everything[:] = 0
        call(Unified(mine), recv)
        assert np.array_equal(everything, right)
    ours.Bcast(Unified(mine), size - 1)
    assert np.array_equal(mine, right[-3:])
    mine += comm.rank
    run(ours.Bcast_init(Unified(mine)))
    assert np.array_equal(mine, right[-3:])


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
def arrays_that_mpi4py_refuses(comm: MPI.Intracomm) -> None:
    """They are refused before anything is sent, and the communicator goes on."""
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=NAMED)
    size = comm.size
    mine, result = np.full(3, float(comm.rank)), np.zeros(3 * size)
    strange = mine.astype(mine.dtype.newbyteorder())
    for again in range(3):
        for call in (comm.Allgatherv, ours.Allgatherv):
            with raises((KeyError, BufferError, ValueError, TypeError)):
                call(strange, result)
        result[:] = -1
        ours.Allgatherv(mine, result)
        assert np.array_equal(result, np.repeat(range(size), 3)), again
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
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    mine = np.arange(3 * (comm.rank % 3)) + comm.rank
    found = ours.sources(mine.nbytes)
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
        assert ours.plan("s_to_p", lengths, sources=ranks) is not None
    assert ours.sources(0) == ()
    for wrong in (-1, 2.5, None, 1 << 70):
        with raises(InvalidArgument, match=f"nbytes of rank {comm.size - 1} is"):
            ours.sources(wrong if comm.rank == comm.size - 1 else 8)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
