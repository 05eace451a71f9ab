"""The rows of a schedule, however they are made, are those of its ranks' lists."""

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.examples import MEASURED, settings_of, told
from tests.case import in_case
from tests.timing.schedules import (
    OUT,
    A,
    random_broadcast,
    random_run,
    random_schedule,
    recv,
    send,
    spelled,
    written,
)

from collwise.algorithms import ALGORITHMS
from collwise.errors import BeyondLimits
from collwise.model.machine import Machine
from collwise.schedule import dependencies
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule, tabulate
from collwise.schedule.rows import Columns, Rows, of_columns, of_lists
from collwise.timing import ideal

HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10", gamma_s="1/7")


def assert_same(rows: Rows | None, schedule: Schedule, *, combines: bool) -> None:
    assert rows is not None
    assert told(rows) == told(of_lists(schedule.lists, combines=combines))


@pytest.mark.parametrize("nbytes", [96, 100])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("allreduce/recursive_multiplying", {"radix": 5}),
        ("allreduce/halving_doubling", {}),
        ("reduce/mixed_radix", {"stages": "3d 3 3d"}),
        ("reduce/chain_segmented", {"segment": 9}),
        ("reduce/multilevel", {"reduces": "halving_gather", "algorithms": "halving_gather | flat"}),
    ],
)
def test_what_few_drawn_settings_are(name: str, settings: dict[str, Any], nbytes: int) -> None:
    algorithm = ALGORITHMS[name]
    chosen = settings_of(algorithm, 28, **settings)
    schedule = algorithm.schedule(28, nbytes, itemsize=4, **chosen)
    for combines in (False, True):
        assert_same(schedule.rows(combines=combines), schedule, combines=combines)


# --- from columns ---


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 6), st.booleans())
def test_any_broadcast(seed: int, ranks: int, cuts: int, mixed: bool) -> None:
    """Out of order too: the same rows, or refused, as some rank sends what is not there yet."""
    schedule = random_broadcast(Random(seed), ranks, cuts, mixed=mixed)
    rows = of_columns(tabulate(schedule.lists), ranks)
    if rows is None:
        assert any(map(sends_too_early, schedule.lists))
    else:
        assert_same(rows, schedule, combines=False)


def sends_too_early(operations: Any) -> bool:
    """Whether a send is listed before a receive of some of its blocks."""
    sent: set[Block] = set()
    for op in operations:
        if isinstance(op, Send):
            sent |= set(op.blocks)
        elif sent & set(op.blocks):
            return True
    return False


@pytest.mark.parametrize(
    "schedule",
    [
        spelled(">1A <1A", "<0A >0A <0A"),
        spelled(">1A >1A", "<0A <0A"),
        spelled(">1A", ">2A <0A", "<1A"),
    ],
    ids=["there and back", "twice", "too early"],
)
def test_columns_that_are_refused(schedule: Schedule) -> None:
    """In the first case a message is not answered."""
    assert of_columns(tabulate(schedule.lists), schedule.ranks) is None


def test_empty_messages_wait_for_nothing() -> None:
    """Rank 1 need not wait with the first; that it lies inside what rank 2 gets is no matter."""
    nothing, first = Block(0, 2, 0), A[0]
    early = written(
        [send(1, OUT, first)],
        [send(2, OUT, nothing), recv(0, OUT, first), send(3, OUT, first)],
        [recv(1, OUT, nothing)],
        [recv(1, OUT, first)],
    )
    inside = written(
        [send(1, OUT, first), send(2, OUT, first)],
        [recv(0, OUT, first), send(2, OUT, nothing), send(3, OUT, nothing)],
        [recv(0, OUT, first), recv(1, OUT, nothing)],
        [recv(1, OUT, nothing)],
    )
    for schedule in (early, inside):
        assert_same(of_columns(tabulate(schedule.lists), 4), schedule, combines=False)


