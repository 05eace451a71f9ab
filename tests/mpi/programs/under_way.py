"""Started collectives while their owner does something else: who drives them, who owns memory."""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.errors import BrokenCommunicator
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution import executor
from collwise.mpi.runtime.progress import running
from tests.mpi.programs.alike import MACHINE, adding, perform
from tests.mpi.programs.checks import check, raises, replaced

CHAINS = {"broadcast": "chain", "allreduce": "reduce_broadcast"}
WITHIN_S = 30


def chains(comm: MPI.Intracomm) -> cw.Comm:
    return cw.Comm(comm.Dup(), machine=MACHINE, algorithms=CHAINS)


def meet(comm: MPI.Intracomm) -> None:
    """As `Barrier`, without a call that drives the library while nothing has come."""
    token = np.zeros(1)
    for step in (1 << n for n in range(comm.size.bit_length())):
        if step < comm.size:
            sent = comm.Isend(token, (comm.rank + step) % comm.size, 5)
            comm.Recv(np.zeros(1), (comm.rank - step) % comm.size, 5)
            sent.Wait()


def received(comm: MPI.Intracomm, source: int) -> bool:
    """Whether a plain message comes, of which we say where the program hangs otherwise."""
    request = comm.Irecv(np.zeros(1), source, 6)
    until = time.monotonic() + WITHIN_S
    while not (came := request.Test()) and time.monotonic() < until:
        pass
    return came


def send_to_others(comm: MPI.Intracomm) -> None:
    for other in range(comm.size):
        if other != comm.rank:
            comm.Send(np.zeros(1), other, 6)


def start_late(comm: MPI.Intracomm, request: Any, late: int) -> None:
    """Start a request on all ranks, on one of them once all others have."""
    if comm.rank == late:
        meet(comm)
    request.Start()
    if comm.rank != late:
        meet(comm)


def complete_last_first(comm: MPI.Intracomm, request: Any) -> bool:
    """Complete a request on the last rank, and then on those that it tells: whether they hear."""
    last, came = comm.size - 1, True
    if comm.rank == last:
        request.Wait()
        send_to_others(comm)
    else:
        came = received(comm, last)
    request.Wait()
    return came


# -- who drives a started collective -----------------------------------------------------------


@check
def a_request_that_was_looked_at_once_is_driven(comm: MPI.Intracomm) -> None:
    """Between `Test` and `Wait` are plain calls of MPI only, and others wait for this rank."""
    ours, data = chains(comm), np.zeros(1000, "i4")
    request = ours.Bcast_init(data, 0)
    for look in ("Test", "Get_status", "test"):
        data[:] = comm.rank == 0
        if comm.rank == 0:
            meet(comm)
            request.Start()
        else:
            request.Start()
            assert getattr(request, look)() in (False, (False, None))
            meet(comm)
        assert complete_last_first(comm, request), f"nobody drove it after {look}"
        assert data.all()
        assert not running()
    request.Free()
    ours.Free()


@check
def requests_that_nobody_has_are_driven(comm: MPI.Intracomm) -> None:
    """Also after something looked for them, and after the communicator was freed."""
    last = comm.size - 1
    for sweeps, frees in ((False, False), (True, False), (False, True)):
        ours = chains(comm)
        data = np.full(1000, comm.rank == 0, "i4")
        request = ours.Bcast_init(data, 0)
        spare = np.zeros(8, "i4")
        ours.Allreduce_init(np.ones(8, "i4"), spare).Free()
        if comm.rank == 0:
            meet(comm)
        request.Start()
        inner = 0 < comm.rank < last
        if inner:
            del request
            gc.collect()
        if sweeps:
            ours.Allreduce_init(np.ones(8, "i4"), spare).Free()
        if frees and inner:
            ours.Free()
        if comm.rank:
            meet(comm)
        if not inner:
            request.Wait()
            assert data.all()
            del request
        came = True
        if comm.rank == last:
            send_to_others(comm)
        else:
            came = received(comm, last)
        assert came, (sweeps, frees)
        if not (frees and inner):
            ours.Free()


# -- operators of the user's -------------------------------------------------------------------


