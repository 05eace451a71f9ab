"""COLLWISE_CHECK=1: ranks that disagree hear of it instead of waiting; on any number of ranks."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.checking import ENVIRONMENT, LIMIT, check_limit_s
from collwise.comm.served import METHODS
from collwise.errors import InvalidArgument
from collwise.profiles.records import FORMS
from tests.mpi.programs.alike import MACHINE, PLANNED, check_call
from tests.mpi.programs.checks import check, environment, raises

SETTINGS: tuple[Mapping[str, Any], ...] = ({}, PLANNED)
"""With which the library's own serves, and ours."""


def checked(comm: MPI.Intracomm, **settings: Any) -> cw.Comm:
    """A communicator whose calls are checked, as rank 0's environment says."""
    with environment(comm, {ENVIRONMENT: "1"}):
        return cw.Comm(comm.Dup(), **settings)


def refused(comm: MPI.Intracomm, call: Callable[[], Any]) -> list[str]:
    """What every rank is told."""
    with raises((InvalidArgument, TypeError, ValueError, BufferError)) as caught:
        call()
    return comm.allgather(str(caught.value))


@check
def the_environment_switches_checks(comm: MPI.Intracomm) -> None:
    for word, limit_s in {"": 0.0, "0": 0.0, "off": 0.0, "1": 60.0, "on": 60.0}.items():
        with environment(MPI.COMM_SELF, {ENVIRONMENT: word}):
            assert check_limit_s() == limit_s
    with environment(comm, {ENVIRONMENT: "maybe"}):
        told = refused(comm, partial(cw.Comm, comm, profile=False))
        assert all(f"{ENVIRONMENT}=maybe: it is no such word; say 1 or on" in one for one in told)


@check
def right_calls_pass(comm: MPI.Intracomm) -> None:
    size, rank = comm.size, comm.rank
    for settings in SETTINGS:
        ours = checked(comm, **settings)
        for turn, (method, way) in enumerate(product(METHODS, FORMS)):
            check_call(ours, method, 3, size - 1, way, turn)
        total = np.full(3, rank)
        ours.Allreduce(MPI.IN_PLACE, total, MPI.MAX)
        assert (total == size - 1).all()
        counts = [other % 2 for other in range(size)]
        some = np.zeros(sum(counts), np.int32)
        ours.Allgatherv(np.full(counts[rank], rank, np.int32), [some, counts])
        assert np.array_equal(some, np.arange(size)[1::2])
        ours.Free()


def mistakes(ours: cw.Comm, odd: bool) -> list[tuple[Callable[[], Any], str]]:
    """Calls that the last rank, the odd one, makes otherwise than the others; what all are told."""
    size, last = ours.size, ours.size - 1
    data, result, everything = np.zeros(4), np.zeros(4), np.zeros(4 * size)
    counts = [4] * size
    kind, kinds = "i" if odd else "d", "dq"

    def by(code: str) -> tuple[Any, Any]:
        return data.view(code), result.view(code)

    def gathered(code: str) -> tuple[Any, Any]:
        return data.view(code), everything.view(code)

    def one_or_another() -> None:
        if odd:
            ours.Allreduce(data, result)
        else:
            ours.Bcast(data)

    return [
        (lambda: ours.Bcast(data, int(odd)), f"root: 0 on rank 0, 1 on rank {last}"),
        (lambda: ours.Bcast(data[odd:]), f"bytes: 32 on rank 0, 24 on rank {last}"),
        (lambda: ours.Reduce(data[odd:], result), f"bytes: 32 on rank 0, 24 on rank {last}"),
        (lambda: ours.Allreduce(data, result, MPI.MAX if odd else MPI.SUM), "op: sum on rank 0"),
        (lambda: ours.Allreduce(data.view(kind), result.view(kind)), "element: 8 on rank 0"),
        (lambda: ours.Allreduce(*by(kinds[odd])), "elements: float64 on rank 0, int64 on rank"),
        (lambda: ours.Bcast(data.view(kinds[odd])), "elements: float64 on rank 0, int64 on rank"),
        (lambda: ours.Allgather(data, everything.view("q")), "sends float64 and receives int64"),
        (lambda: ours.Allgather_init(*gathered(kinds[odd])), "elements: float64 on rank 0, int64"),
        (lambda: ours.Allreduce(data, result[odd:]), "32 bytes to send and 24 to receive"),
        (lambda: ours.Reduce_scatter_block(everything[size * odd :], data), "bytes to send and 32"),
        (lambda: ours.Reduce_scatter_block_init(everything, data[odd:]), "24 to receive in each"),
        (one_or_another, f"rank 0 calls Bcast, rank {last} Allreduce"),
        (lambda: ours.Allgather(data[odd:], everything), "send buffer has 24"),
        (lambda: ours.Allgatherv_init(data[odd:], [everything, counts]), "send buffer has 24"),
        (lambda: ours.Allgatherv(data, [everything, [4 - odd, *counts[1:]]]), "of rank 0: 32"),
        (lambda: ours.Bcast("text" if odd else data), ""),
    ]  # fmt: skip


@check
def ranks_that_disagree_all_hear_of_it(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    for settings in SETTINGS:
        ours = checked(comm, **settings)
        for call, words in mistakes(ours, comm.rank == comm.size - 1):
            told = refused(comm, call)
            assert all(words in text for text in told), (words, told)
        assert all(f"rank {comm.size - 1} cannot" in text for text in told[:-1]), told
        check_call(ours, "Bcast", 3)  # nothing is left over
        ours.Free()


@check
def bytes_fit_everything(comm: MPI.Intracomm) -> None:
    ours = checked(comm)
    data = np.full(3, float(comm.rank))
    ours.Bcast([data, MPI.BYTE] if comm.rank else data)
    assert not data.any()
    ours.Free()


@check
def a_rank_that_never_comes_is_named(comm: MPI.Intracomm) -> None:
    size, rank = comm.size, comm.rank
    if size == 1:
        return
    with environment(comm, {LIMIT: "200ms"}):
        ours = checked(comm, **PLANNED)
    for late in (size - 1, 0):
        if rank == late:
            comm.recv(source=(late + 1) % size)  # till another one gave up
        with raises(InvalidArgument, match=r"did not meet the others within 0\.2 s") as told:
            ours.Bcast(np.zeros(3))
        if rank == (late + 1) % size:
            assert f"rank {late} did not" in str(told.value)
            comm.send(None, late)
        comm.Barrier()
    check_call(ours, "Bcast", 3)  # all are in step
    with environment(comm, {LIMIT: "soon"}), raises(InvalidArgument, match=LIMIT):
        checked(comm)
    ours.Free()


@check
def without_it_calls_are_as_they_were(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE)
    assert not hasattr(ours.Bcast, "__wrapped__")
    ours.Free()
