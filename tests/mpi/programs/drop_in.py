"""Checks of what mpi4py's communicator does and ours must do alike, on real MPI.

Legal buffers, whatever they are like and on whichever rank; errors of mpi4py's types, after which
the communicator works; the end of communicators and requests.
"""

import gc
import threading
import weakref
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm.recording import Way
from collwise.comm.served import NAMES
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.persistent import PersistentCollective
from collwise.profiles.records import FORMS
from collwise.system.host import TRANSPORTS
from tests.mpi.programs.alike import MACHINE, Call, complete, end, perform, run, works
from tests.mpi.programs.checks import check, raises

MPICH = MPI.get_vendor()[0] == "MPICH"
"""Open MPI reads from address 0 and dies."""
WHOLE = {"broadcast": "chain", "reduce": "binomial", "allreduce": "recursive_doubling"}
CUT = {"broadcast": "scatter_ring", "allreduce": "ring", "reduce": "binomial"}
GATHER = {"allgatherv": "br_lin", "reduce_scatter_block": "pairwise"}


def served(comm: MPI.Intracomm, algorithms: Mapping[str, str] = WHOLE, **settings: Any) -> cw.Comm:
    """A communicator of its own on which everything is ours, as long as there are ranks."""
    return cw.Comm(comm.Dup(), machine=MACHINE, algorithms={**algorithms, **GATHER}, **settings)


