"""Checks of requests, persistent and non-blocking ones, on real MPI; run on any number of ranks."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.comm.served import METHODS
from collwise.errors import BrokenCommunicator
from collwise.mpi.engine.compiled_plan import ProgramInstruction
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.mpi.runtime.private_communicator import largest_tag
from collwise.mpi.runtime.progress import running
from collwise.mpi.runtime.world import describe
from collwise.profiles.records import FORMS
from collwise.system.host import TRANSPORTS
from tests.mpi.programs.alike import (
    ALGORITHMS,
    MACHINE,
    PLANNED,
    Call,
    adding,
    allocates_nothing,
    assumed,
    complete,
    perform,
)
from tests.mpi.programs.checks import check, raises
from tests.profiles.example import won_race

HOOKS = COMPILED is not None and COMPILED.hooks()


def planned(comm: MPI.Intracomm, transport: str = "messages") -> Iterator[cw.Comm]:
    for algorithms in ALGORITHMS:
        ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=algorithms, transport=transport)
        yield ours
        ours.Free()


@check
def started_in_different_orders(comm: MPI.Intracomm) -> None:
    """Every rank starts them in an order of its own and completes them in the opposite one.

    There are more of them than memory inside a node has lanes, so some send messages.
    """
    for ours in chain(planned(comm), planned(comm, "memory")):
        calls = [
            Call(ours, method, (40, 3000)[n % 2], n % comm.size)
            for n, method in enumerate(METHODS * 3)
        ]
        requests = [call.make(ours, "persistent") for call in calls]
        between = Call(ours, "Allreduce", 3)
        order = list(np.random.default_rng(comm.rank).permutation(len(calls)))
        for again in range(4):
            for number in order:
                calls[number].fill(number + again)
                requests[number].Start()
            between.fill(again)
            between.run(ours)  # it moves the started ones on
            for number in reversed(order):
                complete(requests[number], testing=number % 2 == 1)
            for call in calls:
                call.check()
        for request in requests:
            request.Free()


@check
def ranks_forward_while_they_are_elsewhere(comm: MPI.Intracomm) -> None:
    """Nobody but the last rank calls collwise until its part is complete.

    Legal with the library's own: everybody else waits for a message that the last rank sends only
    then.
    """
    token, last = np.zeros(1), comm.size - 1
    ways: tuple[Way, ...] = "persistent", "nonblocking"
    for ours in planned(comm):
        for number, method in enumerate(METHODS * 2):
            call, way = Call(ours, method, 100, last * (method == "Reduce")), ways[number % 2]
            call.fill(number)
            request: Any = call.make(ours, way)
            if way == "persistent":
                request.Start()
            if comm.rank == last:
                request.Wait()
                for other in range(last):
                    comm.Send(token, other)
            else:
                comm.Recv(token, last)
                request.Wait()
            assert not running()
            call.check()
            if way == "persistent":
                request.Free()


@check
def no_request_gets_the_tag_of_another(comm: MPI.Intracomm) -> None:
    """Requests of both forms are held while half of the tags, and then all, are used up."""
    for transport in TRANSPORTS if comm.size > 1 else ():
        flat = {"broadcast": "flat", "allreduce": "ring"}
        ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms=flat, transport=transport)
        duplicate, x = ours._dispatch.duplicate, np.zeros(4)
        ours.Bcast(x)
        first = duplicate.make()
        assert comm.allreduce(largest_tag(), MPI.MIN) == comm.allreduce(largest_tag(), MPI.MAX)
        held = [Call(ours, "Allreduce", 300) for _ in range(5)]
        requests = [call.make(ours, "persistent") for call in held]
        for last in (largest_tag() // 2, largest_tag()):  # the next but one has the first tag
            first._tags[0] = last - 1
            start_beside_new_ones(ours, held, requests)
            assert duplicate.made is first
        assert first.next_tag == largest_tag() + 1  # the library serves further ones
        ours.Bcast(x)
        second = duplicate.make()
        assert first is not second
        assert first.comm != MPI.COMM_NULL
        start_beside_new_ones(ours, held, requests)
        new = ours.Bcast_init(x)
        assert (second.transport is None) == (first.transport is None)
        second._tags[0] = largest_tag() // 2 + 1
        for request in requests:
            request.Free()
        ours.Ibcast(x).Wait()
        ours.Ibcast(x).Wait()  # of a kind that C may know
        again = ours.Bcast_init(x)  # a call at which ranks may wait, too
        third = duplicate.make()
        assert second is not third
        assert first.comm == MPI.COMM_NULL != second.comm
        for one in (new, again):
            one.Start()
            one.Wait()
        ours.Free()
        assert second.comm == third.comm == MPI.COMM_NULL


def start_beside_new_ones(ours: cw.Comm, held: list[Call], requests: list[Any]) -> None:
    """Start each of these requests beside a new one, on every other rank after it."""
    for call, request in zip(held, requests, strict=True):
        other = Call(ours, "Allreduce", 300)
        for number, one in enumerate((call, other)):
            one.fill(number)
        if ours.rank % 2:
            request.Start()
        started = other.make(ours, "nonblocking")
        if ours.rank % 2 == 0:
            request.Start()
        request.Wait()
        started.Wait()
        call.check()
        other.check()


@check
def a_forked_child_has_no_part_in_messages(comm: MPI.Intracomm) -> None:
    if comm.size == 1 or COMPILED is None:
        return
    ours, data = cw.Comm(comm.Dup(), **PLANNED), np.full(50_000, comm.rank + 1.0)
    ours.Bcast(data)
    data[:] = comm.rank + 1.0
    request = ours.Bcast_init(data)
    if comm.rank:
        request.Start()
    if (child := os.fork()) == 0:
        refused = 0
        for act in (request.Wait if comm.rank else request.Start, partial(ours.Bcast, data)):
            try:
                act()
            except RuntimeError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    if comm.rank == 0:
        request.Start()
    request.Wait()
    assert (data == 1).all()
    ours.Free()


@check
def what_is_repeated_allocates_nothing(comm: MPI.Intracomm) -> None:
    for number, ours in enumerate(planned(comm), comm.size):
        for method in METHODS[number % 2 :: 2]:  # by other algorithms on other numbers of ranks
            call = Call(ours, method, 10)
            request = call.make(ours, "persistent")
            allocates_nothing(request.Start, request.Wait)
            if COMPILED is not None:  # Python's own lists of free memory grow
                allocates_nothing(partial(call.make, ours))
            request.Free()


@check
def requests_give_back_the_types_that_they_looked_into(comm: MPI.Intracomm) -> None:
    """MPICH gives handles of freed types to new ones; those of types still in use are others."""

    def handles_used(ours: cw.Comm) -> tuple[int, int]:
        pairs = MPI.INT.Create_contiguous(2)
        triples = pairs.Create_contiguous(3).Commit()
        handles = pairs.handle, triples.handle
        ours.Bcast_init([np.zeros(6, "i4"), 1, triples]).Free()
        for datatype in (pairs, triples):
            datatype.Free()
        return handles

    for ours in planned(comm):
        assert len({handles_used(ours) for _ in range(50)}) < 25


@check
def types_can_be_freed_before_the_request(comm: MPI.Intracomm) -> None:
    """Every second of four numbers, and pairs that a user's operator adds."""
    size = comm.size
    for ours in planned(comm):
        gaps = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
        pairs = MPI.INT.Create_contiguous(2).Commit()
        data, every = np.full(4 * size, comm.rank, "i4"), np.full((size, 4), -1, "i4")
        mine, total = np.arange(20, dtype="i4"), np.zeros(20, "i4")
        with adding() as op:
            requests = [
                ours.Bcast_init([data, size, gaps]),
                ours.Allgatherv_init([mine, 1, pairs], [every, [1] * size, gaps]),
                ours.Allreduce_init([mine, 10, pairs], [total, 10, pairs], op),
            ]
            if all(isinstance(request, PersistentCollective) for request in requests):
                gaps.Free()
                pairs.Free()  # Open MPI's own requests read types that were freed, and die
            others = [MPI.DOUBLE.Create_vector(2, 1, 2).Commit() for _ in range(2)]  # same handles
            gc.collect()
            for _ in range(2):
                data[::2] = comm.rank
                cw.startall(requests)
                cw.waitall(requests)
                assert not data[::2].any()
                assert (data[1::2] == comm.rank).all()
                assert (every[:, ::2] == [0, 1]).all()
                assert (every[:, 1::2] == -1).all()
                assert np.array_equal(total, mine * size)
            for request in requests:
                request.Free()
        for datatype in (gaps, pairs, *others):
            if datatype != MPI.DATATYPE_NULL:
                datatype.Free()