@check
def operators_may_free_collect_and_call(comm: MPI.Intracomm) -> None:
    """While the rank that combines waits in a plain call of MPI, or in one of ours."""
    ours, last = chains(comm), comm.size - 1
    mine, total = np.full(1000, comm.rank + 1, "i4"), np.zeros(1000, "i4")
    bucket: list[Any] = []
    called = list[Any]()
    acts: dict[str, Callable[[], object]] = {
        "free": bucket.clear,
        "collect": gc.collect,
        "test another": lambda: [one.Test() for one in bucket],
        "call MPI": lambda: MPI.COMM_SELF.Sendrecv(mine, 0, 0, np.zeros(1000, "i4"), 0, 0),
        "bcast": lambda: MPI.COMM_SELF.Bcast(mine),
    }
    for name, act in acts.items():
        bucket[:] = [ours.Allreduce_init(mine.copy(), total.copy()) for _ in range(3)]

        def do(act: Callable[[], object] = act) -> None:
            called.append(act)
            act()

        with adding(do) as op:
            request = ours.Allreduce_init(mine, total, op)
            for elsewhere in (True, False):
                start_late(comm, request, last)
                assert not elsewhere or complete_last_first(comm, request), name
                request.Wait()
                assert (total == comm.size * (comm.size + 1) // 2).all(), name
            request.Free()
    assert comm.size == 1 or comm.allreduce(len(called)) >= len(acts)
    bucket.clear()
    ours.Free()


@check
def garbage_is_collected_while_a_helper_combines(comm: MPI.Intracomm) -> None:
    """The helper waits for Python's lock in the operator, and Python frees requests meanwhile."""
    ours = chains(comm)
    mine, total = np.full(100, comm.rank + 1, "i4"), np.zeros(100, "i4")
    with adding(lambda: time.sleep(0.0002)) as op:
        for _ in range(20):
            request = ours.Iallreduce(mine, total, op)
            for _ in range(5):
                circle: list[Any] = [ours.Allreduce_init(mine.copy(), total.copy())]
                circle.append(circle)
                del circle
                gc.collect()
                time.sleep(0.0005)
            request.Wait()
            assert (total == comm.size * (comm.size + 1) // 2).all()
    ours.Free()


@check
def no_operator_is_called_inside_of_mpi(comm: MPI.Intracomm) -> None:
    """In a thread that is in a plain call of MPI: its library may hold locks there."""
    import threading

    ours, last = chains(comm), comm.size - 1
    mine, total = np.full(10, comm.rank + 1, "i4"), np.zeros(10, "i4")
    inside, threads = [False], []
    me = threading.get_ident()
    with adding(lambda: threads.append(inside[0] and threading.get_ident() == me)) as op:
        request = ours.Allreduce_init(mine, total, op)
        start_late(comm, request, last)
        if comm.rank != last:
            inside[0] = True
            comm.Recv(np.zeros(1), last, 6)
            inside[0] = False
        request.Wait()
        if comm.rank == last:
            send_to_others(comm)
        assert not any(threads)
        request.Free()
    ours.Free()


@check
def an_operator_that_was_freed_is_refused(comm: MPI.Intracomm) -> None:
    """Its handle may be another operator's by now."""
    ours = chains(comm)
    mine, result = np.full(4, comm.rank + 2, "i4"), np.zeros(4, "i4")

    def product(left: Any, right: Any, _: MPI.Datatype) -> None:
        into = np.frombuffer(right, "i4")
        into *= np.frombuffer(left, "i4")

    freed = MPI.Op.Create(product, commute=True)
    for _ in range(2):
        ours.Allreduce(mine, result, freed)
        ours.Iallreduce(mine, result, freed).Wait()
    freed.Free()
    with adding(bool) as other:
        result[:] = -1
        for call in (ours.Allreduce, ours.Iallreduce, ours.Allreduce_init):
            with raises((MPI.Exception, ValueError)):
                call(mine, result, freed)
            assert (result == -1).all()
        ours.Allreduce(mine, result, other)
        assert (result == sum(range(2, comm.size + 2))).all()
    ours.Free()


# -- who owns their memory ---------------------------------------------------------------------


@check
def late_messages_overwrite_nothing(comm: MPI.Intracomm) -> None:
    """A request, its buffer and its communicator are gone before the message comes."""
    for breaks, count in ((False, 1 << 16), (True, 1 << 8)):  # rank 0 can send it at once
        ours = chains(comm)
        data = np.full(count, comm.rank == 0, "i4")
        request = ours.Bcast_init(data, 0)
        comm.Barrier()
        if comm.rank == 0:
            comm.Barrier()
            request.Start()
            request.Wait()
        else:
            request.Start()
            if breaks:
                ours._dispatch.duplicate.made.mark_broken(MPI.Exception(MPI.ERR_OTHER))  # type: ignore[union-attr]
            del request, data
            ours.Free()
            others = [np.full(count, 7, "i4") for _ in range(4)]  # likely the same memory
            comm.Barrier()
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                comm.Iprobe()
            assert all((one == 7).all() for one in others), breaks
        comm.Barrier()
        if comm.rank == 0:
            ours.Free()


@check
def a_broken_communicator_completes_nothing(comm: MPI.Intracomm) -> None:
    """`Wait` and `Test` of another request that was active say so, again and again."""
    ours = chains(comm)
    buffers = [np.full(4, comm.rank == 0, "i4") for _ in range(3)]
    requests: list[Any] = [ours.Bcast_init(one, 0) for one in buffers]
    comm.Barrier()
    if comm.rank == 0:
        comm.Barrier()
        for request in requests[:2]:
            request.Start()
            request.Wait()
    else:
        for request in requests[:2]:
            request.Start()
        ours._dispatch.duplicate.made.mark_broken(KeyboardInterrupt())  # type: ignore[union-attr]
        for request in requests[:2]:
            assert request.active
            for act in (request.Test, request.Wait, request.Get_status, request.test, request.Wait):
                with raises(BrokenCommunicator):
                    act()
        assert requests[2].Test()  # it was not active
        assert requests[2].Wait()
        data = buffers[2]
        forms = (partial(form, data, 0) for form in (ours.Bcast, ours.Ibcast, ours.Bcast_init))
        for act in (requests[2].Start, *forms):
            with raises(BrokenCommunicator, match="KeyboardInterrupt"):
                act()
        assert not any(one.any() for one in buffers)
        comm.Barrier()
    for request in requests:
        request.Free()
    comm.Barrier()
    ours.Free()


@check
def a_call_that_raised_uses_up_no_tag(comm: MPI.Intracomm) -> None:
    ours: Any = chains(comm)
    mine, total = np.ones(8, "i4"), np.zeros(8, "i4")
    ours.Allreduce(mine, total)

    def fails(nbytes: int) -> Any:
        raise MemoryError(nbytes)

    ways: tuple[Way, ...] = "persistent", "nonblocking"
    for way in ways:
        if 0 < comm.rank == comm.size - 1:  # alone, the library's own serves
            with replaced(executor, allocate=fails), raises(MemoryError):
                perform(way, ours, "Allreduce", mine, total)
        perform(way, ours, "Allreduce", mine, total)
        assert (total == comm.size).all()
        total[:] = 0
    ours.Free()


# -- the table of the compiled engine ----------------------------------------------------------


@check
def calls_in_c_are_learned_again(comm: MPI.Intracomm) -> None:
    """Once Python's cache was emptied because it was full."""
    if COMPILED is None or not COMPILED.hooks() or comm.size == 1:
        return
    ours = chains(comm)
    slow, dispatch = [0], ours._dispatch
    served = dispatch.call

    def counted(*arguments: Any) -> Any:
        slow[0] += 1
        return served(*arguments)

    dispatch.call = counted  # type: ignore[assignment, method-assign]
    data = np.ones(8, "i4")
    for _ in range(3):
        dispatch.calls.forget()
        slow[0] = 0
        for _ in range(20):
            ours.Ibcast(data).Wait()
        assert slow[0] < 5, slow
    ours.Free()


@check
def displacements_beyond_31_bits_are_mpi4pys(comm: MPI.Intracomm) -> None:
    """The memory is never touched: nothing serves the call."""
    if COMPILED is None or comm.rank:
        return
    keys: list[bytes | None] = []

    def slow(_: str, key: bytes | None, *__: Any) -> None:
        keys.append(key)

    calls = COMPILED.Calls(0, ["Allgatherv"], comm, 2, 3, MPI.SUM, slow, repr)
    whole = np.empty((1 << 31) + 64, "u1")
    for counts, read in (([1 << 20, 5, 7], True), ([(1 << 31) - 1, 5, 7], False)):
        mine = whole[: counts[2]]
        calls.allgatherv(mine, [whole, counts, MPI.BYTE])
        assert isinstance(keys[-1], bytes) == read, (counts, keys)
