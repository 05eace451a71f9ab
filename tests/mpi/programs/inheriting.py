"""Checks that communicators which MPI makes of ours plan as it does, on real MPI."""

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.checking import ENVIRONMENT
from collwise.comm.decision import Decision
from collwise.errors import InvalidArgument
from collwise.mpi.runtime import private_communicator
from collwise.mpi.runtime.world import World
from tests.mpi.programs.alike import MACHINE, works
from tests.mpi.programs.checks import check, environment, raises, replaced
from tests.profiles.example import example

ALGORITHMS = {"broadcast": "chain", "allreduce": "recursive_doubling", "allgatherv": "bruck"}


def ours(comm: MPI.Intracomm, **settings: Any) -> cw.Comm:
    return cw.Comm(comm.Dup(), machine=MACHINE, **{"algorithms": ALGORITHMS, **settings})


def started(comm: Any, *info: MPI.Info) -> Any:
    made, request = comm.Idup_with_info(*info) if info else comm.Idup()
    request.Wait()
    return made


def makers(comm: Any) -> dict[str, Callable[[], Any]]:
    """Every way to make a communicator of another one, and the class that it has."""
    size, rank, everybody = comm.size, comm.rank, comm.Get_group()
    others = [(rank + 1) % size]
    return {
        "Dup": comm.Dup,
        "Dup_with_info": lambda: comm.Dup_with_info(MPI.INFO_NULL),
        "Clone": comm.Clone,
        "Idup": lambda: started(comm),
        "Idup_with_info": lambda: started(comm, MPI.INFO_NULL),
        "Split": lambda: comm.Split(rank % 2, -rank),
        "Split_type": lambda: comm.Split_type(MPI.COMM_TYPE_SHARED),
        "Create": lambda: comm.Create(everybody),
        "Create_group": lambda: comm.Create_group(everybody),
        "Create_cart": lambda: comm.Create_cart([size], periods=[True]),
        "Sub": lambda: comm.Create_cart([1, size]).Sub([False, True]),
        "Dup of a Cartcomm": lambda: comm.Create_cart([size]).Dup(),
        "Create_graph": lambda: comm.Create_graph(range(1, size + 1), [*range(1, size), 0]),
        "Create_dist_graph": lambda: comm.Create_dist_graph([rank], [1], others),
        "Create_dist_graph_adjacent": lambda: comm.Create_dist_graph_adjacent(
            [(rank - 1) % size], others
        ),
    }


@check
def what_mpi_makes_of_ours_is_ours(comm: MPI.Intracomm) -> None:
    parent, plain = ours(comm), MPI.Intracomm(comm.Dup())
    for name, make in makers(parent).items():
        made: Any = make()
        assert isinstance(made, cw.Comm), name
        theirs = makers(plain)[name]()
        assert isinstance(made, type(theirs)), name  # Cartcomm, …
        assert (made.size, made.rank) == (theirs.size, theirs.rank), name
        theirs.Free()
        assert made._dispatch.duplicate.made is None, name
        plan = made.plan("broadcast", 400)
        assert (plan is not None and plan.algorithm == "broadcast/chain") == (made.size > 1), name
        works(made)
        assert (made._dispatch.duplicate.made is not None) == (made.size > 1), name
        made.Free()
        assert made == MPI.COMM_NULL, name
    works(parent)
    for one in (parent, plain):
        one.Free()


@check
def who_is_left_out_gets_no_communicator(comm: MPI.Intracomm) -> None:
    parent = ours(comm)
    whole = parent.Get_group()
    first = whole.Incl([0])
    colour = 0 if comm.rank == 0 else MPI.UNDEFINED
    every: list[Any] = [parent.Split(colour), parent.Create(first), parent.Create_cart([1])]
    for made in every:
        assert (made == MPI.COMM_NULL) == (comm.rank > 0)
        if made != MPI.COMM_NULL:
            works(made)
            made.Free()
    parent.Free()


@check
def idup_does_not_wait_for_others(comm: MPI.Intracomm) -> None:
    parent, token = ours(comm), np.zeros(1)
    if comm.rank:
        comm.Recv(token, 0)
    made, request = parent.Idup()
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.Send(token, other)
    request.Wait()
    works(made)
    made.Free()
    parent.Free()


@check
def a_freed_parent_bequeaths_nothing(comm: MPI.Intracomm) -> None:
    permanent = comm if comm == MPI.COMM_WORLD else MPI.COMM_SELF
    parent = cw.Comm(permanent, machine=MACHINE, algorithms=ALGORITHMS)
    made = parent.Dup()
    parent.Free()
    works(made)
    late: Any = parent.Dup()
    works(late)
    assert not late._served
    made.Free()
    late.Free()


@check
def copies_are_served_alike(comm: MPI.Intracomm) -> None:
    parent = ours(comm)
    again = copy.copy(parent)
    assert type(again) is cw.Comm
    assert again == parent
    assert again is not parent
    works(again)
    assert again._dispatch is parent._dispatch
    parent.Free()


