"""Programs that MPI allows, however odd, and wrong ones that must end on all ranks alike."""

import random
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.algorithms import registry
from collwise.errors import InvalidArgument
from collwise.mpi.runtime import private_communicator
from collwise.mpi.runtime.agreement import everywhere, on_root
from tests.mpi.programs import orders
from tests.mpi.programs.alike import PLANNED, run, works
from tests.mpi.programs.checks import check, drawn, raises, replaced


def planned(comm: MPI.Intracomm) -> cw.Comm:
    return cw.Comm(comm.Dup(), **PLANNED)


@check
def a_nonblocking_call_waits_for_no_other_rank(comm: MPI.Intracomm) -> None:
    ours = planned(comm)
    token = np.zeros(1)
    every: list[Any] = [ours, ours.Dup(), ours.Split(0, comm.rank)]
    for here in every:
        for _ in range(3):  # the first of them on a fresh communicator
            data = np.full(100, float(comm.rank))
            if comm.rank == 0:
                request = here.Ibcast(data, 0)
                for other in range(1, comm.size):
                    comm.Send(token, other)
            else:
                comm.Recv(token, 0)
                request = here.Ibcast(data, 0)
            request.Wait()
            assert not data.any()
        works(here)
        assert (here._dispatch.duplicate.made is None) == (comm.size == 1)
        total = np.zeros(4)
        here.Iallreduce(np.ones(4), total).Wait()  # ours from now on
        assert (total == comm.size).all()
    for here in every:
        here.Free()


@check
def duplicates_of_ours_leave_room_for_the_programs(comm: MPI.Intracomm) -> None:
    ours, made, usual = planned(comm), list[Any](), private_communicator.MOST
    private_communicator.MOST = comm.allreduce(len(private_communicator.held), MPI.MAX) + 10
    for number in range(30):
        made.append(ours.Dup())
        data = np.full(3, comm.rank + number)
        made[-1].Bcast(data, 0)
        assert (data == number).all()
    if comm.size > 1:
        has = [one._dispatch.duplicate.made is not None for one in made]
        assert has[0] > has[-1], has
        assert made[0].plan("broadcast", 24) is not None
        assert made[-1].plan("broadcast", 24) is None
        assert "duplicates of other" in made[-1].explain("broadcast", 24)
    run(made[-1].Bcast_init(data, 0))
    made[-1].Ibcast(data, 0).Wait()
    private_communicator.MOST = usual
    for one in (*made, ours):
        one.Free()


@check
def a_duplicate_that_nobody_made_calls_nobody(comm: MPI.Intracomm) -> None:
    calls = []
    keyval = MPI.Comm.Create_keyval(copy_fn=lambda *_: calls.append("copied"))
    ours = planned(comm)
    ours.Set_attr(keyval, 1)
    works(ours)
    assert not calls
    ours.Free()
    MPI.Comm.Free_keyval(keyval)


@check
def objects_are_combined_once_for_all_ranks(comm: MPI.Intracomm) -> None:
    ours, chance = planned(comm), random.Random(comm.rank)
    # Some say MPI.SUM, and some what means the same.
    assert ours.allreduce(1, (lambda a, b: a + b) if comm.rank else MPI.SUM) == comm.size
    for _ in range(10):
        got = ours.allreduce(comm.rank, lambda a, b: a if chance.random() < 0.5 else b)
        assert len(set(comm.allgather(got))) == 1
    ours.Free()


@check
def a_send_buffer_is_no_part_of_the_receive_buffer(comm: MPI.Intracomm) -> None:
    for transport in ("messages", "memory") if comm.size > 1 else ():  # else the library serves
        ours = cw.Comm(comm.Dup(), transport=transport, **PLANNED)
        for _ in range(3):
            buffers_overlap(ours)
        works(ours)
        ours.Free()


