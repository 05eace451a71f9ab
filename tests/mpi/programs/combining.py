"""Checks of reduce and allreduce on real MPI: results, bits, operators, buffers."""

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidArgument
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Order, satisfies
from collwise.schedule.program import Schedule
from tests.algorithms.examples import root_of, settings_of
from tests.mpi.programs.alike import MACHINE, distinct
from tests.mpi.programs.checks import check, raises

Vector: TypeAlias = NDArray[Any]
NAMED = {"allreduce": "recursive_doubling", "reduce": "binomial"}
"""For what is not about the choice, which takes longer than the rest."""


def schedules(
    comm: MPI.Intracomm, nbytes: int, itemsize: int, order: Order = "any"
) -> list[Schedule]:
    """Of every algorithm that keeps the order, to some root; one that two make, once."""

    def every() -> Iterator[Schedule]:
        for number, collective in enumerate(c.name for c in COLLECTIVES.values() if c.combines):
            for place, algorithm in enumerate(algorithms_for(collective)):
                if nbytes % algorithm.kind.unit(comm.size, itemsize):
                    continue
                root = root_of(algorithm, (number + place * (comm.size // 2)) % comm.size)
                for at in sorted({root, 0}):
                    settings = settings_of(algorithm, comm.size, segment=4 * itemsize)
                    yield algorithm.schedule(comm.size, nbytes, at, itemsize=itemsize, **settings)

    return distinct(comm, (made for made in every() if satisfies(made.problem.order, order)))


def some(comm: MPI.Intracomm, made: Iterable[Schedule], share: int) -> Iterator[Schedule]:
    """One in so many of the schedules, each on some number of ranks."""
    return islice(made, comm.size % share, None, share)


def part(schedule: Schedule, rank: int) -> slice | None:
    """Which elements of the combined vector a rank gets; None if none."""
    for block in schedule.problem.output_of(rank):
        itemsize = schedule.problem.itemsize
        return slice(block.offset // itemsize, block.end // itemsize)
    return None


def every_way(
    private: PrivateCommunicator,
    schedule: Schedule,
    mine: Vector,
    op: MPI.Op,
    datatype: MPI.Datatype,
) -> Iterator[Vector]:
    """Results on this rank: blocking and persistent, apart and in place; none where it has none."""
    where = part(schedule, private.rank)
    executor = executor_for(schedule, private, op)
    for in_place in (False, True):
        given = mine.copy()
        result = given
        send: Any = [given, datatype]
        recv: Any = None
        if where is not None:
            result = np.zeros_like(mine[where])
            recv = [result, datatype]
        if where is not None and in_place:
            send, recv, result = MPI.IN_PLACE, [given, datatype], given[: len(result)]
        executor.run(send, recv)
        if where is not None:
            yield result.copy()
        request = executor.persistent(send, recv)
        for _ in range(2):
            given[:] = mine
            before = given.tobytes()
            request.Start()
            request.Wait()
            if where is not None:
                yield result.copy()
            if where is None or not in_place:
                assert given.tobytes() == before, "the input was changed"
        request.Free()


def the_library(comm: MPI.Intracomm, mine: Vector, op: MPI.Op, datatype: MPI.Datatype) -> Vector:
    result = np.zeros_like(mine)
    MPI.Intracomm(comm).Allreduce([mine, datatype], [result, datatype], op)
    return result


@check
def every_algorithm_gives_what_the_library_gives(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    few = (0, 1, comm.size + 2)[comm.size % 3]  # each on some number of ranks
    for count in (few, 3 * comm.size):
        mine = np.arange(count, dtype=np.int64) * 3 + 7 * comm.rank
        right = the_library(comm, mine, MPI.SUM, MPI.LONG)
        for schedule in schedules(comm, mine.nbytes, 8):
            for result in every_way(private, schedule, mine, MPI.SUM, MPI.LONG):
                expected = right[part(schedule, comm.rank)]
                assert np.array_equal(result, expected), (schedule.algorithm, count)
    private.free()


@check
def all_ranks_get_the_same_bits(comm: MPI.Intracomm) -> None:
    # The order matters: small numbers vanish in large ones, infinities make NaN, ±0 differ.
    hard = [1e16, 1.0, -1e16, np.nan, 0.0, -0.0, np.inf, -np.inf, 5e-324, 1 / 3, 1e308]
    values = np.array([hard[(3 * i + comm.rank * (i + 1)) % len(hard)] for i in range(23)])
    values[-5:] = np.random.default_rng(comm.rank).standard_normal(5)
    private = PrivateCommunicator(comm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no overflow nor NaN is reported: MPI does not, either
        for op, share in ((MPI.SUM, 1), (MPI.MIN, 3)):
            right = the_library(comm, values, op, MPI.DOUBLE)
            bits: dict[tuple[str, int], set[bytes]] = {}
            every_schedule = schedules(comm, values.nbytes, 8, order="same")
            for number, schedule in enumerate(some(comm, every_schedule, share)):
                if schedule.problem.kind.output == "own block":
                    continue
                seen = bits[schedule.algorithm, number] = set()
                for result in every_way(private, schedule, values, op, MPI.DOUBLE):
                    seen.add(result.tobytes())
                    assert np.allclose(result[-5:], right[-5:], rtol=1e-12), schedule.algorithm
            every = comm.allgather(bits)
            for which in bits:
                assert len(set().union(*(theirs[which] for theirs in every))) == 1, which
    private.free()


@check
def operators_that_do_not_commute_combine_in_rank_order(comm: MPI.Intracomm) -> None:
    maps = MPI.LONG.Create_contiguous(2).Commit()  # x -> a x + b, and the composition of two

    def compose(left: Any, right: Any, datatype: MPI.Datatype) -> None:
        one = np.frombuffer(left, np.int64).reshape(-1, 2)
        other = np.frombuffer(right, np.int64).reshape(-1, 2)
        other[:, 1] += other[:, 0] * one[:, 1]
        other[:, 0] *= one[:, 0]

    op = MPI.Op.Create(compose, commute=False)
    private = PrivateCommunicator(comm)
    rows = 3 * comm.size
    mine = np.array([[2 + comm.rank, 3 * i + comm.rank] for i in range(rows)], np.int64)
    right = np.array([[1, 0]] * rows, np.int64)
    for rank in range(comm.size):
        a, b = 2 + rank, 3 * np.arange(rows) + rank
        right = np.stack([right[:, 0] * a, right[:, 1] * a + b], axis=1)
    ran = 0
    for schedule in schedules(comm, mine.nbytes, 16, order="rank"):
        ran += 1
        for result in every_way(private, schedule, mine, op, maps):
            assert np.array_equal(result, right[part(schedule, comm.rank)]), schedule.algorithm
    assert ran > (5 if comm.size > 1 else 1)  # alone, they are all alike
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    result = np.zeros_like(mine)
    ours.Allreduce([mine, maps], [result, maps], op)
    assert np.array_equal(result, right)
    result[:] = 0
    ours.Reduce([mine, maps], [result, maps], op, comm.size - 1)
    if comm.rank == comm.size - 1:
        assert np.array_equal(result, right)
    private.free()
    op.Free()
    maps.Free()


@check
def pairs_and_elements_with_holes(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    pair = np.dtype([("value", "f8"), ("index", "i4")], align=True)  # 12 bytes in 16
    mine = np.zeros(2 * comm.size, pair)
    mine["value"] = (np.arange(len(mine)) * 7 + 3 * comm.rank) % 5
    mine["index"] = comm.rank
    right = the_library(comm, mine, MPI.MINLOC, MPI.DOUBLE_INT)
    for schedule in some(comm, schedules(comm, 12 * len(mine), 12), 3):
        for result in every_way(private, schedule, mine, MPI.MINLOC, MPI.DOUBLE_INT):
            for name in ("value", "index"):
                expected = right[name][part(schedule, comm.rank)]
                assert np.array_equal(result[name], expected), schedule.algorithm
    # Every second number of a row of four, by a user's operator.
    spread = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()

    def add(left: Any, right: Any, datatype: MPI.Datatype) -> None:
        one, other = np.frombuffer(left, np.int32), np.frombuffer(right, np.int32)
        other[::2] += one[::2]

    op = MPI.Op.Create(add, commute=True)
    count = 3 * comm.size
    numbers = np.arange(4 * count, dtype=np.int32) + comm.rank
    total = numbers * comm.size - comm.rank * comm.size + sum(range(comm.size))
    for schedule in some(comm, schedules(comm, 8 * count, 8), 3):
        where = part(schedule, comm.rank)
        executor = executor_for(schedule, private, op)
        for in_place in (False, True):
            result = np.where(np.arange(4 * count) % 2, -1, numbers).astype(np.int32)
            send: Any = [numbers, spread]
            recv: Any = None
            if where is not None:
                recv = [result, where.stop - where.start, spread]
                if in_place:
                    send, recv = MPI.IN_PLACE, [result, spread]
            executor.run(send, recv)
            if where is not None:
                expected = total[4 * where.start : 4 * where.stop : 2]
                assert np.array_equal(result[: 2 * len(expected) : 2], expected), schedule.algorithm
                assert (result[1::2] == -1).all(), "wrote into the holes"
    op.Free()
    spread.Free()
    private.free()


@check
def predefined_operators_on_every_type(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, machine=MACHINE, algorithms=NAMED)
    small = [MPI.SUM, MPI.PROD, MPI.MAX, MPI.MIN]
    bits = [MPI.BAND, MPI.BOR, MPI.BXOR]
    truth = [MPI.LAND, MPI.LOR, MPI.LXOR]
    kinds = ("bBhHiIlL", small + bits + truth), ("fd", small), ("?", truth), ("FD", small[:2])
    for codes, operators in kinds:
        for turn, op in enumerate(operators):
            for code in codes[turn % 3 :: 3] or codes:  # every operator, every type, not all pairs
                mine = ((np.arange(11) + comm.rank) % 3).astype(code)
                result, right = np.zeros_like(mine), np.zeros_like(mine)
                ours.Allreduce(mine, result, op)
                comm.Allreduce(mine, right, op)
                assert np.array_equal(result, right), (code, op)


@check
def an_order_can_be_asked_for(comm: MPI.Intracomm) -> None:
    orders: tuple[Order | None, ...] = "rank", None
    for order in orders if comm.size > 1 else ():
        ours = cw.Comm(comm, machine=MACHINE, effort="estimate", order=order)
        plan = ours.plan("allreduce", 240)
        assert plan is not None
        assert (plan.problem.itemsize, plan.problem.order) == (8, order or "same")


@check
def other_buffers_than_planned_are_refused(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    algorithm = cw.ALGORITHMS["allreduce/reduce_broadcast"]
    for ranks, itemsize, count in ((comm.size + 1, 8, 3), (comm.size, 8, 4), (comm.size, 4, 3)):
        schedule = algorithm.schedule(ranks, 24, itemsize=itemsize)
        with raises(InvalidArgument) as refusal:
            executor_for(schedule, private, MPI.SUM).persistent(np.zeros(count), np.zeros(count))
        assert "plan" in refusal.value.remedy
    private.free()
