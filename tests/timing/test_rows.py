"""The rows of a schedule, however they are made, are those of its ranks' lists."""

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.algorithms.examples import MEASURED, told
from tests.case import in_case
from tests.timing.schedules import (
    A,
    random_run,
    random_schedule,
    spelled,
)

from collwise.algorithms import ALGORITHMS
from collwise.errors import BeyondLimits
from collwise.model.machine import Machine
from collwise.schedule import dependencies
from collwise.schedule.operations import Block, Recv, Send
from collwise.schedule.program import Schedule
from collwise.schedule.rows import Rows, of_lists
from collwise.timing import ideal

HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10", gamma_s="1/7")


def assert_same(rows: Rows | None, schedule: Schedule, *, combines: bool) -> None:
    assert rows is not None
    assert told(rows) == told(of_lists(schedule.lists, combines=combines))


def test_what_waits_for_what() -> None:
    """Rank 1 sends its first half when it has that, then both halves when it has the other."""
    schedule = spelled(">1A >1B", "<0A >2A <0B >3BA >2B", "<1A <1B", "<1BA")
    first, second = (0, 1, 0, 0, 4), (0, 1, 1, 2, 4)
    last = (1, 3, 3, 0, 8)
    passed_on = (1, 2, 1, 0, 4, first), (1, 2, 4, 1, 4, second)
    assert told(schedule.rows(combines=False)) == [first, second, *passed_on, (*last, second)]
    every = of_lists(schedule.lists, combines=False, in_order=False)
    assert told(every)[-1] == (*last, first, second)


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