@check
def a_request_runs_once_at_a_time(comm: MPI.Intracomm) -> None:
    for ours in planned(comm):
        for method in METHODS:
            call = Call(ours, method, 10)
            request = call.make(ours, "persistent")
            if not isinstance(request, PersistentCollective):  # the library's own serves
                request.Free()
                continue
            for again in range(2):
                request.Wait()  # it is not started: nothing happens, as in MPI
                assert request.Test()
                call.fill(again)
                request.Start()
                with raises(RuntimeError, match="running"):
                    request.Start()
                request.Wait()
                call.check()
            call.fill(2)
            request.Start()
            request.Free()  # completes it first
            call.check()


def complete_all(requests: list[Any], turn: int) -> None:
    """By one call for all, or one by one, the last one first."""
    if turn % 3 == 0:
        cw.waitall(requests)
    elif turn % 3 == 1 and all(isinstance(request, MPI.Request) for request in requests):
        MPI.Request.Waitall(requests)
    else:
        for request in reversed(requests):
            complete(request, testing=True)


@check
def each_form_is_served_as_its_own_race_says(comm: MPI.Intracomm) -> None:
    """Where nonblocking calls were not raced, as blocking ones are."""
    if comm.size == 1:
        return
    names = dict(zip(FORMS, ("chain", "flat", "binomial"), strict=True))
    times = {"ours_s": 1e-3, "library_s": 2e-3}
    won = [
        won_race(form=form, ranks=comm.size, nbytes=80, algorithm=f"broadcast/{name}", **times)
        for form, name in names.items()
    ]
    for races, serves in ((won, names), (won[::2], names | {"nonblocking": "chain"})):
        ours = cw.Comm(comm, profile=assumed(describe(comm), *races), record=True)
        data = np.full(10, comm.rank + 0.5)
        for form in FORMS:
            perform(form, ours, "Bcast", data)
        assert (data == 0.5).all()
        told = {call.way: call for call in ours.calls()}
        for form, name in serves.items():
            assert told[form].algorithm == f"broadcast/{name}"
            assert ours.explain("broadcast", 80, form=form) == told[form].why
            plan = ours.plan("broadcast", 80, form=form)
            assert plan is not None
            assert plan.algorithm == told[form].algorithm


