"""What is said of schedules that combine wrongly: each kind, with its rank, step and block."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from tests.timing.schedules import ALL, BLOCKS, IN, OUT, S0, S1, S2, combine, recv, send, written
from tests.verifier.judge import MACHINES
from tests.verifier.rejected import violation

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.verifier import verify
from collwise.verifier.contributions import Expressions, expressions_of

A, B = BLOCKS["A"], BLOCKS["B"]
ALONE: list[Operation] = [Copy(IN, OUT, (ALL,))]
Where = tuple[int, int | None, Block]
"""Rank, step and block that a violation names."""


def combined(collective: str, *lists: Sequence[Operation], order: Any = "rank") -> Schedule:
    return written(*lists, collective=collective, itemsize=4, order=order)


reduce, allreduce = partial(combined, "reduce"), partial(combined, "allreduce")


# --- what is right ---


@pytest.mark.parametrize("machine", [None, *MACHINES])
def test_right_schedules_pass(machine: Machine | None) -> None:
    verify(reduce(ALONE), machine)
    verify(reduce([recv(1), combine(IN, OUT)], [send(0)]), machine)
    # By way of scratch, in halves, the right operand overwritten or used up.
    halves: list[Operation] = [recv(1, S0, A), recv(1, S0, B)]
    both = [send(0, IN, A), send(0, IN, B)]
    verify(reduce([*halves, combine(IN, S0, S0), Copy(S0, OUT, (ALL,))], both), machine)
    verify(reduce([*halves, combine(IN, S0, OUT, A), combine(IN, S0, OUT, B)], both), machine)
    # Into the left operand, for the right one is scratch.
    up: list[Operation] = [recv(1, S0), combine(IN, S0), recv(2, S1), combine(OUT, S1)]
    verify(reduce(up, [send(0)], [send(0)]), machine)
    # An exchange.
    one, two = ([send(r), recv(r, OUT)] for r in (1, 0))
    verify(allreduce([*one, combine(IN, OUT)], [*two[:1], recv(0, S0), combine(S0, IN)]), machine)


def test_expressions_as_text() -> None:
    up: list[Operation] = [recv(1, S0), combine(IN, S0), recv(2, S1), combine(OUT, S1)]
    assert expressions_of(reduce(up, [send(0)], [send(0)])) == (("((0 1) 2)",), (), ())
    assert expressions_of(reduce(ALONE)) == (("0",),)


def shifting(rank: int, **own: Any) -> list[Operation]:
    """Both vectors one behind the other in scratch, sent in halves; then combined.

    own: what is different about the copy of a rank's own vector.
    """

    def vector(of: int) -> tuple[Block, ...]:
        return Block(0, 8 * of, 4), Block(0, 8 * of + 4, 4)

    return [
        Copy(IN, S0, (ALL,), 8 * rank)._replace(**own),
        *(send(1 - rank, S0, half) for half in vector(rank)),
        *(recv(1 - rank, S0, half) for half in vector(1 - rank)),
        Copy(S0, S1, (ALL,)),
        Copy(S0, S2, (Block(0, 8, 8),), -8),
        combine(S1, S2),
    ]


def test_vectors_behind_one_another() -> None:
    verify(allreduce(shifting(0), shifting(1)))
    straight = [*shifting(1)[:-1], Copy(S0, OUT, (Block(0, 8, 8),), -8), combine(S1, OUT)]
    verify(allreduce(shifting(0), straight))
    swapped = [*shifting(1)[:-1], combine(S2, S1)]
    assert "in the order of the ranks" in violation(allreduce(shifting(0), swapped)).seen
    missing = [op for op in shifting(1) if getattr(op, "shift", 0) != -8]
    assert "it does not hold" in violation(allreduce(shifting(0), missing)).seen


@pytest.mark.parametrize(
    ("own", "seen"),
    [
        ({"shift": 6}, "its shift of 6 leads to no element of 4 bytes"),
        ({"shift": -4}, "its shift of -4 leads to no element of 4 bytes"),
        ({"blocks": (A, B)}, "it shifts several blocks, or within a slot"),
        ({"source": S0}, "it shifts several blocks, or within a slot"),
        ({"into": OUT}, "its output has no such bytes"),
        ({"shift": 16}, "it does not hold bytes 8…11"),
    ],
)
def test_shifts_that_are_wrong(own: dict[str, Any], seen: str) -> None:
    error = violation(allreduce(shifting(0), shifting(1, **own)))
    assert seen in error.seen
    assert error.rank == 1


def test_right_but_in_no_order() -> None:
    """The later rank's contribution on the left: alike on both, but not in the ranks' order."""
    lists = [send(1), recv(1, S0), combine(S0, IN)], [send(0), recv(0), combine(IN, OUT)]
    verify(allreduce(*lists, order="same"))
    verify(allreduce(*lists, order="any"))
    assert "in the order of the ranks" in violation(allreduce(*lists)).seen
    other = [send(1), recv(1), combine(IN, OUT)], lists[1]
    verify(allreduce(*other, order="any"))
    for order in ("same", "rank"):
        with pytest.raises(InvalidSchedule, match="order"):
            verify(allreduce(*other, order=order))


def test_equal_expressions_have_one_number() -> None:
    numbers = Expressions(4)
    left, right = numbers.combine(0, 1), numbers.combine(2, 3)
    assert left is not None
    assert right is not None
    assert numbers.combine(0, 1) == left != right != numbers.combine(3, 2)
    every = numbers.combine(left, right)
    assert numbers.values[every] == (0b1111, True)
    other = numbers.combine(right, left)
    assert numbers.values[other] == (0b1111, False)
    assert numbers.combine(left, 1) == numbers.combine(every, left) == -1


# --- what is said of wrong ones: (schedule, rank, step, block, what the text says) ---


THREE = [recv(1), combine(IN, OUT), recv(2, S0), combine(OUT, S0)]
STORIES: dict[str, tuple[Schedule, Where, str]] = {
    "a contribution twice": (
        reduce(
            [recv(1), combine(IN, OUT), recv(2, S0), combine(OUT, S0)],
            [send(0), send(2)],
            [recv(1, S0), combine(S0, IN, S1), send(0, S1)],
        ),
        (0, 3, ALL),
        "rank 0, step 3: combine its output and its scratch 0 into its output, bytes 0…7 of rank "
        "0's data: rank 1's contribution is in both operands; combine every contribution once",
    ),
    "half of it twice": (
        reduce(
            [recv(1, S0), combine(IN, S0, S1), combine(IN, S1, OUT, B), Copy(S1, OUT, (A,))],
            [send(0)],
        ),
        (0, 2, B),
        "into its output, bytes 4…7 of rank 0's data: rank 0's contribution is in both operands",
    ),
    "one is missing": (
        reduce([recv(1), combine(IN, OUT)], [send(0)], []),
        (0, None, ALL),
        "rank 0, at the end: bytes 0…7 of rank 0's data, combined: the contribution of rank 2 is "
        "missing; combine every rank's contribution exactly once, in the order that was promised",
    ),
    "one is missing in a part, on one rank": (
        allreduce(
            [send(1), recv(1), combine(IN, OUT)],
            [send(0), recv(0, S0), combine(S0, IN, OUT, B), Copy(IN, OUT, (A,))],
        ),
        (1, None, A),
        "bytes 0…3 of rank 0's data, combined: the contribution of rank 0 is missing",
    ),
    "read before it is received": (
        reduce([combine(IN, S0), recv(1, S0)], [send(0)]),
        (0, 0, ALL),
        "rank 0, step 0: combine its input and its scratch 0 into its output, bytes 0…7 of rank "
        "0's data: it does not hold bytes 0…7 of rank 0's data in its scratch 0 by then, but gets "
        "data for it only at step 1; put this after step 1",
    ),
    "sent before anything is there": (
        reduce(THREE[:2], [send(0, S1), recv(2, S0), combine(IN, S0, S1)], [send(1)]),
        (1, 0, ALL),
        "send bytes 0…7 of rank 0's data to rank 0: it does not hold bytes 0…7 of rank 0's data in "
        "its scratch 1 by then, but gets data for it only at step 2",
    ),
    "never there": (
        reduce([recv(1), combine(S2, OUT)], [send(0)]),
        (0, 1, ALL),
        "in its scratch 2 by then, nor ever",
    ),
    "used up": (
        reduce([recv(1, S0), combine(IN, S0), recv(2, S1), combine(S1, S0)], [send(0)], [send(0)]),
        (0, 3, ALL),
        "it does not hold bytes 0…7 of rank 0's data in its scratch 0 by then, for it was used up "
        "at step 1; combine first what is used once only",
    ),
    "used up and received again": (
        reduce([recv(1, S0), combine(IN, S0), recv(2, S0), combine(OUT, S0)], [send(0)], [send(0)]),
        (0, 2, ALL),
        "receive bytes 0…7 of rank 0's data from rank 2: it holds bytes 0…7 of rank 0's data since "
        "step 0, and sends that read them may be under way",
    ),
    "into the input": (
        reduce([recv(1, S0), combine(IN, S0, IN), Copy(IN, OUT, (ALL,))], [send(0)]),
        (0, 1, ALL),
        "it would overwrite the user's input; name the output or scratch",
    ),
    "into the left, and the right is no scratch": (
        reduce([recv(1, S0), combine(S0, IN, S0), Copy(S0, OUT, (ALL,))], [send(0)]),
        (0, 1, ALL),
        "combine its scratch 0 and its input into its scratch 0, bytes 0…7 of rank 0's data: its "
        "operands lie where they cannot be combined; take two slots; combine into the left one "
        "only if the right is scratch",
    ),
    "with itself": (
        reduce([recv(1, S0), combine(S0, S0)], [send(0)]),
        (0, 1, ALL),
        "combine its scratch 0 and its scratch 0 into its output, bytes 0…7 of rank 0's data: its "
        "operands lie where they cannot be combined",
    ),
    "written where there is no output": (
        reduce(THREE[:2], [recv(2, S0), combine(IN, S0), send(0, OUT)], [send(1)]),
        (1, 1, ALL),
        "its output has no such bytes; keep it in scratch",
    ),
    "received where there is no output": (
        reduce(THREE[:2], [recv(2), combine(IN, OUT, S0), send(0, S0)], [send(1)]),
        (1, 0, ALL),
        "receive bytes 0…7 of rank 0's data from rank 2: its output has no such bytes",
    ),
    "not in the order of the ranks": (
        reduce([recv(1, S0), combine(S0, IN)], [send(0)]),
        (0, None, ALL),
        "rank 0, at the end: bytes 0…7 of rank 0's data, combined: it is not combined in the order "
        "of the ranks",
    ),
    "in the order of the ranks but for one part": (
        reduce([recv(1, S0), combine(IN, S0, OUT, A), combine(S0, IN, OUT, B)], [send(0)]),
        (0, None, B),
        "bytes 4…7 of rank 0's data, combined: it is not combined in the order of the ranks",
    ),
    "otherwise than on the root": (
        allreduce(
            [send(1), recv(1), combine(IN, OUT)], [send(0), recv(0), combine(IN, OUT)], order="same"
        ),
        (1, None, ALL),
        "rank 1, at the end: bytes 0…7 of rank 0's data, combined: it is combined in another order "
        "than on rank 0",
    ),
    "bracketed otherwise": (
        allreduce(
            [send(1), send(2), recv(1), recv(2, S0), combine(IN, OUT), combine(OUT, S0)],
            [send(0), send(2), recv(0, S0), recv(2), combine(S0, IN, S1), combine(S1, OUT)],
            [send(0), send(1), recv(0, S0), recv(1, S1), combine(S1, IN, S2), combine(S0, S2)],
        ),
        (2, None, ALL),
        "it is combined in another order than on rank 0",
    ),
    "nothing in the output": (
        reduce([recv(1, S0), combine(IN, S0, S1)], [send(0)]),
        (0, None, ALL),
        "rank 0, at the end: bytes 0…7 of rank 0's data in its output: none of its 2 operations "
        "brings them",
    ),
    "combined without blocks": (
        reduce([recv(1), combine(IN, OUT), Combine(IN, OUT, S0, (Block(0, 3, 0),))], [send(0)]),
        (0, 2, Block(0, 3, 0)),
        "combine its input and its output into its scratch 0, 0 bytes at 3 of rank 0's data: it is "
        "about 0 bytes; leave out empty operations",
    ),
    "an element cut": (
        reduce(
            [recv(1, OUT, Block(0, 0, 6), Block(0, 6, 2)), combine(IN, OUT)],
            [send(0, IN, Block(0, 0, 6), Block(0, 6, 2))],
        ),
        (0, 0, Block(0, 0, 6)),
        "it cuts inside an element of 4 bytes; move and combine whole elements",
    ),
    "an element cut by a combine": (
        reduce(
            [recv(1), combine(IN, OUT, OUT, Block(0, 0, 2)), combine(IN, OUT, OUT, Block(0, 2, 6))],
            [send(0)],
        ),
        (0, 1, Block(0, 0, 2)),
        "it cuts inside an element of 4 bytes",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_said(story: str) -> None:
    schedule, (rank, step, block), text = STORIES[story]
    error = violation(schedule)
    assert text in str(error)
    named = None if "0 bytes" in text else block
    assert (error.rank, error.step, error.block) == (rank, step, named)
    assert error.exit_code == 1


def test_elements_may_be_cut_where_nothing_is_combined() -> None:
    cut = Problem("broadcast", 2, 8, itemsize=8)
    lists = ((Send(1, (A,)), Send(1, (B,))), (Recv(0, (A,)), Recv(0, (B,))))
    verify(Schedule(cut, Written(lists)))


def test_the_ranks_are_the_users() -> None:
    """Virtual ranks start from the root; what is told are the user's, and so is the order."""
    lists = ((recv(1), combine(IN, OUT)), (send(0),), ())
    rooted = Problem("reduce", 3, 8, root=1, itemsize=4)
    error = violation(Schedule(rooted, Written(lists)))
    assert error.rank == 1
    assert error.block == Block(1, 0, 8)
    assert error.seen == "the contribution of rank 0 is missing"
    whole = ((*lists[0], recv(2, S0), combine(OUT, S0)), (send(0),), (send(0),))
    verify(Schedule(rooted, Written(whole)))
    ordered = Problem("reduce", 3, 8, root=1, itemsize=4, order="rank")
    assert "order of the ranks" in violation(Schedule(ordered, Written(whole))).seen
