"""Problems, schedules and their columns."""

from typing import Any

import numpy as np
import pytest
from tests.schedule.messages import messages

from collwise.errors import InvalidArgument, UnknownName
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    clobbers,
    reads,
    scratch,
    size_of,
    writes,
)
from collwise.schedule.problem import ORDERS, Problem, satisfies
from collwise.schedule.program import Schedule, Written

A, B = Block(0, 0, 6), Block(0, 6, 4)
WRITTEN = Written(
    (
        (Send(1, (A,)), Send(1, (B,)), Send(2, (A, B))),
        (Recv(0, (A,)), Recv(0, (B,))),
        (Recv(0, (A, B)),),
    )
)


def test_numpys_integers_become_pythons() -> None:
    problem = Problem("broadcast", np.int64(4), np.uint8(200), np.int32(1))  # type: ignore[arg-type]
    assert problem == Problem("broadcast", 4, 200, 1)
    assert {type(x) for x in (problem.ranks, problem.nbytes, problem.root)} == {int}


def test_a_schedule_translates_the_root() -> None:
    schedule = Schedule(Problem("broadcast", 3, 10, root=2), WRITTEN, "by hand")
    assert schedule.ranks == 3
    a, b = Block(2, 0, 6), Block(2, 6, 4)
    assert schedule.rank(2) == (Send(0, (a,)), Send(0, (b,)), Send(1, (a, b)))
    assert schedule.rank(0) == (Recv(2, (a,)), Recv(2, (b,)))
    assert schedule.lists == (schedule.rank(0), schedule.rank(1), schedule.rank(2))
    assert [row[:2] for row in messages(schedule)] == [(2, 0), (2, 0), (2, 1)]


@pytest.mark.parametrize("rank", [-1, 3, 10**9])
def test_a_rank_that_is_not(rank: int) -> None:
    schedule = Schedule(Problem("broadcast", 3, 10), WRITTEN)
    with pytest.raises(InvalidArgument) as caught:
        schedule.rank(rank)
    assert str(caught.value) == (
        f"the schedule of a rank, of 3: rank = {rank!r}; give an integer from 0 to 2"
    )


# --- what combines ---


def test_what_an_operation_reads_writes_and_spoils() -> None:
    s0, s1 = scratch(0), scratch(1)
    assert (s0, s1) == (2, 3)
    table: list[tuple[Operation, tuple[int, ...], int | None, tuple[int, ...]]] = [
        (Send(1, (A,), s0), (s0,), None, ()),
        (Recv(1, (A,), s0), (), s0, (s0,)),
        (Copy(0, 1, (A,)), (0,), 1, (1,)),
        (Combine(0, 1, 1, (A,)), (0, 1), 1, (1,)),
        (Combine(0, s0, 1, (A,)), (0, s0), 1, (1, s0)),  # scratch on the right is used up
        (Combine(s0, s1, s0, (A,)), (s0, s1), s0, (s0, s1)),
        (Combine(s0, s1, s1, (A,)), (s0, s1), s1, (s1,)),
        (Combine(s0, 0, s1, (A,)), (s0, 0), s1, (s1,)),
    ]
    for operation, read, written, spoilt in table:
        assert (reads(operation), writes(operation)) == (read, written)
        assert clobbers(operation) == spoilt
        assert size_of(operation) == 6


def test_orders_from_the_weakest() -> None:
    assert ORDERS == ("any", "same", "rank", "fixed")
    for i in range(4):
        assert [satisfies(ORDERS[i], asked) for asked in ORDERS] == [j <= i for j in range(4)]
    wrong: Any = "rnak"
    with pytest.raises(UnknownName, match=r"order 'rnak': there is none; did you mean rank\?"):
        satisfies("any", wrong)


def test_a_schedule_that_combines_translates_the_root() -> None:
    lists = ((Recv(1, (A,)), Combine(0, 1, 1, (A,)), Copy(0, 1, (B,))), (Send(0, (A,), 0),))
    schedule = Schedule(Problem("reduce", 2, 10, root=1), Written(lists))
    a, b = Block(1, 0, 6), Block(1, 6, 4)
    assert schedule.rank(1) == (Recv(0, (a,)), Combine(0, 1, 1, (a,)), Copy(0, 1, (b,)))
    assert schedule.rank(0) == (Send(1, (a,), 0),)
    assert messages(schedule) == [(0, 1, 0, 0, 0, 6)]