@check
def many_run_at_once_and_are_completed_in_any_way(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, **PLANNED)
    size, rank = comm.size, comm.rank
    column = MPI.DOUBLE.Create_vector(5, 1, 2).Commit()
    minus = MPI.Op.Create(lambda left, right, _: None, commute=True)  # the right one stays
    for turn in range(6):  # all ways to complete short and long ones, each from one root
        length, root = ((5, 0), (20000, size - 1))[turn % 2]
        calls = [Call(ours, method, length, root) for method in METHODS]
        for call in calls:
            call.fill(turn)
        apart, least, one = np.full(10, float(rank)), np.zeros(length, "i4"), np.zeros(3)
        requests = [
            *(call.make(ours, "nonblocking") for call in calls),
            ours.Ibcast([apart, 1, column], 0),
            ours.Iallreduce(np.full(length, rank - 7, "i4"), least, MPI.MIN),
            ours.Iallreduce(np.full(3, 4.0), one, minus),
        ]
        gc.collect()  # what was sent has no other owner
        if size > 1:
            kinds = [isinstance(request, MPI.Request) for request in requests]
            assert kinds == [HOOKS] * (len(requests) - 1) + [False], kinds
        complete_all(requests, turn)
        for call in calls:
            call.check()
        assert (apart[::2] == 0).all()
        assert (apart[1:9:2] == rank).all()
        assert (least == -7).all()
        assert (one == 4).all()
    column.Free()
    minus.Free()


