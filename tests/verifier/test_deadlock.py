"""Deadlocks: the circle of waiting ranks is named, and none is missed."""

from collections.abc import Sequence

import pytest
from tests.timing.schedules import BLOCKS, spelled, written
from tests.verifier.judge import HOCKNEY, LOGGP, MACHINES, POSTAL
from tests.verifier.rejected import posted, violation

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal
from collwise.verifier import verify

A, B = BLOCKS["A"], BLOCKS["B"]
Lists = Sequence[Sequence[Operation]]


def test_a_circle_of_receives() -> None:
    schedule = spelled(
        ">1A >2B >3C",
        "<2B <0A >3A <3C >3B",
        "<3C <0B >1B <3A",
        "<1A <0C >2C >1C <1B >2A",
        nbytes=10,
    )
    error = violation(schedule)
    assert (error.rank, error.step, error.block) == (1, 0, B)
    assert error.asked == "rank 1, step 0: receive bytes 4…7 of rank 0's data from rank 2"
    assert error.seen == (
        "it never completes even if sends are buffered, for ranks wait in a circle: "
        "rank 1 at step 0 (receive) waits for rank 2, rank 2 at step 2 (send) waits for its data, "
        "rank 2 at step 0 (receive) waits for rank 3, rank 3 at step 2 (send) waits for its data, "
        "rank 3 at step 0 (receive) waits for rank 1, rank 1 at step 2 (send) waits for its data"
    )
    assert "another order" in error.remedy
    for machine in MACHINES[:2]:
        with pytest.raises(InvalidSchedule, match="never completes"):
            ideal(schedule, machine)
    assert violation(posted(schedule)).seen == error.seen  # whenever receives are posted


def test_blocking_sends_can_wait_where_buffered_ones_do_not() -> None:
    """Rank 0 offers A to rank 1, which first wants B; B comes from 0 by way of 2, but after A."""
    schedule = spelled(">1A >2B >2A", "<2B <0A", "<0B >1B <0A")
    ideal(schedule, POSTAL)
    error = violation(schedule)
    assert (error.rank, error.step, error.block) == (0, 0, A)
    assert error.seen == (
        "it never completes if a send waits for its receiver, for ranks wait in a circle: "
        "rank 0 at step 0 (send) waits for rank 1, rank 1 at step 0 (receive) waits for rank 2, "
        "rank 2 at step 1 (send) waits for its data, rank 2 at step 0 (receive) waits for rank 0"
    )
    with pytest.raises(InvalidSchedule, match="never completes"):
        ideal(schedule, HOCKNEY)
    verify(posted(schedule))  # no send waits then


def test_two_messages_of_one_pair_do_not_overtake() -> None:
    """While its first message waits to be taken, a sender does not start another one."""
    schedule = spelled(">1A >1B >2C >2AB", "<0A <2C <0B", "<0C <0AB >1C", nbytes=10)
    error = violation(schedule)
    assert (error.rank, error.step) == (0, 1)
    assert "if a send waits for its receiver" in error.seen


def test_a_long_circle_is_cut_short() -> None:
    """Around a ring of 12, each receives what its neighbour gets last before what it passes on."""
    p = 12
    mine = [Block(0, r - 1, 1) for r in range(1, p)]
    lists: list[list[Operation]] = [[Send(r, (mine[r - 1],)) for r in range(1, p)]]
    for r in range(1, p):
        left, right = (r - 2) % (p - 1) + 1, r % (p - 1) + 1
        theirs = mine[left - 1]
        lists.append([Recv(left, (theirs,)), Recv(0, (mine[r - 1],)), Send(right, (mine[r - 1],))])
        rest = tuple(b for b in mine if b not in (theirs, mine[r - 1]))
        lists[0].append(Send(r, rest))
        lists[r].append(Recv(0, rest))
    error = violation(written(*lists, nbytes=p - 1))
    assert error.rank == 1
    assert error.seen.count("waits") == 7
    assert "… 15 more …" in error.seen


def test_sends_on_both_sides_of_combines() -> None:
    """Two sends of a pairwise reduce-scatter swapped: it never completes where combining takes the
    ports, and was accepted where no machine was named."""
    right = ALGORITHMS["reduce_scatter_block/pairwise"].schedule(4, 32, itemsize=8)
    verify(right)
    first, *others = right.lists
    sends = [step for step, op in enumerate(first) if isinstance(op, Send)]
    mutant = list(first)
    mutant[sends[0]], mutant[sends[2]] = first[sends[2]], first[sends[0]]
    wrong = Schedule(right.problem, Written(tuple(map(tuple, (mutant, *others)))))
    for machine in (POSTAL, LOGGP):
        verify(wrong, machine)
    for named in (None, Machine.hockney(alpha_s=1, beta_s=1, gamma_s=1)):
        assert "never completes" in violation(wrong, named).seen