def test_what_waits_for_what() -> None:
    """Rank 1 sends its first half when it has that, then both halves when it has the other."""
    schedule = spelled(">1A >1B", "<0A >2A <0B >3BA >2B", "<1A <1B", "<1BA")
    rows = of_columns(tabulate(schedule.lists), 4)
    assert rows is not None
    first, second = (0, 1, 0, 0, 4), (0, 1, 1, 2, 4)
    last = (1, 3, 3, 0, 8)
    passed_on = (1, 2, 1, 0, 4, first), (1, 2, 4, 1, 4, second)
    assert told(rows) == [first, second, *passed_on, (*last, second)]
    every = of_lists(schedule.lists, combines=False, in_order=False)
    assert told(every)[-1] == (*last, first, second)


class Told(Program):
    """Places so far apart in their lists that rank and place do not fit in one number."""

    def operations(self, rank: int) -> list[Operation]:
        raise AssertionError("never asked for")

    def columns(self) -> Columns:
        rows = [(0, 1, 2**62, 0, 0, 4), (0, 2, 7, 3, 4, 4), (1, 2, 2**62, 2**62 + 1, 0, 4)]
        return Columns(*np.array(rows, dtype=np.int64).T)


def test_long_lists_are_ordered_all_the_same() -> None:
    """Rank 0 serves rank 2 at first, then rank 1, which passes it on."""
    schedule = Schedule(Problem("broadcast", 30, 8), Told())
    timing = ideal(schedule, Machine.postal(t0_s=1, lam=2))
    assert list(timing.finish[:3]) == [2, 4, 5]


def test_more_bytes_than_fit_beside_a_rank() -> None:
    algorithm = ALGORITHMS["broadcast/scatter_allgather"]
    schedule = algorithm.schedule(29, 2**60 + 5, 1)
    assert_same(schedule.rows(combines=False), schedule, combines=False)
    assert len(schedule.rows(combines=False).nbytes)
    with pytest.raises(BeyondLimits, match="offsets beyond"):
        ideal(algorithm.schedule(29, 2**70), MEASURED)


# --- from lists, in C and in Python ---


def lists_at_random(seed: int) -> Any:
    random = Random(seed)
    if seed % 2:
        return random_schedule(random, random.randrange(2, 9), random.randrange(1, 40)).lists
    algorithm = random.choice(list(ALGORITHMS.values()))
    return random_run(random, algorithm, random.randrange(2, 12), HOCKNEY).lists


@pytest.mark.parametrize(
    "seeds",
    [range(100), pytest.param(range(100, 5000), marks=pytest.mark.exhaustive)],
    ids=["few", "many"],
)
def test_the_lists_in_c_and_in_python(seeds: range) -> None:
    if vars(dependencies)["_dependencies"] is None:
        pytest.skip("the extension is not built")
    for seed in seeds:
        lists = lists_at_random(seed)
        for asked in range(8):
            combines, copies, last_only = (bool(asked & bit) for bit in (1, 2, 4))
            fast = dependencies.rows_of_lists(
                lists, combines=combines, copies=copies, last_only=last_only
            )
            slow = dependencies._listed(lists, combines, copies, last_only)
            with in_case(seed, asked):
                assert all(map(np.array_equal, fast, slow))
        for operations in lists:
            waits = dependencies.dependencies(operations)
            assert waits == dependencies.written_before(operations)


@pytest.mark.parametrize("compiled", [True, False])
def test_more_bytes_than_columns_hold(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(dependencies, "_dependencies", None)
    many = (Block(0, 0, 2**63),)
    with pytest.raises(BeyondLimits, match="it has offsets beyond 2\\^61"):
        of_lists(([Send(1, many)], [Recv(0, many)]), combines=True)


def test_operations_that_the_interval_map_does_not_know() -> None:
    class Own(NamedTuple):
        blocks: tuple[Block, ...] = A

    with pytest.raises(TypeError, match="an operation of another kind"):
        of_lists(([Own()],), combines=True)  # type: ignore[list-item]