@check
def lists_of_both_kinds_of_requests(comm: MPI.Intracomm) -> None:
    """collwise completes them; where there is one of ours, mpi4py says so."""
    ours = cw.Comm(comm, **PLANNED)
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    data, mine, theirs = np.zeros(4), np.zeros(1), np.full(1, comm.rank + 0.5)
    requests: list[Any] = [
        ours.Bcast_init(data, 0), comm.Send_init(theirs, right), comm.Recv_init(mine, left),
    ]  # fmt: skip
    for again in range(3):
        data[:] = comm.rank + again
        if comm.size > 1:
            for act in (MPI.Request.Waitall, MPI.Prequest.Startall):
                with raises(TypeError, match="collwise.startall and collwise.waitall"):
                    act(requests[:1])
        cw.startall(requests)
        cw.waitall(requests)
        assert mine[0] == left + 0.5
        assert (data == again).all()
    for request in requests:
        request.Free()


@check
def requests_give_back_what_they_hold(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm, **PLANNED)
    data, result = np.zeros(4), np.zeros(4)
    kept = []
    for turn in range(60):
        request = ours.Iallreduce(data, result)
        request.Wait()
        if comm.size > 1 and isinstance(request, PersistentCollective):
            assert not request
        if turn in (20, 59):
            gc.collect()
            kept.append(sum(isinstance(o, np.ndarray) or callable(o) for o in gc.get_objects()))
    assert kept[1] - kept[0] < 20, kept


@check
def c_starts_calls_of_a_kind_that_it_knows(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), **PLANNED)
    if comm.size < 2 or not HOOKS:
        return
    data = bytearray(8)
    for _ in range(3):
        data[:] = bytes([comm.rank] * 8)
        if comm.rank == comm.size - 1:
            comm.Barrier()
        request = ours.Ibcast(data, comm.size - 1)
        if comm.rank < comm.size - 1:
            with raises(BufferError):
                data.append(0)  # the request holds it, since it cannot be over
            comm.Barrier()
        request.Wait()
        assert data == bytes([comm.size - 1] * 8)
        data.append(0)
        data.pop()
    dispatch: Any = ours._dispatch
    dispatch.call = None  # Python is not asked
    request = ours.Ibcast(data, comm.size - 1)
    del dispatch.call
    assert type(request) is MPI.Request, request
    request.Wait()
    two = [ours.Ibcast(one, comm.size - 1) for one in (data, bytearray(8))]  # one plan is idle
    MPI.Request.Waitall(two)
    dispatch.duplicate.made.mark_broken(KeyboardInterrupt())
    with raises(BrokenCommunicator):
        ours.Ibcast(data, comm.size - 1)


@check
def a_start_that_breaks_half_way_gives_its_plan_back(comm: MPI.Intracomm) -> None:
    """In C, of a plan that receives from nobody and sends to a rank that there is not."""
    if COMPILED is None or not HOOKS:
        return
    end = (0, 0), 0, MPI.BYTE.handle, 0
    messages = (False, MPI.PROC_NULL, *end), (True, comm.size, *end)
    start = ProgramInstruction(COMPILED.START, 0, 2)
    about = comm.handle, MPI.OP_NULL.handle, comm.rank, 1, 1
    program = COMPILED.Program(*about, messages, (0, 1), (start,), 0, None)
    told: list[Any] = []
    plan = SimpleNamespace(program=program, over=print, Free=lambda: told.append("freed"))

    def slow(_: str, key: bytes, *__: Any) -> None:
        calls.remember(key, program, (), None, [plan], bytearray(16))

    calls = COMPILED.Calls(1, ["Bcast"], comm, comm.rank, comm.size, MPI.SUM, slow, told.append)
    calls.bcast(bytearray(1))
    with raises(MPI.Exception) as broken:
        calls.bcast(bytearray(1))
    assert told == ["freed", broken.value]