class Device:
    """Memory behind CUDA's array interface only, which the host must not touch on its own."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.__cuda_array_interface__ = array.__array_interface__
        self.array, self.nbytes = array, array.nbytes


class Exported:
    """Memory behind DLPack only; it can be read so often."""

    def __init__(self, array: np.ndarray[Any, Any], reads: int = 1000) -> None:
        self.array, self.nbytes, self.reads = array, array.nbytes, reads

    def __dlpack__(self, **options: Any) -> Any:
        self.reads -= 1
        if self.reads < 0:
            raise BufferError("it is gone")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


WAYS: tuple[Way, ...] = "blocking", "persistent"
KINDS = (
    ("g", "fortran"), ("G", "fortran"), ("d", "device"), ("d", "exported"), ("i", "device"),
    ("i", "exported"), ("D", "exported"),
)  # fmt: skip
"""Elements, and the memory that one rank has them in.  DLPack and CUDA know no long doubles."""


def array_of(numbers: np.ndarray[Any, Any], dtype: str, kind: str) -> tuple[Any, Any]:
    """Numbers in memory of some kind, as they are passed, and as an array to look at."""
    array = np.zeros((4, len(numbers) // 4), dtype, order="F" if kind == "fortran" else "C")
    flat = array.ravel("K")
    flat[:] = numbers
    return {"device": Device, "exported": Exported}.get(kind, np.asarray)(array), flat


@check
def one_rank_has_another_kind_of_memory(comm: MPI.Intracomm) -> None:
    count, size, rank = 8 * comm.size, comm.size, comm.rank
    every, total = np.arange(count), np.arange(count) * size + sum(range(size))
    right = np.concatenate([every + other for other in range(size)])
    for algorithms in (WHOLE, CUT):
        ours = served(comm, algorithms)
        for (number, (dtype, kind)), way in product(enumerate(KINDS), WAYS):
            who, called = number % size, partial(perform, way, ours)
            mine = partial(array_of, dtype=dtype, kind=kind if rank == who else "plain")
            for root in {who, size - 1 - who}:
                data, flat = mine(every + rank)
                called("Bcast", data, root)
                assert np.array_equal(flat, every + root), (dtype, kind)
            (data, flat), (result, into) = mine(every + rank), mine(every)
            called("Allreduce", data, result)
            assert np.array_equal(into, total), (dtype, kind)
            for method, counts in (("Allgatherv", [count] * size), ("Allgather", count)):
                everything, place = mine(0 * right)
                called(method, data, [everything, counts])
                assert np.array_equal(place, right), (dtype, kind)
            block = np.zeros(count // size, dtype)
            called("Reduce_scatter_block", data, block)
            assert np.array_equal(block, total.reshape(size, -1)[rank]), (dtype, kind)
            called("Reduce", data, result if rank == who else None, MPI.SUM, who)
            assert np.array_equal(into, total), (dtype, kind)
            called("Allreduce", MPI.IN_PLACE, data)
            assert np.array_equal(flat, total), (dtype, kind)
        ours.Free()


@check
def nothing_can_be_said_in_many_ways(comm: MPI.Intracomm) -> None:
    """Only the last rank has something."""
    count, size, rank = 4, comm.size, comm.rank
    counts, result = [0] * (size - 1) + [count], np.full(count, -1, "i")
    for algorithms in (WHOLE, CUT):
        ours = served(comm, algorithms)
        every: list[Any] = [[None, MPI.INT], [MPI.BOTTOM, MPI.INT], [None, 0, MPI.INT], np.zeros(0)]
        for nothing, way in product(every, WAYS):
            perform(way, ours, "Bcast", nothing)
            send = np.arange(count, dtype="i") if rank == size - 1 else nothing
            result[:] = -1
            perform(way, ours, "Allgatherv", send, [result, counts])
            assert np.array_equal(result, np.arange(count))
        ours.Free()


@check
def an_operator_that_does_not_fit_is_refused_again_and_again(comm: MPI.Intracomm) -> None:
    ours = served(comm)
    for op in (MPI.BAND, MPI.OP_NULL) * 2:
        with raises(MPI.Exception):
            ours.Allreduce(np.zeros(1), np.zeros(1), op)
    ours.Free()


@check
def elements_without_an_extent_of_their_own(comm: MPI.Intracomm) -> None:
    for extent in (0, -4):
        again = MPI.INT.Create_resized(0, extent).Commit()
        for algorithms in (WHOLE, CUT):
            ours = served(comm, algorithms)
            memory = np.arange(5, dtype="i") + 1
            spec = [memory[4 if extent else 0 :], 5, again] if comm.rank == 0 else memory
            if comm.rank:
                memory[:] = 0
            ours.Bcast(spec)
            right = memory[::-1] if extent else np.ones(5)
            assert comm.rank == 0 or np.array_equal(memory, [5, 4, 3, 2, 1] if extent else right)
            ours.Free()
        again.Free()


@check
def elements_from_the_last_to_the_first(comm: MPI.Intracomm) -> None:
    """MPICH refuses a message of packed long complex numbers from a rank to itself into these."""
    count, size, rank = 8192, comm.size, comm.rank
    ours = served(comm, {**WHOLE, "broadcast": "chain_segmented(segment=4096)"})
    down = MPI.C_LONG_DOUBLE_COMPLEX.Create_vector(count, 1, -1).Commit()
    for who in range(size):
        data = np.arange(count).astype("G") * (rank == 0)
        turned = data[::-1].copy()
        ours.Bcast([turned[count - 1 :], 1, down] if rank == who else data)
        assert np.array_equal(turned[::-1] if rank == who else data, np.arange(count))
    down.Free()
    ours.Free()


class Index:
    """No root: mpi4py asks for `__int__`."""

    def __index__(self) -> int:
        return 0


@check
def arguments_as_mpi4py_takes_them(comm: MPI.Intracomm) -> None:
    plain: Any = MPI.Intracomm(comm.Dup())
    ours: Any = served(comm)
    root: Any
    for root in (False, 0.0, np.float64(0.5), np.int8(0), np.False_):
        for _ in range(2):
            data, result = np.full(3, comm.rank), np.zeros(3, int)
            ours.Bcast(data, root=root)
            assert not data.any()
            run(ours.Bcast_init(np.full(3, comm.rank), root))
            ours.Reduce(data + 1, result, root=root)
            assert (result == (comm.size if comm.rank == 0 else 0)).all()
            assert ours.bcast(comm.rank, root if comm.rank else 0) == 0
            total = ours.reduce(1, root=root if comm.rank else 0)
            assert total == (None if comm.rank else comm.size)
    for root in (-1, comm.size, True if comm.size == 1 else "0", None, [], 2**40):
        for which in (ours, plain):
            with raises((MPI.Exception, TypeError, OverflowError)):
                which.Bcast(np.zeros(3), root=root)
            with raises((MPI.Exception, TypeError, OverflowError)):
                which.Reduce(np.zeros(3), np.zeros(3), root=root)
    for which in (ours, plain):
        for act in (which.bcast, which.Bcast):
            with raises(TypeError):
                act(np.zeros(3), root=Index())
        for info in (None, 0):
            with raises(TypeError):
                which.Bcast_init(np.zeros(3), 0, info)
    works(ours)
    for which in (plain, ours):
        which.Free()


@check
def a_message_too_long_breaks_nothing(comm: MPI.Intracomm) -> None:
    if comm.size == 1:
        return
    for last in {1, comm.size - 1}:  # one that passes it on, one that does not
        ours = served(comm)
        short = comm.rank == last
        for way in FORMS:
            data = np.full(2 if short else 100, float(comm.rank))
            if short or comm.rank == last + 1:  # the next one gets too little
                with raises(MPI.Exception) as refused:
                    perform(way, ours, "Bcast", data)
                told = refused.value.Get_error_class()
                expected = MPI.ERR_TRUNCATE if short else MPI.ERR_OTHER
                assert told in (expected, MPI.ERR_IN_STATUS)
            else:
                perform(way, ours, "Bcast", data)
            assert short or comm.rank > last or not data.any()
            works(ours)
        ours.Free()


@check
def a_message_too_short_breaks_nothing(comm: MPI.Intracomm) -> None:
    """It raises where it comes, by memory and by messages; what others wait for is sent on."""
    if comm.size == 1:
        return
    for transport in TRANSPORTS if COMPILED is not None else (None,):
        ours = served(comm, transport=transport)
        for way, few in product(FORMS, (2, 20_000)):
            data = np.full(few if comm.rank == 0 else 2 * few, float(comm.rank))
            if comm.rank == 1:  # the next one in the chain
                with raises(MPI.Exception) as refused:
                    perform(way, ours, "Bcast", data)
                told = refused.value.Get_error_class()
                assert told in (MPI.ERR_OTHER, MPI.ERR_IN_STATUS)
            else:
                perform(way, ours, "Bcast", data)
            assert comm.rank == 1 or not data[:few].any()
            works(ours)
        ours.Free()


@check
def types_that_ranks_name_differently_are_served(comm: MPI.Intracomm) -> None:
    """A rank's own handle decides nothing: one has a duplicate, which it frees at once."""
    named = MPI.DOUBLE

    def add(left: Any, right: Any, datatype: MPI.Datatype) -> None:
        assert datatype in (named, MPI.DOUBLE) or named == MPI.DATATYPE_NULL
        np.frombuffer(right, "f8")[:] += np.frombuffer(left, "f8")

    op, both = MPI.Op.Create(add, commute=True), (WHOLE, CUT)
    for transport in TRANSPORTS if COMPILED is not None else (None,):
        for algorithms, way in product(both, WAYS):
            ours = served(comm, algorithms, transport=transport)
            named = MPI.DOUBLE if comm.rank else MPI.DOUBLE.Dup()
            mine, result = np.full(5000, comm.rank + 1.0), np.zeros(5000)
            call = getattr(ours, NAMES[way, "Allreduce"])
            made = call([mine, named], [result, named], op)
            if comm.rank == 0 and way != "blocking":
                named.Free()
            end(way, made, starts=2)
            assert (result == comm.size * (comm.size + 1) / 2).all(), (transport, way)
            ours.Bcast([result, named if named else MPI.DOUBLE])
            works(ours)
            if comm.rank == 0 and named != MPI.DATATYPE_NULL:
                named.Free()
            ours.Free()
    op.Free()


