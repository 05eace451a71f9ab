"""Checks of caches that are full: what goes is the oldest, and what C keeps stays as it was."""

import gc
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.comm import dispatch
from collwise.comm.recording import FOREVER, NUMBERS, TIMES, UNTIL
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution import executor
from collwise.mpi.execution.executor import BoundedCache
from collwise.profiles.records import FORMS
from tests.mpi.programs.alike import perform
from tests.mpi.programs.checks import check, replaced

MOST = 4096
"""The most keys of C's table (`calls.h`)."""
ALGORITHMS = {
    "broadcast": "scatter_ring",
    "allreduce": "recursive_doubling",
    "allgatherv": "ring",
    "reduce": "binomial",
    "reduce_scatter_block": "pairwise",
}


def many_calls(
    comm: MPI.Intracomm, sizes: list[int], settings: dict[str, Any]
) -> Iterator[cw.Comm]:
    """Calls of all sizes, round and round, in all forms, whose bytes are NumPy's."""
    ours = cw.Comm(comm.Dup(), profile=False, algorithms=ALGORITHMS, **settings)
    ranks, total = comm.size, comm.size * (comm.size + 1) // 2
    for turn, size in product(range(3), sizes):
        mine, result = np.full(size, comm.rank + 1.0), np.zeros(size)
        parts, gaps = np.zeros(size * ranks), np.zeros((ranks, size + 3))
        apart = [size] * ranks, [(size + 3) * rank for rank in range(ranks)]
        for form in FORMS if size == max(sizes) else FORMS[:1]:
            result[:] = 0
            perform(form, ours, "Allreduce", mine, result)
            assert (result == total).all(), (turn, size, form)
            perform(form, ours, "Reduce_scatter_block", np.tile(mine, ranks), result)
            assert (result == total).all(), (turn, size, form)
            perform(form, ours, "Allgatherv", mine, [gaps, apart, MPI.DOUBLE])
            perform(form, ours, "Allgather", mine, parts)
            every = np.repeat(np.arange(1.0, ranks + 1), size)
            assert (parts == every).all(), (turn, size, form)
            assert (gaps[:, :size].ravel() == every).all(), (turn, size, form)
            assert not gaps[:, size:].any(), (turn, size, form)
            result[:] = size if comm.rank == 0 else 0
            perform(form, ours, "Bcast", result)
            assert (result == size).all(), (turn, size, form)
        yield ours
    ours.Free()


@check
def full_caches_let_the_oldest_go_and_nothing_is_used_afterwards(comm: MPI.Intracomm) -> None:
    """Each size needs more scratch than the one before, whose memory is given up."""
    for transport, most in (("memory", 7), ("messages", 8)):
        settings = {"transport": transport if COMPILED is not None else None}
        with replaced(dispatch, MAX_ENTRIES=most), replaced(executor, LAYOUTS=2):
            for ours in many_calls(comm, [50 << n for n in range(11)], settings):
                assert len(ours._dispatch.calls) <= most
                # An executor goes with what it served.
                assert len(ours._dispatch._executors) <= most


@check
def an_executor_that_nobody_holds_frees_its_plans(comm: MPI.Intracomm) -> None:
    ours = cw.Comm(comm.Dup(), profile=False, algorithms=ALGORITHMS)
    mine, result = np.full(5, 1.0), np.zeros(5)
    for form in FORMS[:2]:
        perform(form, ours, "Allreduce", mine, result)
    served = list(ours._dispatch._executors.values())
    plans = [plan for one in served for plan in one._bound.values()]
    idle = [plans for one in served for plans in one._idle.values()]
    freed: list[int] = []
    with_hooks = COMPILED is not None and COMPILED.hooks()
    assert comm.size == 1 or (plans and (not with_hooks or any(idle)))
    for plan in (*plans, *(plan for kept in idle for plan in kept)):
        plan.types.append(_Freed(freed, plan))  # type: ignore[arg-type]
    expected = len(plans) + sum(map(len, idle))
    gc.disable()
    del served
    ours._dispatch.forget()
    gc.enable()
    assert len(freed) == expected
    ours.Free()


class _Freed:
    """In the place of a type that a plan frees."""

    def __init__(self, freed: list[int], plan: Any) -> None:
        self._freed, self._plan = freed, id(plan)

    def Free(self) -> None:
        self._freed.append(self._plan)


@check
def a_bounded_cache_frees_the_oldest_first(comm: MPI.Intracomm) -> None:
    del comm
    freed: list[int] = []

    class Freed:
        def __init__(self, number: int) -> None:
            self.number = number

        def Free(self) -> None:
            freed.append(self.number)

    cache: BoundedCache[int, Freed] = BoundedCache(3)
    for number in range(5):
        cache.remember(number, Freed(number))
    assert (freed, list(cache)) == ([0, 1], [2, 3, 4])
    cache.forget()
    assert (freed, list(cache)) == ([0, 1, 2, 3, 4], [])


@check
def the_table_in_c_forgets_its_oldest_keys(comm: MPI.Intracomm) -> None:
    """What it serves is counted by key, so an entry that served another's call would show."""
    if COMPILED is None or comm.rank:
        return
    asked: list[bytes] = []
    alone, data = MPI.COMM_SELF, np.zeros(3 * MOST, np.uint8)

    def slow(_: str, key: bytes, *__: Any) -> None:
        asked.append(key)

    calls = COMPILED.Calls(0, ("Bcast",), alone, 0, 1, MPI.SUM, slow, print)
    tallies = [bytearray(8 * NUMBERS) for _ in range(3 * MOST)]
    for count, tally in enumerate(tallies):
        memoryview(tally).cast("q")[UNTIL] = FOREVER
        calls.bcast([data, count, MPI.BYTE])
        calls.remember(asked[-1], None, (), tally)
        if count % 1000 == 0:
            calls.remember(asked[-1], None, (), tally)  # once more, which makes it no younger
    assert len({*asked}) == 3 * MOST

    def served(count: int) -> bool:
        numbers, before = memoryview(tallies[count]).cast("q"), len(asked)
        times = numbers[TIMES]
        calls.bcast([data, count, MPI.BYTE])
        assert numbers[TIMES] - times == (len(asked) == before)
        return len(asked) == before

    assert [served(count) for count in range(3 * MOST)] == [False] * 2 * MOST + [True] * MOST
    calls.remember(asked[0], None, (), tallies[0])
    assert [served(count) for count in (0, 2 * MOST, 2 * MOST + 1)] == [True, False, True]
    calls.forget()
    assert not any(served(count) for count in (0, 3 * MOST - 1))
    calls.remember(asked[0], None, (), tallies[0])
    assert served(0)