@check
def an_idle_plan_that_cannot_be_started_is_refused(comm: MPI.Intracomm) -> None:
    """In C, of a list that Python has, too."""
    if COMPILED is None:
        return
    about = comm.handle, MPI.OP_NULL.handle, comm.rank, 1
    two_slots, one_slot = (COMPILED.Program(*about, n, (), (), (), 0, None) for n in (2, 1))
    idle: list[Any] = []

    def slow(_: str, key: bytes, *__: Any) -> None:
        calls.remember(key, two_slots, ((1, False, 0),), None, idle, bytearray(16))

    calls = COMPILED.Calls(1, ["Bcast"], comm, comm.rank, comm.size, MPI.SUM, slow, print)
    calls.bcast(bytearray(1))
    plans = SimpleNamespace(program=7, over=print), SimpleNamespace(program=one_slot, over=print)
    for plan in plans:
        idle[:] = [plan]
        with raises(TypeError, match="without a program that can be started"):
            calls.bcast(bytearray(1))
        assert not idle  # so the next call is Python's


@check
def elements_with_gaps_are_copied_while_others_make_progress(comm: MPI.Intracomm) -> None:
    """The library calls us in the midst of its own progress, in which nothing may make progress."""
    size, rank = comm.size, comm.rank
    gaps = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
    for algorithm in ("bruck", "ring", "br_lin"):
        ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"allgatherv": algorithm})
        for again in range(20):
            memory = np.full((size, 4), -1, np.int32)
            mine = np.array([rank, again], np.int32)
            requests = [
                ours.Iallgather([mine, 2, MPI.INT], [memory, 1, gaps]),
                ours.Iallgatherv([mine, 2, MPI.INT], [other := memory.copy(), [1] * size, gaps]),
            ]
            MPI.Request.Waitall(requests) if HOOKS and size > 1 else cw.waitall(requests)
            for result in (memory, other):
                assert np.array_equal(result[:, 0], np.arange(size))
                assert (result[:, 2] == again).all()
                assert (result[:, 1::2] == -1).all()
        ours.Free()
    gaps.Free()


@check
def freed_requests_equal_the_null_request(comm: MPI.Intracomm) -> None:
    for ours in planned(comm):
        first, second = (ours.Bcast_init(np.zeros(3)) for _ in range(2))
        assert first != MPI.REQUEST_NULL
        assert first != second
        first.Free()
        assert first == MPI.REQUEST_NULL
        assert MPI.REQUEST_NULL == first  # noqa: SIM300
        assert MPI.REQUEST_NULL in [second, first]
        assert first != second
        second.Free()
        assert first == second
        started = ours.Ibcast(np.zeros(3))
        started.Wait()
        assert started == MPI.REQUEST_NULL


@check
def uncommitted_types_reach_the_users_error_handler(comm: MPI.Intracomm) -> None:
    told: list[int] = []

    def handler(of: MPI.Comm, code: int) -> None:
        told.append(MPI.Get_error_class(code))

    handling, pairs = MPI.Comm.Create_errhandler(handler), MPI.DOUBLE.Create_contiguous(2)
    data, every = np.zeros(2), np.zeros(2 * comm.size)
    for ours in planned(comm):
        ours.Set_errhandler(handling)
        for method in ("Bcast", "Ibcast", "Bcast_init", "Allgather", "Allgatherv"):
            told.clear()
            with suppress(MPI.Exception):  # MPICH's call returns after the handler
                getattr(ours, method)([data, 1, pairs], *[every] * ("Allgather" in method))
            assert told == [MPI.ERR_TYPE], method
    pairs.Free()
    handling.Free()
