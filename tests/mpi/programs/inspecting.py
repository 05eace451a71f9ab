"""Checks of fingerprints: of our own algorithms, whose schedules say what they do."""

import re
from operator import add
from typing import Any

import numpy as np
from mpi4py import MPI

from collwise.algorithms.registry import find
from collwise.mpi.library.fingerprints import (
    broadcast_tree,
    combined,
    early_blocks,
    folded,
    sided,
    summed,
)
from collwise.mpi.library.own_algorithms import catalogue
from collwise.schedule.operations import Recv
from collwise.schedule.problem import brackets
from tests.mpi.programs.alike import wrapped
from tests.mpi.programs.checks import check

VALUES = [1e16, 1.0, -1e16, 1.0, 3.0, 1e16, 0.1, -1e16]


@check
def expressions_are_those_of_the_schedule(comm: MPI.Intracomm) -> None:
    """Values that are gathered are combined in fixed brackets; a ring begins blocks elsewhere."""
    p = comm.size
    values = [*map(str, range(p))]
    for left, right in brackets(p):
        values[right] = f"({values[left]} {values[right]})"
    in_order = values[-1]
    with wrapped(comm, algorithms={"allreduce": "gather_combine"}) as ours:
        for commute in (False, True):
            seen = combined(ours, "Allreduce", 64, commute=commute)
            assert seen == (((in_order,),) * p, True, True), seen
        sums = summed(ours, "Allreduce", 64, VALUES)
        assert sums.values == (folded(in_order, VALUES.__getitem__, add),)
    with wrapped(comm, algorithms={"allreduce": "ring"}) as ours:
        seen = combined(ours, "Allreduce", 8 * p)
        assert seen.ranks_agree
        assert seen.elements_agree == (p < 3), "with two ranks only the sides differ"
        assert len(seen.values) == p
        sums = summed(ours, "Allreduce", 8 * p, VALUES)
        assert [*sums.by_rank[0]] == [
            *dict.fromkeys(folded(one, VALUES.__getitem__, add) for one in seen.by_rank[0])
        ]
    with wrapped(comm, algorithms={"reduce": "binomial"}) as ours:
        seen = combined(ours, "Reduce", 8)
        assert seen.by_rank[1:] == ((),) * (p - 1)
        assert sorted(re.findall(r"\d", seen.values[0])) == [*map(str, range(p))]


@check
def what_differs_is_seen(comm: MPI.Intracomm) -> None:
    """A communicator on which a rank, or a place in the vector, has another result."""

    class Differing(MPI.Intracomm):
        def Allreduce(self, sent: Any, received: Any, op: MPI.Op = MPI.SUM) -> None:
            super().Allreduce(sent, received, op)
            if self.rank == self.size - 1:
                received[-1] = self.rank if received.dtype == np.uint64 else 0.5

    seen = combined(Differing(comm), "Allreduce", 16)
    assert seen.ranks_agree == (comm.size == 1)
    assert seen.elements_agree == (comm.size == 1)
    sums = summed(Differing(comm), "Allreduce", 16, VALUES)
    assert sums.ranks_agree == (comm.size == 1)
    assert not sums.elements_agree
    assert sums.by_rank[-1][-1] == 0.5


@check
def trees_are_those_of_the_schedule(comm: MPI.Intracomm) -> None:
    p = comm.size
    for root in {0, p - 1}:
        for name in ("chain", "flat", "binomial"):
            with wrapped(comm, algorithms={"broadcast": name}) as ours:
                tree = broadcast_tree(ours, 8, root)
            lists = find(f"broadcast/{name}").schedule(p, 8, root).lists
            senders = [
                [op.peer for op in operations if isinstance(op, Recv)] for operations in lists
            ]
            assert tree.parents == tuple(next(iter(some), None) for some in senders), tree
            assert not tree.late[root]
            assert not tree.why_not


@check
def what_is_no_tree_is_told(comm: MPI.Intracomm) -> None:
    """Everybody waits for everybody in a scatter followed by an allgather."""
    if comm.size < 4:
        return
    with wrapped(comm, algorithms={"broadcast": "scatter_ring"}) as ours:
        tree = broadcast_tree(ours, 64)
    assert not tree.parents
    assert tree.why_not == "ranks receive from several others"


@check
def sides_are_those_of_the_lowest_ranks(comm: MPI.Intracomm) -> None:
    assert sided("((4 3) (2 (10 1)))") == "(((1 10) 2) (3 4))"
    assert sided("0") == "0"


@check
def early_blocks_of_a_ring_come_from_ranks_behind_the_late_one(comm: MPI.Intracomm) -> None:
    """By our ring, and by that of each library that lets it be chosen."""
    p = comm.size
    expected = tuple(
        tuple(
            frozenset((late + step) % p for step in range(1, (rank - late) % p))
            for late in range(p)
        )
        for rank in range(p)
    )
    calls = [("ring", "Allgatherv")]
    if "ring" in catalogue("Allgather", "blocking").algorithms:
        calls.append(("library:ring", "Allgather"))
    for label, method in calls:
        with wrapped(comm, algorithms={"allgatherv": label}) as ours:
            assert early_blocks(ours, method, 64) == expected, (label, method)
