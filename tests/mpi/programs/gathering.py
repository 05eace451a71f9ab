"""Checks of s-to-p broadcasts and allgathers on real MPI; run on any number of ranks."""

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.algorithms.registry import algorithms_for
from collwise.errors import BrokenCommunicator, InvalidArgument, WrongResult
from collwise.model.profile import MeasuredSize, Profile, Win
from collwise.mpi.blocking import SHORT
from collwise.mpi.channel import Channel
from collwise.mpi.courses import Competitor, GatheringCourse, course
from collwise.mpi.executor import gatherer, persistent_gather
from collwise.mpi.memory import Unit
from collwise.mpi.pieces import equal_key, equal_parts, vector_key, vector_parts
from collwise.mpi.progress import ENGINE
from collwise.mpi.racetrack import Track, race
from collwise.mpi.world import describe
from collwise.schedule.data import Problem, Schedule, Source
from tests.algorithms.examples import settings_of
from tests.mpi.programs.checks import check, main

Ints: TypeAlias = NDArray[np.int32]
MACHINE = cw.Machine.hockney(alpha_s=1e-6, beta_s=1e-9)
PAIR = 8
"""Bytes of what is gathered: two integers of 4 bytes."""


def patterns(ranks: int) -> list[list[int]]:
    """Pairs by rank: of one, of nobody, equal, of all but one, random ones."""
    random = np.random.default_rng(ranks)
    one = [0] * ranks
    one[ranks // 2] = 5
    drawn = [list(map(int, random.integers(0, 30, ranks) * (random.random(ranks) < share)))
             for share in (0.4, 1.0)]  # fmt: skip
    return [one, [0] * ranks, [3] * ranks, [1 + r for r in range(ranks - 1)] + [0], *drawn]


def numbers(rank: int, count: int, salt: int = 0) -> Ints:
    return (np.arange(2 * count) * 3 + 1000 * rank + 17 * salt).astype(np.int32)


def the_library(comm: MPI.Intracomm, pairs: list[int], salt: int = 0) -> Ints:
    """What the library's own leaves, one contribution after another."""
    result = np.zeros(2 * sum(pairs), np.int32)
    mine = numbers(comm.rank, pairs[comm.rank], salt)
    MPI.Intracomm(comm).Allgatherv(mine, [result, [2 * count for count in pairs]])
    return result


def schedules(pairs: list[int]) -> Iterator[Schedule]:
    """Of every algorithm, for so many pairs of the ranks."""
    ranks = len(pairs)
    sources = tuple(Source(rank, PAIR * count) for rank, count in enumerate(pairs) if count)
    problem = Problem("s_to_p", ranks, PAIR * sum(pairs), sources=sources)
    for algorithm in algorithms_for("s_to_p"):
        yield algorithm.solve(problem, settings_of(algorithm, ranks))


class Received(NamedTuple):
    """Memory of integers, what to pass, and where the gathered ones are, in rank order."""

    memory: Ints
    spec: Any
    where: NDArray[np.intp]

    def own(self, pairs: list[int], rank: int) -> NDArray[np.intp]:
        """Where a rank's own are."""
        start = 2 * sum(pairs[:rank])
        return self.where[start : start + 2 * pairs[rank]]

    def untouched(self) -> bool:
        """Whether gaps and holes are as they were."""
        return bool((np.delete(self.memory, self.where) == -1).all())


class Types:
    """Derived types of a pair."""

    def __init__(self) -> None:
        self.pairs = MPI.INT.Create_contiguous(2).Commit()
        self.holes = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
        self.backwards = MPI.INT.Create_indexed([1, 1], [1, 0]).Commit()

    def free(self) -> None:
        for datatype in (self.pairs, self.holes, self.backwards):
            datatype.Free()


def received(types: Types, pairs: list[int], kind: int, seed: int = 0) -> Received:
    """A receive buffer of some kind, with gaps; `KINDS` of them."""
    ranks, twice = len(pairs), [2 * count for count in pairs]
    random = np.random.default_rng(seed)
    gaps = random.integers(0, 4, ranks + 1)
    order = random.permutation(ranks)
    starts = np.zeros(ranks, int)
    at = int(gaps[-1])
    for rank, gap in zip(order, gaps, strict=False):
        starts[rank] = at
        at += pairs[rank] + int(gap)
    memory: Ints = np.full(4 * at + 8, -1, np.int32)
    element = np.concatenate([np.arange(starts[r], starts[r] + pairs[r]) for r in range(ranks)])
    both = (2 * element[:, None] + [0, 1]).ravel()
    address = memory.ctypes.data
    displs = starts.tolist()
    one_after_another = np.full(2 * sum(pairs), -1, np.int32)
    match kind:
        case 0:
            plain: NDArray[np.intp] = np.arange(2 * sum(pairs))
            return Received(one_after_another, [one_after_another, twice], plain)
        case 1:
            return Received(memory, [memory, (twice, [2 * d for d in displs]), MPI.INT], both)
        case 2:
            return Received(memory, [memory, np.array(twice), 2 * starts, "i"], both)
        case 3:
            return Received(memory, [memory, (tuple(pairs), displs), types.pairs], both)
        case 4:
            spread = (4 * element[:, None] + [0, 2]).ravel()
            return Received(memory, [memory, pairs, displs, types.holes], spread)
        case 5:
            swapped = (2 * element[:, None] + [1, 0]).ravel()
            return Received(memory, (memory, (pairs, displs), types.backwards), swapped)
        case 6:
            return Received(memory, [memory.view(np.int64), pairs, displs, MPI.LONG], both)
        case _:
            counts = [PAIR * count for count in pairs]
            absolute = [address + PAIR * d for d in displs]
            return Received(memory, [MPI.BOTTOM, counts, absolute, MPI.BYTE], both)


KINDS = 8


def given(types: Types, mine: Ints, into: Received, pairs: list[int], rank: int, kind: int) -> Any:
    """What to pass as this rank's contribution."""
    match kind % 4:
        case 0:
            return mine
        case 1:
            return [mine.tobytes(), MPI.BYTE]
        case 2:
            spread = np.full(2 * len(mine), -7, np.int32)
            spread[::2] = mine
            return [spread, len(mine) // 2, types.holes]
        case _:
            into.memory[into.own(pairs, rank)] = mine
            return MPI.IN_PLACE


@check
def every_algorithm_gives_what_the_library_gives(comm: MPI.Intracomm) -> None:
    channel, types = Channel(comm), Types()
    number = 0
    for pairs in patterns(comm.size):
        right = [the_library(comm, pairs, salt) for salt in range(2)]
        for schedule in schedules(pairs):
            run = gatherer(schedule, channel)
            for salt in range(2):
                number += 1
                told = (schedule.algorithm, pairs, number)
                into = received(types, pairs, (number + comm.rank) % KINDS, number)
                mine = numbers(comm.rank, pairs[comm.rank], salt)
                send = given(types, mine, into, pairs, comm.rank, number // KINDS + comm.rank)
                run(send, into.spec)
                assert np.array_equal(into.memory[into.where], right[salt]), told
                assert into.untouched(), told
            run.Free()
    channel.free()
    types.free()


@check
def persistent_ones_start_again_and_again(comm: MPI.Intracomm) -> None:
    channel, types = Channel(comm), Types()
    number = 0
    for pairs in patterns(comm.size):
        right = [the_library(comm, pairs, salt) for salt in range(2)]
        for schedule in schedules(pairs):
            number += 1
            told = (schedule.algorithm, pairs, number)
            into = received(types, pairs, (number + comm.rank) % KINDS, number)
            mine = numbers(comm.rank, pairs[comm.rank])
            send = mine if (number + comm.rank) % 3 else MPI.IN_PLACE
            request = persistent_gather(schedule, channel, send, into.spec)
            for salt in (1, 0, 1):
                into.memory[into.where] = -2
                mine[:] = numbers(comm.rank, pairs[comm.rank], salt)
                if send is MPI.IN_PLACE:
                    into.memory[into.own(pairs, comm.rank)] = mine
                request.Start()
                if number % 2:
                    while not request.Test():
                        pass
                request.Wait()
                assert np.array_equal(into.memory[into.where], right[salt]), told
                assert into.untouched(), told
            request.Free()
    channel.free()
    types.free()


@check
def buffers_that_come_again(comm: MPI.Intracomm) -> None:
    """They get requests of their own, on which the ranks need not agree."""
    channel, rank = Channel(comm), comm.rank
    for pairs in patterns(comm.size)[::2]:
        twice, own = [2 * count for count in pairs], slice(*np.cumsum([0, *pairs])[rank:][:2] * 2)
        right = [the_library(comm, pairs, salt) for salt in range(3)]
        for number, schedule in enumerate(schedules(pairs)):
            run = gatherer(schedule, channel)
            mine = numbers(rank, pairs[rank])
            known = [np.zeros(2 * sum(pairs), np.int32) for _ in range(2)]
            for turn in range(9):
                salt, told = turn % 3, (schedule.algorithm, pairs, turn)
                mine[:] = numbers(rank, pairs[rank], salt)
                new = (number + rank) % 3 == 0
                into = np.empty(2 * sum(pairs) + turn, np.int32) if new else known[turn // 2 % 2]
                into[:] = -2
                in_place = (number + rank + turn) % 4 == 0
                if in_place:
                    into[own] = mine
                run(MPI.IN_PLACE if in_place else mine, [into, twice])
                assert np.array_equal(into[: len(right[salt])], right[salt]), told
            if any(pairs) and not new:
                assert 2 <= run.requests <= 4, run.requests
            run.Free()
            assert run.requests == 0
    result = np.zeros((40, 2 * comm.size))
    run = gatherer(cw.ALGORITHMS["s_to_p/ring"].schedule(comm.size, 16, sources=range(comm.size)),
                   channel)  # fmt: skip
    for turn in range(200):
        into = result[turn % (5 if turn % 100 < 50 else 40)]
        run(np.full(2, 100.0 * turn + rank), into)
        assert np.array_equal(into, 100.0 * turn + np.repeat(range(comm.size), 2)), turn
        assert run.requests <= 16
    channel.free()
    assert run.requests == 0


@check
def long_contributions(comm: MPI.Intracomm) -> None:
    channel, types = Channel(comm), Types()
    pairs = [SHORT // 4 * (rank % 2 == comm.size % 2) + 3 * rank for rank in range(comm.size)]
    pairs[-1] += SHORT // PAIR
    right = the_library(comm, pairs)
    for number, schedule in enumerate(schedules(pairs)):
        into = received(types, pairs, (number + comm.rank) % KINDS, number)
        mine = numbers(comm.rank, pairs[comm.rank])
        send = given(types, mine, into, pairs, comm.rank, number + comm.rank)
        gatherer(schedule, channel)(send, into.spec)
        assert np.array_equal(into.memory[into.where], right), schedule.algorithm
        assert into.untouched(), schedule.algorithm
        into.memory[into.where] = -2
        if send is MPI.IN_PLACE:
            into.memory[into.own(pairs, comm.rank)] = mine
        request = persistent_gather(schedule, channel, send, into.spec)
        request.Start()
        request.Wait()
        request.Free()
        assert np.array_equal(into.memory[into.where], right), schedule.algorithm
    channel.free()
    types.free()


@check
def the_communicator_is_a_drop_in(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE, effort="estimate")
    types = Types()
    for pairs in patterns(comm.size):
        right = the_library(comm, pairs)
        mine = numbers(comm.rank, pairs[comm.rank])
        # Open MPI's own refuses MPI.BOTTOM; it serves where there is nothing to do.
        for kind in range(KINDS if comm.size > 1 and any(pairs) else KINDS - 1):
            for again in range(2):
                into = received(types, pairs, kind, kind + again)
                send = given(types, mine, into, pairs, comm.rank, kind + again)
                ours.Allgatherv(send, into.spec)
                assert np.array_equal(into.memory[into.where], right), (pairs, kind)
                assert into.untouched(), (pairs, kind)
            into.memory[into.where] = -2
            if send is MPI.IN_PLACE:
                into.memory[into.own(pairs, comm.rank)] = mine
            request = ours.Allgatherv_init(send, into.spec)
            request.Start()
            request.Wait()
            request.Free()
            assert np.array_equal(into.memory[into.where], right), (pairs, kind)
    types.free()
    if comm.size > 1:
        made = ours.plan("s_to_p", 24, sources=range(comm.size))
        assert made is not None
        assert made.algorithm.startswith("s_to_p/")
        assert ours.plan("s_to_p", [8], sources=[1], form="persistent") is not None
    ours.Free()
    with pytest.raises(MPI.Exception):
        ours.Allgatherv(mine, into.spec)


@check
def forms_of_counts_and_displacements(comm: MPI.Intracomm) -> None:
    """Whatever mpi4py makes of them, the two communicators make the same."""
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size = comm.size
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
    mine = np.arange(3) + 10 * comm.rank
    right = np.concatenate([np.arange(3) + 10 * rank for rank in range(size)])
    for place in (0, 2):
        equal: list[Callable[[Any, int], Any]] = [
            lambda a, place: a[place:],
            lambda a, place: [a[place:], MPI.LONG],
            lambda a, place: [a, 3, place, MPI.LONG],
            lambda a, place: [a, (3, place), "l"],
            lambda a, place: memoryview(a)[place:],
        ]
        for form in equal:
            for send in (mine, MPI.IN_PLACE, None):
                for _ in range(2):
                    result = np.full(3 * size + place, -1)
                    own = slice(place + 3 * comm.rank, place + 3 * comm.rank + 3)
                    if send is not mine:
                        result[own] = mine
                    ours.Allgather(send, form(result, place))
                    assert np.array_equal(result[place:], right)
                    assert (result[:place] == -1).all()
                result[place:] = -1
                if send is not mine:
                    result[own] = mine
                request = ours.Allgather_init(send, form(result, place))
                request.Start()
                request.Wait()
                request.Free()
                assert np.array_equal(result[place:], right)


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

    count = len(forms(np.zeros(total, np.uint8)))
    for first in range(count):
        for second in range(count):
            ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
            for number in (first, second, first):
                spec, counts = forms(np.zeros(total, np.uint8))[number]
                mine = np.full(counts[comm.rank], comm.rank + 1, np.uint8)
                ours.Allgatherv(mine, spec)
                data = spec[0] if isinstance(spec, list) else spec
                right = np.repeat(np.arange(1, size + 1), counts)
                assert np.array_equal(data[: sum(counts)], right), (first, second, number)
                assert not data[sum(counts) :].any(), (first, second, number)
            ours._private.free()  # of the wrapped communicator, which others need


@check
def usual_forms_are_looked_up(comm: MPI.Intracomm) -> None:
    a, b = np.zeros(6), np.zeros(6)
    for key in (vector_key, equal_key):
        Unit.of(MPI.DOUBLE), Unit.of(MPI.FLOAT)
        assert key([a, MPI.DOUBLE]) == key([b, MPI.DOUBLE])
        assert key(a) == key(b)
        other: list[Any] = [a[:5], [a[:5], MPI.DOUBLE], [a, MPI.FLOAT], [a, 6, MPI.DOUBLE]]
        keys = {key(spec) for spec in (a, [a, MPI.DOUBLE], *other)}
        assert len(keys) == 2 + len(other), keys
        holes = MPI.DOUBLE.Create_resized(0, 16).Commit()
        with pytest.raises(LookupError):  # its handle may come to mean another type
            key([a, holes])
        holes.Free()


class OnlyDLPack:
    """Memory that tells its type in this way only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self._array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@check
def elements_that_only_dlpack_tells(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size, counts = comm.size, [2 * (rank % 2) + 1 for rank in range(comm.size)]
    for dtype in (np.float64, np.int32, np.complex128):
        for wrap in (OnlyDLPack, np.asarray) if comm.rank % 2 else (OnlyDLPack, OnlyDLPack):
            mine = (np.arange(3) + 200 + comm.rank).astype(dtype)
            total = sum((np.arange(3) + 200 + rank).astype(dtype) for rank in range(size))
            result = np.zeros(3, dtype)
            calls: list[tuple[Any, Any, tuple[Any, ...]]] = [
                (ours.Allreduce, ours.Allreduce_init, (MPI.SUM,)),
                (ours.Reduce, ours.Reduce_init, (MPI.SUM, size - 1)),
            ]
            for call, make, more in calls:
                for persistent in (False, True):
                    result[:] = 0
                    if persistent:
                        request = make(OnlyDLPack(mine), wrap(result), *more)
                        request.Start()
                        request.Wait()
                        request.Free()
                    else:
                        call(OnlyDLPack(mine), wrap(result), *more)
                    owed = call == ours.Allreduce or comm.rank == size - 1
                    assert np.array_equal(result, total if owed else np.zeros(3)), dtype
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
    """They can be broadcast; all else is the library's own."""
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size = comm.size
    mine, total = np.arange(3.0) + comm.rank, np.arange(3.0) * size + sum(range(size))
    result, everything = np.zeros(3), np.zeros(3 * size)
    right = np.concatenate([np.arange(3.0) + rank for rank in range(size)])
    ours.Allreduce(Unified(mine), Unified(result))
    assert np.array_equal(result, total)
    request = ours.Allreduce_init(Unified(mine), Unified(result))
    assert isinstance(request, MPI.Prequest)
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
    again = ours.Bcast_init(Unified(mine))
    again.Start()
    again.Wait()
    again.Free()
    assert np.array_equal(mine, right[-3:])


@check
def negative_displacements(comm: MPI.Intracomm) -> None:
    """The buffer may be the middle of something."""
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size = comm.size
    for each in (1, SHORT // 4):
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
            request = ours.Allgatherv_init(mine, [memory[offset:], (counts, displs)])
            request.Start()
            request.Wait()
            request.Free()
            assert np.array_equal(memory[:-1], right), (each, offset)
            assert memory[-1] == -1


@check
def types_do_not_pile_up(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    channel, size = Channel(comm), comm.size
    each = SHORT // 2
    schedule = cw.ALGORITHMS["s_to_p/bruck"].schedule(size, 8 * each, sources=range(size))
    mine, right = np.full(each, comm.rank), np.repeat(range(size), each)
    run = gatherer(schedule, channel)
    memory = np.zeros(each * size + 200 * size, int)
    counts, most = [each] * size, 0
    for gap in (*range(1, 200), 1):
        starts = [(each + gap) * rank for rank in range(size)]
        run(mine, [memory, (counts, starts)])
        at = np.add.outer(starts, range(each)).ravel()
        assert np.array_equal(memory[at], right), gap
        most = max(most, run.types)
    assert most <= 64 * len(schedule.rank(comm.rank)), most
    assert most >= 64 or size < 5, "messages of several pieces have types"
    run.Free()
    assert run.types == 0
    bytewise, seen = bytearray(8 * each * size), []
    for read in (vector_parts, equal_parts):
        for _ in range(20):
            run.alike(read)(mine, [bytewise, MPI.LONG])
        assert np.array_equal(np.frombuffer(bytewise, int), right)
        seen.append(run.types)
    assert seen[1] <= 2 * seen[0] <= 2 * len(schedule.rank(comm.rank)), seen
    channel.free()
    assert run.types == 0


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
        with pytest.raises(InvalidArgument, match="no profile"):
            cw.Comm(comm, algorithms={"s_to_p": "ring"}).Allgatherv(mine, [result, counts])


@check
def what_cannot_be_right_is_refused_before_anything_is_sent(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    size = comm.size
    counts = [2] * size
    mine, result = np.ones(2), np.zeros(2 * size + 2)
    wrong: list[tuple[Any, Any, str]] = [
        (mine, [result, counts, list(range(size)), MPI.DOUBLE], "overlap: both have"),
        (mine, [result, (counts, 0)], "overlap"),
        (mine, [result[:-3], counts], "bytes 0 to"),
        (np.ones(3), [result, counts], "rank"),
        (np.ones(1), [result, counts], "its send buffer has 8"),
        (None, [result, counts, [2 * rank + 3 for rank in range(size)], MPI.DOUBLE], "longer"),
    ]
    if size > 1:  # alone, the library's own serves
        for send, recv, words in wrong:
            for call in (ours.Allgatherv, ours.Allgatherv_init):
                with pytest.raises(InvalidArgument, match=words):
                    call(send, recv)
        for call in (ours.Allgather, ours.Allgather_init):
            with pytest.raises(InvalidArgument, match="send buffer has 24"):
                call(np.ones(3), result[:-2])
            with pytest.raises(InvalidArgument, match="longer buffer"):
                call(mine, [result[:-3], 2, MPI.DOUBLE])
    for call in (ours.Allgatherv, ours.Allgatherv_init):  # (Open MPI would take it)
        with pytest.raises(InvalidArgument, match=f"count of rank {size - 1} is -1"):
            call(mine, [result, [*counts[:-1], -1]])
    for which in (ours, comm):
        with pytest.raises(ValueError, match="items"):
            which.Allgatherv(mine, [result, [2] * (size + 1)])
        with pytest.raises(TypeError):
            which.Allgatherv(mine, [result, [2.5] * size])
        with pytest.raises(TypeError):
            which.Allgatherv(mine, [result, [[2]] * size])
        with pytest.raises((KeyError, TypeError, ValueError, BufferError)):
            which.Allgatherv(mine, [np.array([None] * size), [1] * size])
        with pytest.raises(BufferError):
            which.Allgatherv(mine, [bytes(16 * size), [2] * size, MPI.DOUBLE])
        with pytest.raises(BufferError):
            which.Allgatherv(mine, [np.zeros((2 * size, 2))[:, 0], counts])
        with pytest.raises(BufferError):
            which.Allgatherv(np.zeros((2, 2))[:, 0], [result, counts])
        with pytest.raises(ValueError, match=r"multiple|infer"):
            which.Allgather(mine, np.zeros(size + 1) if size > 1 else [bytearray(9), MPI.DOUBLE])
        with pytest.raises(ValueError, match="negative count"):
            which.Allgather(mine, [result, -1, MPI.DOUBLE])
    ours.Allgatherv(mine, [result, counts])  # it still works
    assert (result == [1.0] * 2 * size + [0.0] * 2).all()


@check
def other_schedules_than_the_buffers_are_refused(comm: MPI.Intracomm) -> None:
    channel = Channel(comm)
    ring = cw.ALGORITHMS["s_to_p/ring"]
    result = np.zeros(comm.size + 1, np.uint8)
    with pytest.raises(InvalidArgument, match="ranks"):
        persistent_gather(ring.schedule(comm.size + 1, 1, sources=[0]), channel, None, result)
    schedule = ring.schedule(comm.size, 1, sources=range(comm.size))
    counts = [1] * comm.size
    with pytest.raises(InvalidArgument, match="plan for the counts"):
        persistent_gather(schedule, channel, np.zeros(1, np.uint8), [result, [*counts[:-1], 2]])
    with pytest.raises(InvalidArgument, match=f"count of rank {comm.size - 1} is -1"):
        gatherer(schedule, channel)(np.zeros(1, np.uint8), [result, [*counts[:-1], -1]])
    run = gatherer(schedule, channel)
    request = persistent_gather(schedule, channel, None, [result, counts])
    channel.mark_broken(KeyboardInterrupt())
    with pytest.raises(BrokenCommunicator):
        run(None, [result, counts])
    with pytest.raises(BrokenCommunicator):
        request.Start()


@check
def started_in_different_orders(comm: MPI.Intracomm) -> None:
    channel = Channel(comm)
    names = ("ring", "br_lin", "bruck", "xor", "two_step")
    counts = [rank % 3 + 1 for rank in range(comm.size)]
    mine = [np.zeros(counts[comm.rank], int) for _ in names]
    results = [np.zeros(sum(counts), int) for _ in names]
    lengths, everybody = [8 * count for count in counts], range(comm.size)

    def schedule(name: str) -> Schedule:
        return cw.ALGORITHMS[f"s_to_p/{name}"].schedule(comm.size, lengths, sources=everybody)

    requests = [
        persistent_gather(schedule(name), channel, mine[number], [results[number], counts])
        for number, name in enumerate(names)
    ]
    blocking, between = gatherer(schedule("br_xy_dim"), channel), np.zeros(sum(counts), int)
    order = list(np.random.default_rng(comm.rank).permutation(len(names)))
    for again in range(4):
        for number in order:
            mine[number][:] = comm.rank + 10 * number + 100 * again
            requests[number].Start()
        blocking(np.full(counts[comm.rank], comm.rank), [between, counts])
        assert np.array_equal(between, np.repeat(everybody, counts))
        for number in reversed(order):
            requests[number].Wait()
        for number, result in enumerate(results):
            right = np.repeat(everybody, counts) + 10 * number + 100 * again
            assert np.array_equal(result, right), names[number]
    channel.free()


@check
def it_goes_on_while_its_ranks_are_elsewhere(comm: MPI.Intracomm) -> None:
    if comm.size < 3:
        return
    channel = Channel(comm)
    result = np.zeros(comm.size, int)
    schedule = cw.ALGORITHMS["s_to_p/ring"].schedule(comm.size, 8, sources=range(comm.size))
    mine = np.full(1, comm.rank)
    request = persistent_gather(schedule, channel, mine, [result, [1] * comm.size])
    token = np.zeros(1)
    request.Start()
    # Nobody but the last calls collwise until the last one's allgather is complete.
    if comm.rank == comm.size - 1:
        request.Wait()
        for other in range(comm.size - 1):
            comm.Send(token, other)
    else:
        comm.Recv(token, comm.size - 1)
        request.Wait()
    assert np.array_equal(result, range(comm.size))
    assert not ENGINE.running
    channel.free()


@check
def types_can_be_freed_before_the_request(comm: MPI.Intracomm) -> None:
    channel, types = Channel(comm), Types()
    pairs = [rank % 2 + 1 for rank in range(comm.size)]
    right = the_library(comm, pairs)
    requests, every = [], []
    for number, schedule in enumerate(schedules(pairs)):
        into = received(types, pairs, 4 + number % 2, number)
        mine = numbers(comm.rank, pairs[comm.rank])
        send = given(types, mine, into, pairs, comm.rank, 2)
        every.append(into)
        requests.append(persistent_gather(schedule, channel, send, into.spec))
    types.free()
    gc.collect()
    for request, into in zip(requests, every, strict=True):
        request.Start()
        request.Wait()
        request.Free()
        assert np.array_equal(into.memory[into.where], right)
        assert into.untouched()
    channel.free()


@check
def more_than_two_gigabytes_are_addressed(comm: MPI.Intracomm) -> None:
    channel = Channel(comm)
    counts = [2**28 + 8, *[5] * (comm.size - 1)]  # Open MPI counts up to 2^31, not more
    large = np.empty(sum(counts) + 3 * comm.size, np.int64)  # never touched: it takes no memory
    starts = [sum(counts[:rank]) + 3 * rank for rank in range(comm.size)]
    for name in ("bruck", "two_step"):
        algorithm = cw.ALGORITHMS[f"s_to_p/{name}"]
        schedule = algorithm.schedule(
            comm.size, [8 * count for count in counts], sources=range(comm.size)
        )
        persistent_gather(schedule, channel, MPI.IN_PLACE, [large, (counts, starts)]).Free()
    channel.free()


@check
def columns_of_a_matrix(comm: MPI.Intracomm) -> None:
    """A type whose elements interlock: what lies between them is another rank's."""
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
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
        with pytest.raises(InvalidArgument, match=f"nbytes of rank {comm.size - 1} is"):
            ours.sources(wrong if comm.rank == comm.size - 1 else 8)  # type: ignore[arg-type]


@check
def a_repeated_allgather_allocates_nothing(comm: MPI.Intracomm) -> None:
    channel = Channel(comm)
    counts, result = [2] * comm.size, np.zeros(2 * comm.size)
    schedule = cw.ALGORITHMS["s_to_p/ring"].schedule(comm.size, 16, sources=range(comm.size))
    request = persistent_gather(schedule, channel, np.ones(2), [result, counts])
    for act in (request.run, partial(gatherer(schedule, channel), None, [result, counts])):
        gc.disable()
        grown = []
        for _ in range(3):
            before = sys.getallocatedblocks()
            for _ in range(30):
                act()
            grown.append(sys.getallocatedblocks() - before)
        gc.enable()
        assert min(grown) < 10, grown
    channel.free()


@check
def it_races_and_learns(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    channel, world = Channel(comm), describe(comm)
    problem = Problem.of("s_to_p", comm.size, [40, 9], sources=[0, comm.size - 1])
    names = ("ring", "br_lin")
    ran = race(
        Track(channel, world.crowded),
        problem,
        {name: cw.ALGORITHMS[f"s_to_p/{name}"].solve(problem, {}) for name in names},
        dict.fromkeys(names, 1e-6),
        budget_s=0.2,
        repetitions=3,
    )
    assert {"library", "ring", "br_lin (blocking)"} <= set(ran.samples)
    point = MeasuredSize(
        nbytes=8, mode="nonblocking", t0_s=1e-6, lam=2.0, t0_interval_s=None, lam_interval=None,
        t0_experiments_s=(None, None), lam_experiments=(None, None), disagreement=None,
        repetitions=1, segment=0, verdict="assumed",
    )  # fmt: skip
    won = Win(
        collective="s_to_p", form="blocking", ranks=comm.size, nbytes=49, root=0, sources=2,
        algorithm="s_to_p/bruck", settings={}, ours_s=1e-6, library_s=2e-6, speedup_low=1.9,
        speedup_high=2.1, decision="collwise",
    )  # fmt: skip
    profile = Profile(
        verdict="assumed", fingerprint=world.fingerprint(), provenance=world.provenance(),
        points=(point,), wins=(won,),
    )  # fmt: skip
    ours = cw.Comm(comm, profile=profile)
    made = ours.plan("s_to_p", 20, sources=[0, 1])
    assert made is not None
    assert made.algorithm == "s_to_p/bruck"
    assert ours.plan("s_to_p", 20, sources=[0, 1], form="persistent") is None
    assert ours.plan("s_to_p", 1000, sources=[0, 1]) is None
    mine, result = np.full(int(comm.rank < 2), comm.rank), np.full(2, -1)
    counts = [1, 1] + [0] * (comm.size - 2)
    ours.Allgatherv(mine, [result, counts])
    assert np.array_equal(result, [0, 1])
    channel.free()


@check
def a_wrong_byte_is_found_and_told_to_all(comm: MPI.Intracomm) -> None:
    channel = Channel(comm)
    problem = Problem.of("s_to_p", comm.size, 100, sources=[comm.size // 2])
    on = course(channel, problem, "sum", "float64")
    assert isinstance(on, GatheringCourse)

    def careless() -> None:
        on.library()()
        if comm.rank == comm.size - 1:
            on.result[42] += 1

    with pytest.raises(WrongResult) as seen:
        on.check(Competitor("careless", careless, lambda: None))
    assert f"rank {comm.size - 1}" in str(seen.value)
    assert "byte 42" in str(seen.value)
    for competitor in on.libraries():
        on.check(competitor)
        competitor.free()
    channel.free()


if __name__ == "__main__":
    main()