@check
def memory_is_read_once_for_a_call(comm: MPI.Intracomm) -> None:
    """What a rank received for a call that then fails would be missing farther down."""
    for algorithms in (WHOLE, CUT):
        ours = served(comm, algorithms)
        for who in {0, comm.size // 2}:
            for reads in range(8):
                data = np.full(4 * comm.size, float(comm.rank))
                result, ones = np.zeros(len(data)), np.ones(len(data))
                calls = (ours.Bcast, [data]), (ours.Allreduce, [ones, result])
                call: Any
                for call, arrays in calls:
                    try:
                        call(*[Exported(a, reads) if comm.rank == who else a for a in arrays])
                    except BufferError:
                        assert comm.rank == who
                        call(*arrays)  # the others are still in the call
                assert not data.any()
                assert (result == comm.size).all()
        works(ours)
        ours.Free()


@check
def a_users_operator_gets_the_users_type(comm: MPI.Intracomm) -> None:
    seen = []
    pairs = MPI.INT.Create_contiguous(2).Commit()

    def add(left: Any, right: Any, datatype: MPI.Datatype) -> None:
        seen.append(datatype == pairs)
        np.frombuffer(right, "i")[:] += np.frombuffer(left, "i")

    op, count = MPI.Op.Create(add, commute=True), 4 * comm.size
    mine, result = np.arange(2 * count, dtype="i"), np.zeros(2 * count, "i")
    for algorithms, way in product((WHOLE, CUT), WAYS):
        ours = served(comm, algorithms)
        perform(way, ours, "Allreduce", [mine, pairs], [result, pairs], op, starts=2)
        assert np.array_equal(result, mine * comm.size)
        ours.Free()
    assert seen or comm.size == 1
    assert all(seen)
    op.Free()
    pairs.Free()


@check
def what_does_not_suit_an_operator_is_replaced(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), machine=MACHINE, algorithms={"allreduce": "census_delay_send"})
    values, result = np.full(3, comm.rank / 3), np.zeros(3)
    for _ in range(2):
        ours.Allreduce(values, result)  # the census gives ranks different bits
        assert len({r.tobytes() for r in comm.allgather(result)}) == 1
        assert np.allclose(result, sum(range(comm.size)) / 3)
    ours.Allreduce(values.astype(int), result.astype(int), MPI.MAX)
    run(ours.Allreduce_init(values, result))
    if comm.size > 1:
        sum_of_floats = ours.plan("allreduce", 24)
        largest = ours.plan("allreduce", 24, op="max", dtype="int64")
        assert sum_of_floats is not None
        assert largest is not None
        assert "census_delay" not in sum_of_floats.algorithm
        assert largest.algorithm == "allreduce/census_delay_send"
    ours.Free()


