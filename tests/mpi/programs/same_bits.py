"""Checks that sums in the order "fixed" have the bits that the brackets say, whatever serves them.

The right bits are computed on every rank by NumPy, one addition after the other, so ranks, counts,
plans, libraries and engines are all compared with the same numbers.
"""

from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import collwise as cw
from collwise.comm.decision import ORDER
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.placement import Placement
from tests.mpi.programs.alike import MACHINE, run
from tests.mpi.programs.checks import check, environment, raises

Vector: TypeAlias = NDArray[np.float64]
POSTAL = cw.Machine.postal(t0_s=1e-6, lam=6)


def vectors(ranks: int, elements: int) -> Vector:
    """Everybody's numbers, by rank: small ones vanish in large ones, and large ones cancel."""
    random = np.random.default_rng(elements)
    signs, powers = random.choice((-1.0, 1.0), (2, ranks, elements))
    made: Vector = signs * random.random((ranks, elements)) * 10.0 ** (16 * (powers > 0))
    return made


def summed(values: Vector) -> Any:
    """By the definition: excess ranks join their neighbours, then neighbours, and so on."""
    excess = len(values) - max(1 << k for k in range(len(values).bit_length()))
    paired = [values[2 * number] + values[2 * number + 1] for number in range(excess)]
    left = [*paired, *values[2 * excess :]]
    while len(left) > 1:
        left = [one + other for one, other in zip(left[::2], left[1::2], strict=True)]
    return np.array(left[0])


def same(result: Any, right: Any) -> bool:
    return np.asarray(result).tobytes() == np.asarray(right).tobytes()


def check_counts(ours: cw.Comm, counts: tuple[int, ...], elements: int) -> None:
    """Any slice of the vector has the bits of the whole one, in every form and at every root."""
    size, rank = ours.size, ours.rank
    every = vectors(size, elements)
    right, mine = summed(every), every[rank].copy()
    for place, count in enumerate(counts):
        begin = (place * 5) % (elements - count + 1)
        part, root = slice(begin, begin + count), place % size
        given, expected = np.array(mine[part]), right[part]
        result = np.zeros(count)
        ours.Allreduce(given, result)
        assert same(result, expected), (count, "blocking")
        result = given.copy()
        ours.Iallreduce(MPI.IN_PLACE, result).Wait()
        assert same(result, expected), (count, "non-blocking")
        result = np.zeros(count)
        run(ours.Reduce_init(given, result if rank == root else None, root=root))
        assert rank != root or same(result, expected), (count, root)
        if not count % size:
            block = np.zeros(count // size)
            ours.Reduce_scatter_block(given, block)
            own = slice(rank * len(block), (rank + 1) * len(block))
            assert same(block, expected[own]), (count, "own block")


@check
def the_same_vector_has_the_same_bits_for_any_count_and_plan(comm: MPI.Intracomm) -> None:
    levels = cw.Machine.levels(
        [POSTAL, cw.Machine.postal(t0_s=4e-6, lam=5)],
        Placement.of([rank // 2 for rank in range(comm.size)]),
    )
    settings: list[dict[str, Any]] = [
        {"profile": False},  # no machine is known
        {"machine": MACHINE},  # effort="measure", and nothing was raced
        {"machine": POSTAL, "effort": "estimate"},
        {"machine": levels, "effort": "estimate"} if comm.size > 2 else {"machine": POSTAL},
        {"machine": POSTAL, "algorithms": {"allreduce": "ring", "reduce": "library"}},
        {"algorithms": {"allreduce": "halving_doubling", "reduce": "halving_gather"}},
        {"machine": MACHINE, "transport": "memory"},
        {"machine": MACHINE, "record": True, "learn": "50%"},
    ]
    elements = 12 * comm.size
    for number, chosen in enumerate(settings):
        ours = cw.Comm(comm.Dup(), order="fixed", **chosen)
        counts = (elements, 1) if number % 2 else (elements, 7)
        check_counts(ours, counts, elements)
        ours.Free()


@check
def derived_communicators_have_the_bits_of_their_ranks(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), order="fixed", machine=POSTAL)
    made = [ours.Split(ours.rank % 2, -ours.rank), ours.Dup(), ours.Create_cart([ours.size])]
    for one in made:
        part = vectors(one.size, 5)  # the first call on it is a non-blocking one
        result = part[one.rank].copy()
        one.Iallreduce(MPI.IN_PLACE, result).Wait()
        assert same(result, summed(part))
        check_counts(one, (6, 1), 6)  # type: ignore[arg-type]
        one.Free()
    later, request = ours.Idup()
    request.Wait()
    if ours.size > 1:  # nobody could make a private communicator for it without waiting
        with raises(InvalidArgument, "make a blocking call"):
            later.Iallreduce(MPI.IN_PLACE, np.zeros(3))
    check_counts(later, (6, 1), 6)
    later.Free()
    ours.Free()


@check
def objects_have_the_bits_of_arrays(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), order="fixed", machine=MACHINE)
    every = vectors(comm.size, 3)
    for column, right in zip(every.T, summed(every), strict=True):
        number = float(column[comm.rank])
        assert same(ours.allreduce(number), right)
        for root in range(comm.size):
            total = ours.reduce(number, root=root)
            assert same(total, right) if comm.rank == root else total is None
        alone = np.array([number])
        ours.Allreduce(MPI.IN_PLACE, alone)
        assert same(alone[0], right)
    texts = ours.allreduce(str(comm.rank), lambda one, other: f"({one}{other})")
    assert texts.replace("(", "").replace(")", "") == "".join(map(str, range(comm.size)))
    ours.Free()


@check
def the_library_never_serves_the_fixed_order(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    for settings in ({"profile": False}, {"machine": MACHINE, "algorithms": {"reduce": "library"}}):
        ours = cw.Comm(comm, order="fixed", **settings)
        for collective in ("reduce", "allreduce", "reduce_scatter_block"):
            plan = ours.plan(collective, 24 * comm.size)
            assert plan is not None
            assert plan.problem.order == "fixed"
            cw.verify(plan.schedule)
        assert ours.plan("broadcast", 24) is None, "nothing is combined"
    with environment(comm, {ORDER: "fixed"}):
        plan = cw.Comm(comm, machine=MACHINE).plan("allreduce", 8)
        assert plan is not None
        assert plan.problem.order == "fixed"
        assert cw.Comm(comm, machine=MACHINE, order="any").plan("allreduce", 8) is None
    with (
        environment(comm, {ORDER: "fxed"}),
        raises(UnknownName, "order 'fxed': there is none; did you mean fixed"),
    ):
        cw.Comm(comm)
