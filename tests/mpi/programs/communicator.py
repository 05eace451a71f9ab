"""Checks of what the communicator refuses, and of its end, on real MPI; run on any number of ranks.

Whatever is wrong, all ranks hear the same words, and whoever goes on finds everything in order.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.errors import CollwiseError, DamagedProfile, InvalidArgument, UnknownName
from collwise.mpi.execution.executor_choice import executor_for
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from tests.mpi.programs.alike import MACHINE, PLANNED, accepts, works
from tests.mpi.programs.checks import check, environment, raises


def refused(comm: MPI.Intracomm, error: type[CollwiseError], act: Callable[[], Any]) -> str:
    """What is said when something is refused, on all ranks alike."""
    with raises(error) as caught:
        act()
    told: list[str] = comm.allgather(str(caught.value))
    assert set(told) == {told[0]}
    return told[0]


@check
def odd_settings_are_refused_at_once(comm: MPI.Intracomm) -> None:
    odd: list[tuple[Mapping[str, Any], type[CollwiseError], str]] = [
        ({"machine": "paragon"}, InvalidArgument, "the machine is 'paragon'; give a collwise.Mach"),
        ({"machine": cw.presets["paragon"]}, InvalidArgument, "the machine is a Preset; give a"),
        ({"algorithms": ["ring"]}, InvalidArgument, "algorithms = ['ring']; give them by collecti"),
        ({"algorithms": "ring"}, InvalidArgument, "algorithms = 'ring'; give them by collective"),
        ({"algorithms": {"broadcast": "chian"}}, UnknownName, "did you mean"),
        ({"effort": "gigantic"}, UnknownName, "effort 'gigantic': there is none; known: estimate"),
        ({"profile": "no-such-profile.json"}, DamagedProfile, "no-such-profile"),
        ({"profile": 3}, InvalidArgument, "profile = 3"),
        (
            {"algorithms": {"allgatherv": 3}},
            UnknownName,
            "algorithm (3): there is none; known: allgatherv",
        ),
        ({"algorithms": {"gather": "ring"}}, UnknownName, "did you mean allgather"),
    ]
    for settings, error, text in odd:
        told = refused(comm, error, partial(cw.Comm, comm, **settings))
        assert text in told, told
    # Rank 0's settings count, so only its own can be wrong.
    machine, effort = (MACHINE, "estimate") if comm.rank == 0 else (odd, "gigantic")
    works(cw.Comm(comm, machine=machine, effort=effort))  # type: ignore[arg-type]


@check
def plans_that_nobody_can_make_are_refused(comm: MPI.Intracomm) -> None:
    odd: list[tuple[Mapping[str, Any], type[CollwiseError], str]] = [
        (
            {"form": "persistant"},
            UnknownName,
            "form 'persistant': there is none; did you mean pers",
        ),
        ({"form": None}, UnknownName, "form (None): there is none; known: blocking, nonb"),
        ({"collective": None}, UnknownName, "collective (None): there is none; known: allgather"),
        ({"collective": "bcost"}, UnknownName, "did you mean bcast"),
        ({"collective": "allreduce", "dtype": "flot"}, InvalidArgument, "NumPy knows no such type"),
        ({"collective": "allreduce", "dtype": MPI.INT}, InvalidArgument, "elements of type a Dat"),
        ({"collective": "allreduce", "op": MPI.SUM}, UnknownName, "operator (a Op): there is none"),
        ({"op": "max"}, InvalidArgument, "broadcast with op: it is for reduce, allreduce and"),
        ({"dtype": "int32"}, InvalidArgument, "broadcast with dtype: it is for reduce, allredu"),
        ({"nbytes": True}, InvalidArgument, "nbytes = True; give an integer of at least 0"),
    ]
    for ours in (cw.Comm(comm, machine=MACHINE, effort="estimate"), cw.Comm(comm, profile=False)):
        for wishes, error, text in odd:
            arguments: Any = {"collective": "broadcast", "nbytes": 512, **wishes}
            told = refused(comm, error, partial(ours.plan, **arguments))
            assert text in told, told
    ours = cw.Comm(comm, machine=MACHINE, effort="estimate")
    said = ours.plan("allreduce", 512, op="sum", dtype="float64", form="persistent")
    assert ours.plan("allreduce", 512, form="persistent") == said
    assert (said is None) == (comm.size == 1)


@check
def methods_kept_from_a_freed_communicator_do_as_mpi4pys(comm: MPI.Intracomm) -> None:
    """All raise, but for Open MPI's Allgather; the handle that C has is nobody's any more."""
    mine, every = np.zeros(comm.size), np.zeros(comm.size**2)
    calls: dict[str, tuple[Any, ...]] = {
        "Bcast": (mine,), "Reduce": (mine, mine.copy()), "Allreduce": (mine, mine.copy()),
        "Reduce_scatter_block": (mine, mine[:1].copy()), "Allgather": (mine, every),
        "Allgatherv": (mine, every),
    }  # fmt: skip
    plain = comm.Dup()
    ours: list[MPI.Intracomm] = [
        cw.Comm(comm.Dup(), profile=False),
        cw.Comm(comm.Dup(), **PLANNED),
    ]
    told = []
    for freed in (plain, *ours):
        kept = {name: getattr(freed, name) for name in calls}
        for name, buffers in calls.items():
            kept[name](*buffers)
        freed.Free()
        told.append([name for name, buffers in calls.items() if accepts(kept[name], *buffers)])
    assert told[0] in ([], ["Allgather"]), told
    assert told == told[:1] * 3


@check
def requests_that_were_freed_refuse(comm: MPI.Intracomm) -> None:
    private = PrivateCommunicator(comm)
    schedule = cw.ALGORITHMS["broadcast/chain"].schedule(comm.size, 10)
    freed, kept = (executor_for(schedule, private).persistent(bytearray(10)) for _ in range(2))
    freed.Start()
    freed.Free()  # completes it first
    freed.Wait()  # nothing is left to wait for, as with MPI's
    assert freed.Test()
    told = refused(comm, InvalidArgument, freed.Start)
    assert "it was freed, or the communicator that it was made on; make a new one" in told
    assert not freed.active
    freed.Free()
    for _ in range(2):  # nothing is broken
        kept.Start()
        kept.Wait()
    kept.Start()
    private.free()  # frees what was made on it, running or not
    refused(comm, InvalidArgument, kept.Start)


@check
def a_profile_that_is_named_and_not_there_is_refused(comm: MPI.Intracomm) -> None:
    with environment(comm, {"COLLWISE_PROFILE": "no-such-profile.json"}):
        told = refused(comm, DamagedProfile, partial(cw.Comm, comm))
    assert "read the profile no-such-profile.json: there is no such file; " in told
    assert "COLLWISE_PROFILE" in told
    works(cw.Comm(comm))


@check
def what_mpi_keeps_is_not_freed(comm: MPI.Intracomm) -> None:
    world = [comm] if comm == MPI.COMM_WORLD else []
    for permanent in (*world, MPI.COMM_SELF):
        ours = cw.Comm(permanent, **PLANNED)
        works(ours)
        request = ours.Bcast_init(bytearray(10))
        assert isinstance(request, PersistentCollective) == (ours.size > 1)
        for _ in range(2):
            ours.Free()
            assert ours == permanent
            works(ours)
            works(permanent)
            assert ours.plan("broadcast", 512) is None
        if ours.size > 1:
            refused(comm, InvalidArgument, request.Start)
        else:
            request.Free()
    again = cw.Comm(comm, **PLANNED)  # it can be wrapped anew
    works(again)
    for base in (comm.Dup(), comm.Split(comm.rank % 2)):
        ours = cw.Comm(MPI.Intracomm(base), **PLANNED)
        works(ours)
        ours.Free()
        assert ours == MPI.COMM_NULL


@check
def types_that_were_never_committed_break_nothing(comm: MPI.Intracomm) -> None:
    """Whether an element of them goes from everybody, or from one rank, to all."""
    ours, size = cw.Comm(comm, **PLANNED), comm.size
    for datatype in (MPI.INT.Create_vector(2, 1, 2), MPI.INT.Create_contiguous(2)):
        mine, memory = [np.zeros(4, np.int32), 1, datatype], np.zeros(4 * size, np.int32)
        vector = [memory, ([1] * size, list(range(size))), datatype]
        calls: list[tuple[str, list[Any]]] = [
            ("Bcast", [mine, size - 1]),
            ("Bcast_init", [mine, 0]),
            ("Allgatherv", [mine, vector]),
            ("Allgatherv_init", [mine, vector]),
            ("Allgather", [mine, [memory, 1, datatype]]),
        ]
        for (name, given), which in product(calls, (comm, ours)):
            with raises(MPI.Exception) as refusal:
                getattr(which, name)(*given)
            assert refusal.value.Get_error_class() == MPI.ERR_TYPE
            works(which)
        datatype.Commit()
        data = np.full(4, comm.rank, np.int32)
        ours.Bcast([data, 1, datatype], size - 1)
        assert data[0] == size - 1
        datatype.Free()