@check
def requests_have_the_methods_of_mpi4pys(comm: MPI.Intracomm) -> None:
    ours, plain = served(comm), MPI.Intracomm(comm.Dup())
    data, status = np.full(3, comm.rank), MPI.Status()
    request = ours.Bcast_init(data)
    other = plain.Bcast_init(np.zeros(3))
    if comm.size > 1:
        assert isinstance(request, PersistentCollective)
    acts: list[tuple[str, *tuple[MPI.Status, ...]]] = [
        ("Wait",), ("Wait", status), ("Test", status), ("wait",), ("wait", status), ("test",),
        ("test", status), ("Get_status",), ("Get_status", status), ("__bool__",),
    ]  # fmt: skip

    def same() -> None:
        for act, *given in acts:
            assert getattr(request, act)(*given) == getattr(other, act)(*given), act

    same()
    for again in range(3):
        for which in (request, other):
            which.Start()
            if again == 0:
                assert which.wait() is None
            elif again == 1:
                while which.test() != (True, None):
                    pass
            else:
                while not which.Get_status():
                    pass
                assert which.Wait() is True
        same()
    for which in (request, other):
        which.free()
        which.free()
    same()
    assert not data.any()
    ours.Free()
    plain.Free()


def holds(bound: Any) -> bool:
    """Whether a plan, on whichever engine, has requests of MPI's."""
    return bool(getattr(bound, "_messages", None) or getattr(bound, "_requests", None))


@check
def requests_nobody_freed_leave_nothing(comm: MPI.Intracomm) -> None:
    ours = served(comm)
    data = np.zeros(100)
    left = []
    for active in (False, True):
        request: Any = ours.Bcast_init(data)
        if active:
            request.Start()
        if comm.size > 1:
            left.append(request._bound)
        del request
    works(ours)  # the running one goes on, as MPI's do
    gc.collect()
    ours.Bcast(data)
    comm.Barrier()
    assert not any(holds(bound) for bound in left[:1])
    ours.Free()
    assert not any(holds(bound) for bound in left)


@check
def lowercase_free_and_disconnect(comm: MPI.Intracomm) -> None:
    permanent = comm if comm == MPI.COMM_WORLD else MPI.COMM_SELF
    world = cw.Comm(permanent, machine=MACHINE, algorithms=WHOLE)
    works(world)
    world.free()
    assert world == MPI.COMM_NULL
    works(permanent)
    for how in ("free", "Disconnect"):
        ours = served(comm)
        works(ours)
        private = weakref.ref(ours._dispatch.duplicate.made) if comm.size > 1 else None
        kept = None if private is None else private()
        getattr(ours, how)()
        assert ours == MPI.COMM_NULL
        assert kept is None or kept.comm == MPI.COMM_NULL
    ours.free()  # again: mpi4py's does nothing
    cw.Comm(MPI.Intracomm()).free()


@check
def threads_with_a_communicator_each(comm: MPI.Intracomm) -> None:
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    problems: list[BaseException] = []

    def work(ours: cw.Comm, seed: int) -> None:
        try:
            calls = [Call(comm, method, 20, seed % comm.size) for method in ("Bcast", "Allreduce")]
            requests = [call.make(ours, "persistent") for call in calls]
            for again in range(25 if comm.size <= 3 else 8):  # what hung did so on few ranks, too
                for call, request in zip(calls, requests, strict=True):
                    call.fill(again)
                    request.Start()
                    complete(request, testing=call.method == "Allreduce")
                    call.check()
                if again % 3 == 0:
                    calls[0].run(ours)
        except BaseException as problem:
            problems.append(problem)

    every = [served(comm, algorithms) for algorithms in (WHOLE, CUT, WHOLE)]
    threads = [threading.Thread(target=work, args=(ours, n)) for n, ours in enumerate(every)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ours in every:
        ours.Free()
    assert not problems, problems


@check
def what_is_remembered_is_bounded(comm: MPI.Intracomm) -> None:
    if comm.size > 3:
        return
    ours = served(comm)
    most = ours._dispatch.calls._most
    ours._dispatch.calls._most = 32
    data = np.zeros(2000, "u1")
    for nbytes in range(1, 100):
        ours.Bcast(data[:nbytes])
        assert len(ours._dispatch.calls) <= 32
    assert most < 10_000
    ours.Free()