@check
def the_world_can_be_pickled(comm: MPI.Intracomm) -> None:
    theirs = MPI.COMM_WORLD
    wrapped = cw.Comm(MPI.COMM_SELF, profile=False)
    assert pickle.loads(pickle.dumps(wrapped)) == MPI.COMM_SELF
    with replaced(MPI, COMM_SELF=wrapped):
        assert pickle.loads(pickle.dumps(wrapped)) is wrapped
    assert pickle.loads(pickle.dumps(theirs)) is theirs
    parent = ours(comm)
    with raises(ValueError, match="cannot serialize"):
        pickle.dumps(parent)
    parent.Free()


@check
def checks_are_inherited(comm: MPI.Intracomm) -> None:
    with environment(comm, {ENVIRONMENT: "1"}):
        parent = ours(comm)
    every: list[Any] = [parent.Dup(), started(parent), parent.Split(0, -comm.rank)]
    for made in every:
        works(made)
        if comm.size > 1:
            with raises(InvalidArgument, match="root: "):
                made.Bcast(np.zeros(3), made.rank % 2)
            works(made)
        made.Free()
    parent.Free()


@check
def a_communicator_from_a_group(comm: MPI.Intracomm) -> None:
    group = comm.Get_group()
    made = cw.Comm.Create_from_group(group, f"collwise {comm.size}", algorithms=ALGORITHMS)
    assert type(made) is cw.Comm
    assert made.size == comm.size
    works(made)
    assert (made.plan("broadcast", 400) is None) == (comm.size == 1)
    made.Free()
    group.Free()


@check
def parts_lie_otherwise_on_nodes(comm: MPI.Intracomm) -> None:
    if comm.size > 1:
        return
    world = World(
        "Test MPI 1.0", "MPI 4.1", True, ("a", "a", "b", "b", "b"), 4, nodes=(0, 0, 1, 1, 1)
    )
    profile, near = example(), example()
    whole = Decision(profile, one_node_profile=near).on(world)
    assert (whole.ranks_per_node, whole.profile) == (world.ranks_per_node, profile)
    assert whole.on(world) is whole
    part = whole.on(world.part([0, 2, 3]))
    assert (part.ranks_per_node, part.profile) == ("1x2 1x1", profile)
    node = whole.on(world.part([4, 3]))
    assert node.ranks_per_node == "1x2"
    assert node.profile is near
    shares = world._replace(transport="memory")
    assert (world.sharing, shares.part([0, 2, 3]).sharing) == ((), (0, 1, 1))
    assert shares.fingerprint().differences(world.fingerprint()) == [
        "transport inside a node: 'memory' there, 'messages' here"
    ]


def parts_of(comm: Any) -> dict[str, Callable[[], Any]]:
    """Ways to make communicators of fewer ranks, in another order, or of such ones again."""
    size, rank, everybody = comm.size, comm.rank, comm.Get_group()
    fewer, back = max(size - 1, 1), everybody.Incl(range(size)[::-1])
    reverse, last = comm.Split(0, -rank), everybody.Incl([size - 1])
    return {
        "smaller Cartcomm": lambda: comm.Create_cart([fewer], reorder=True),
        "smaller Cartcomm of reversed ranks": lambda: reverse.Create_cart([fewer]),
        "smaller Graphcomm": lambda: comm.Create_graph([1], [0]),
        "Create": lambda: comm.Create(back),
        "Create_group": lambda: comm.Create_group(back),
        "Create of the last": lambda: comm.Create(last),
        "Split_type": lambda: comm.Split_type(MPI.COMM_TYPE_SHARED, -rank),
        "reversed Distgraphcomm": lambda: reverse.Create_dist_graph([rank], [0], []),
    }


@check
def parts_have_the_ranks_that_they_say(comm: MPI.Intracomm) -> None:
    """MPICH's group of a smaller Cartcomm has all ranks of its parent."""
    parent = ours(comm)
    names = tuple(f"host of rank {rank}" for rank in range(comm.size))
    parent._world = parent._world._replace(hosts=names)
    for name, make in parts_of(parent).items():
        made: Any = make()
        if made == MPI.COMM_NULL:
            continue
        again = [made.Split(0, -made.rank), made.Dup()]
        if isinstance(made, MPI.Cartcomm):
            again += [made.Sub([True]), made.Create_cart([max(made.size - 1, 1)])]
        for one in (made, *again):
            if one != MPI.COMM_NULL:
                theirs = MPI.Intracomm(one).allgather(names[comm.rank])
                assert [*one._world.hosts] == theirs, name
                works(one)
                one.Free()
    parent.Free()


@check
def a_merged_communicator_is_planned_for(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    half: Any = comm.Split(comm.rank % 2)
    between = half.Create_intercomm(0, comm, 1 - comm.rank % 2, 7)
    merged: Any = ours(between.Merge(comm.rank % 2 == 0))
    works(merged)
    for one in (merged, between, half):
        one.Free()


@check
def duplicates_of_dropped_communicators_count(comm: MPI.Intracomm) -> None:
    """MPI has them still."""
    parent = ours(comm)
    free, held = 2, comm.allreduce(len(private_communicator.held), MPI.MAX)
    with replaced(private_communicator, MOST=held + free):
        served = 0
        for _ in range(free + 2):
            made: Any = parent.Dup()
            works(made)
            served += made._dispatch.duplicate.made is not None
            del made
            gc.collect()
        assert served == (free if comm.size > 1 else 0)
    parent.Free()