def buffers_overlap(ours: cw.Comm) -> None:
    """Calls with buffers that do, which raise, and with those that only lie among each other."""
    size, rank = ours.size, ours.rank
    memory = np.arange(12.0 * size) + rank
    wrong: list[tuple[Any, Any, Any]] = [
        (ours.Allreduce, memory[:6], memory[:6]),
        (ours.Allreduce, memory[:6], memory[5:11]),
        (ours.Reduce_scatter_block, memory, memory[:12]),
        (ours.Reduce_scatter_block, memory[: 6 * size], memory[6 * size - 6 :][:6]),
        (ours.Iallreduce, memory[:6], memory[:6]),
        (ours.Allreduce_init, memory[:6], memory[3:9]),
        (ours.Allgather, memory[:4], memory[2 : 2 + 4 * size]),
        (ours.Allgatherv, memory[1:5], [memory, [4] * size]),
    ]
    for call, sent, received in wrong:
        with raises(MPI.Exception) as raised:
            call(sent, received)
        assert raised.value.Get_error_class() == MPI.ERR_BUFFER, call
    assert np.array_equal(memory, np.arange(12.0 * size) + rank)  # nothing was sent
    # A row of a matrix that gets others, and what lies between the parts.
    matrix = np.arange(4.0 * size).reshape(size, 4) + 100 * rank
    ours.Allgather(matrix[rank], matrix)
    right = np.arange(4.0 * size).reshape(size, 4) + 100 * np.arange(size)[:, None]
    assert np.array_equal(matrix, right)
    mine = np.full(rank, float(rank)) if rank else matrix.ravel()[1:1]  # nothing, within
    ours.Allgatherv(mine, [matrix, [*range(size)]])
    assert matrix.ravel()[0] == 1
    gaps = np.arange(4.0 * size + 4)
    starts = [4 * other + 4 for other in range(size)]
    ours.Allgatherv(gaps[1:3], [gaps, [2] * size, starts, MPI.DOUBLE])
    assert np.array_equal(gaps[4:].reshape(size, 4)[:, :2], [[1.0, 2.0]] * size)


@check
def ranks_with_other_algorithms_are_told(comm: MPI.Intracomm) -> None:
    known = registry._ALGORITHMS
    one = known["broadcast/binomial"]
    for others in (
        {**known, one.name: known["broadcast/flat"]},
        {**known, "broadcast/mine": one},
        {name: algorithm for name, algorithm in known.items() if algorithm is not one},
    ):
        theirs = others if comm.rank == comm.size - 1 else known
        with replaced(registry, ALGORITHMS=theirs):
            if comm.size > 1:
                words = f"rank 0 and rank {comm.size - 1} differ in broadcast/"
                with raises(InvalidArgument, match=words):
                    planned(comm)
    planned(comm).Free()


@check
def decisions_and_errors_are_shared(comm: MPI.Intracomm) -> None:
    """Also errors that cannot be pickled."""
    last = comm.rank == comm.size - 1
    assert on_root(comm, lambda: comm.rank * 10) == 0
    assert everywhere(comm, lambda: comm.rank) == comm.rank

    def fail() -> None:
        raise InvalidArgument("a", "b", "c")

    def fail_last() -> None:
        if last:
            fail()

    for shared, act in ((on_root, fail), (everywhere, fail_last)):
        with raises(InvalidArgument) as problem:
            shared(comm, act)
        assert problem.value.remedy == "c"

    class Odd(Exception):
        pass

    def wrong() -> None:
        raise Odd("so it is")

    for _ in range(2):
        with raises((AttributeError, TypeError), match="pickle"):
            on_root(comm, lambda: lambda: 0)
        with raises(RuntimeError, match="Odd: so it is"):
            on_root(comm, wrong)
        with raises(RuntimeError, match="Odd: so it is"):
            everywhere(comm, wrong if last else lambda: None)
    assert everywhere(comm, lambda: Odd) is Odd  # what stays on its rank need not be


@check
def programs_in_every_legal_order_end(comm: MPI.Intracomm) -> None:
    for number in drawn(8):
        number += orders.FIRST
        program = orders.drawn(random.Random(f"{comm.size} {number}"), comm.size)
        try:
            orders.run(comm, program)
        except BaseException as problem:
            problem.add_note(f"program {number} on {comm.size} ranks")
            raise
