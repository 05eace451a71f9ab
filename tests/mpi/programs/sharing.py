"""Checks of one copy of an array on each node."""

import os
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import InvalidArgument
from tests.mpi.programs.alike import mapped
from tests.mpi.programs.checks import check, logged, raises, replaced

ARRAYS: list[Any] = [
    np.arange(12.0).reshape(3, 4),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(20)[::3],
    np.array(5 + 2j),
    np.zeros((0, 7), np.float32),
    np.array([(1, 2.5)], [("a", "i2"), ("b", ">f8")]),
    [[1, 2], [3, 4]],
    np.arange(300_000, dtype=np.int8),
]


def nodes_of(comm: MPI.Intracomm, nodes: tuple[int, ...]) -> cw.Comm:
    ours = cw.Comm(comm.Dup(), profile=False)
    ours._world = ours._world._replace(nodes=nodes)
    return ours


@check
def an_array_is_shared_on_each_node(comm: MPI.Intracomm) -> None:
    ranks = range(comm.size)
    for nodes in ((0,) * comm.size, tuple(rank % 2 for rank in ranks), tuple(ranks)):
        ours = nodes_of(comm, nodes)
        before = mapped()
        for number, array in enumerate(ARRAYS):
            root = number % comm.size
            shared = ours.share(array if comm.rank == root else "not looked at", root)
            expected = np.asarray(array)
            assert shared.dtype == expected.dtype
            assert shared.shape == expected.shape
            assert np.array_equal(shared, expected)
            assert not shared.flags.writeable
            assert shared.flags.f_contiguous == np.asfortranarray(shared).flags.f_contiguous or (
                shared.flags.c_contiguous
            )
            with raises(ValueError):
                shared.flags.writeable = True
            assert mapped() == before + 1 or comm.size == 1
            del shared
            assert mapped() == before
        ours.Free()


@check
def it_lives_as_long_as_a_view_or_a_with_statement(comm: MPI.Intracomm) -> None:
    ours = nodes_of(comm, (0,) * comm.size)
    array = np.arange(1000.0)
    before = mapped()
    with ours.share(array) as table:
        part = table[10:20]
        assert type(table + 1) is np.ndarray
        assert isinstance(table.sum(), float)
    assert table.size == 0
    with raises(TypeError):
        table.sum()
    assert np.array_equal(part, array[10:20])
    assert mapped() == before + 1
    del part
    assert mapped() == before
    kept = ours.share(array)
    ours.Free()
    assert np.array_equal(kept, array)


@check
def ranks_that_cannot_share_have_copies(comm: MPI.Intracomm) -> None:
    """A rank that cannot open the memory, one that cannot make it, and one that is elsewhere."""
    array, last = np.arange(5000), comm.size - 1
    opened, read = os.open, os.pread

    def fails(*_: Any) -> Any:
        raise OSError("no more of that")

    def of_another_process(path: str, *more: Any, **named: Any) -> int:
        here = comm.rank < last or not path.startswith("/proc/")
        return opened(path, *more, **named) if here else os.memfd_create("another")

    broken: list[dict[str, Any]] = [
        {"memfd_create": fails},
        {"pread": fails if comm.rank == last else read},
        {"open": of_another_process},
    ]
    for number, functions in enumerate(broken):
        nodes = (*(rank // 2 for rank in range(last)), last // 2)
        ours = nodes_of(comm, nodes)
        copies = nodes[comm.rank] == nodes[last] or number == 0
        if number == 2 and nodes.count(nodes[last]) == 1:
            continue  # it opens nothing of others
        before = mapped()
        with replaced(os, **functions), logged() as said:
            shared = ours.share(array if comm.rank == 0 else None)
        assert np.array_equal(shared, array)
        assert mapped() == before + (not copies)
        assert "cannot" in said[0], said
        del shared
        ours.Free()


@check
def what_cannot_be_shared_is_refused_by_all(comm: MPI.Intracomm) -> None:
    ours = nodes_of(comm, (0,) * comm.size)
    with raises(InvalidArgument, "its elements are Python objects"):
        ours.share([object()] if comm.rank == 0 else None)
    with raises(MPI.Exception):
        ours.share(np.zeros(3), root=comm.size)
    ours.Free()
