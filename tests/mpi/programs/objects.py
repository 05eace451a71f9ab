"""Checks of collectives of Python objects by way of planned buffers, on real MPI."""

import pickle
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.objects import FIRST_BYTES, SLOT_BYTES
from collwise.comm.recording import OBJECTS as OBJECT_FORMS
from collwise.mpi.runtime.world import describe
from tests.mpi.programs.alike import assumed, hint
from tests.mpi.programs.checks import check, raises
from tests.profiles.example import won_race

ALGORITHMS = {"broadcast": "binomial", "allgatherv": "bruck"}
OBJECTS: list[Any] = [
    None,
    1.5,
    {"a": [1, "x"]},
    *("x" * (nbytes - less) for nbytes in (FIRST_BYTES, SLOT_BYTES) for less in range(20, 40)),
    list(range(1000)),
    np.arange(40_000.0),  # beyond MPI.pickle.THRESHOLD
    [np.arange(6.0).reshape(2, 3).T, np.ones((200, 200), order="F"), bytearray(300_000)],
]


def recorded(comm: MPI.Intracomm, **settings: Any) -> cw.Comm:
    given = {"profile": False, "algorithms": ALGORITHMS, **settings}
    return cw.Comm(comm.Dup(), record=True, **given)


def ways(comm: cw.Comm) -> set[tuple[str, str]]:
    return {(one.method, one.way) for one in comm.calls()}


@check
def objects_arrive(comm: MPI.Intracomm) -> None:
    ours, last = recorded(comm), comm.size - 1
    for number, one in enumerate(OBJECTS):
        root = number % comm.size
        got = ours.bcast(one if comm.rank == root else None, root)
        assert pickle.dumps(got) == pickle.dumps(comm.bcast(one, root))
        if isinstance(got, np.ndarray):
            got[0] = -1  # a copy, on the root, too
            assert one[0] == 0
        mine = one if comm.rank == root else comm.rank
        assert pickle.dumps(ours.allgather(mine)) == pickle.dumps(comm.allgather(mine))
    for mine in (f"<{comm.rank}>", "x" * (comm.rank * SLOT_BYTES), np.float64(0.1 * comm.rank)):
        for op in (MPI.SUM, lambda a, b: f"({a}{b})", MPI.MAX):
            assert ours.allreduce(mine, op) == comm.allreduce(mine, op)
            assert ours.reduce(mine, op, last) == comm.reduce(mine, op, last)
    expected = {("bcast", "blocking"), ("allgather", "blocking")}
    if comm.size > 1:
        expected = {("Bcast", "object"), ("Allgather", "object"), ("Allgatherv", "object")}
        assert ("bcast", "blocking") not in ways(ours)
    assert expected <= ways(ours)
    for call in (ours.bcast, ours.reduce):
        with raises(MPI.Exception):
            call(1, root=comm.size)
        with raises(TypeError):
            call(1, root="0")  # type: ignore[arg-type]
    with raises((pickle.PicklingError, AttributeError)):
        ours.allgather(lambda: 0)
    assert ours.bcast(comm.rank, last) == last
    ours.Free()


@check
def only_where_collectives_are_slow(comm: MPI.Intracomm) -> None:
    for library_s, way in ((10e-6, "blocking"), (1e-3, "object")):
        won = won_race(ranks=comm.size, nbytes=FIRST_BYTES, library_s=library_s)
        ours = recorded(comm, profile=assumed(describe(comm), won), algorithms={})
        assert ours.bcast(comm.rank) == 0
        assert {of for _, of in ways(ours)} == {way if comm.size > 1 else "blocking"}
        ours.Free()


@check
def as_the_program_pickles(comm: MPI.Intracomm) -> None:
    ours, kept = recorded(comm), MPI.pickle.PROTOCOL
    try:
        MPI.pickle.PROTOCOL = 2
        got = ours.bcast(OBJECTS[-1])
        MPI.pickle.__init__(lambda obj, protocol=5: pickle.dumps(obj, protocol), pickle.loads)  # type: ignore[misc]
        MPI.pickle.PROTOCOL = 5
        again = ours.bcast(OBJECTS[-1])
    finally:
        MPI.pickle.__init__()  # type: ignore[misc]
        MPI.pickle.PROTOCOL = kept
    assert all(np.array_equal(a, b) for a, b in zip(got, again, strict=True))
    ours.Free()


class Own(cw.Comm):
    """A user's class, with a method of its own."""

    def Ibcast(self, buf: Any, root: int = 0) -> Any:
        raise NotImplementedError


def is_mpi4pys(comm: cw.Comm, name: str) -> bool:
    """Whether nothing of ours comes before mpi4py's own method."""
    return bool(vars(comm).get(name) == getattr(MPI.Intracomm, name).__get__(comm))


@check
def where_no_plan_may_serve_methods_are_mpi4pys(comm: MPI.Intracomm) -> None:
    plain, some, long = (
        cw.Comm(comm.Dup(), profile=False, algorithms=algorithms)
        for algorithms in (
            {},
            {"broadcast": "chain"},
            {"broadcast": "library <= 4k, binomial", "allgatherv": "library <= 1G, ring"},
        )
    )
    for name in ("Ibcast", "Iallgather", *OBJECT_FORMS):
        assert is_mpi4pys(plain, name), name
        assert is_mpi4pys(some, name) == ("bcast" not in name.lower()), name
    for _ in range(2):
        assert long.bcast(comm.rank, comm.size - 1) == comm.size - 1
        assert long.allgather(comm.rank) == list(range(comm.size))
        assert long.allreduce(1) == comm.size
        assert long.reduce(1) == (None if comm.rank else comm.size)
        assert all(is_mpi4pys(long, name) for name in OBJECT_FORMS)
    hint(plain, "allreduce=ring")
    assert not is_mpi4pys(plain, "Iallreduce")
    assert is_mpi4pys(plain, "Ibcast")
    hint(long, "broadcast=binomial")
    assert long.bcast([comm.rank], comm.size - 1) == [comm.size - 1]
    assert is_mpi4pys(long, "bcast") == (comm.size == 1)
    own = Own(comm.Dup(), profile=False, algorithms={})
    with raises(NotImplementedError):
        own.Ibcast(None)
    for one in (plain, some, long, own):
        one.Free()
        assert "bcast" not in vars(one)
