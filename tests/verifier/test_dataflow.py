"""What the verifier says of right schedules, and of each kind of wrong one."""

import pytest
from tests.timing.schedules import BLOCKS, IN, OUT, S0, operations_of, recv, send, spelled, written
from tests.verifier.judge import MACHINES
from tests.verifier.rejected import violation

from collwise.errors import UnknownName
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Operation, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.verifier import verify

A, B, C = (BLOCKS[name] for name in "ABC")
WHOLE = Block(0, 0, 10)
Where = tuple[int | None, int | None, Block | None]
"""Rank, step and block that a violation names."""


# --- what is right ---


@pytest.mark.parametrize("machine", [None, *MACHINES])
def test_right_schedules_pass(machine: Machine | None) -> None:
    verify(written([], nbytes=10), machine)
    verify(written([], [], [], nbytes=0), machine)
    verify(spelled(">1ABC", "<0ABC", nbytes=10), machine)
    # Different cuts on the way: whole to rank 1, on in two messages, in another order.
    last, first = (Block(0, 3, 7),), (Block(0, 0, 1), Block(0, 1, 2))
    on = [recv(0, OUT, WHOLE), send(2, OUT, *last), send(2, OUT, *first)]
    to = [recv(1, OUT, *last), recv(1, OUT, *first)]
    verify(written([send(1, OUT, WHOLE)], on, to, nbytes=10), machine)


def test_blocks_of_no_bytes_may_go_along() -> None:
    blocks = (Block(0, 3, 0), WHOLE)
    verify(written([send(1, OUT, *blocks)], [recv(0, OUT, *blocks)], nbytes=10))


def test_scratch_is_another_place() -> None:
    """What passes through scratch may come again into the output, and is not owed there."""
    into = [recv(0, S0), recv(0), send(2, S0)]
    verify(written([send(1, OUT), send(1, OUT)], into, [recv(1)]))


def test_unknown_collective() -> None:
    with pytest.raises(UnknownName, match=r"collective 'braodcast': .* did you mean broadcast, "):
        verify(Schedule(Problem("braodcast", 1, 1), Written(((),))))


# --- what is said of wrong ones: schedule, where it is wrong, what the text says ---


def broadcast(*lists: str | list[Operation], ranks: int | None = None) -> Schedule:
    """A broadcast of ten bytes; a list may be spelled."""
    made = [operations_of(each) if isinstance(each, str) else each for each in lists]
    problem = Problem("broadcast", len(lists) if ranks is None else ranks, 10)
    return Schedule(problem, Written(tuple(map(tuple, made))))


def one_message(*blocks: Block) -> Schedule:
    return broadcast([send(1, OUT, *blocks)], [recv(0, OUT, *blocks)])


STORIES: dict[str, tuple[Schedule, Where, str]] = {
    "a list is missing": (
        broadcast("", ranks=2),
        (None, None, None),
        "broadcast over 2 ranks: 1 lists of operations are written; write one list for every rank",
    ),
    "peer out of range": (
        broadcast(">1ABC >2A", "<0ABC"),
        (0, 1, A),
        "rank 0, step 1: send bytes 0…3 of rank 0's data to rank 2: there are 2 ranks; "
        "name a peer from 0 to 1",
    ),
    "message to itself": (
        broadcast(">0A <0A"),
        (0, 0, A),
        "to rank 0: this is the rank itself; leave the message out",
    ),
    "negative length": (
        broadcast([send(1, OUT, Block(0, 5, -2))], "<0A"),
        (0, 0, Block(0, 5, -2)),
        "send -2 bytes at 5 of rank 0's data to rank 1: a length is negative",
    ),
    "no block": (
        broadcast([Send(1, ())], ""),
        (0, 0, None),
        "send nothing to rank 1: it is about 0 bytes",
    ),
    "into the input": (
        broadcast(">1A", [recv(0, IN, A)]),
        (1, 0, A),
        "it would overwrite the user's input; name the output or scratch",
    ),
    "a send that nobody receives": (
        broadcast(">1A >1B >1C", "<0A <0C"),
        (0, 1, B),
        "no receive matches: rank 0 sends 3 message(s) to rank 1, which receives 2; "
        "let rank 1 receive it, or drop it",
    ),
    "a receive that nobody sends": (
        broadcast(">1A", "<0A", "<1A"),
        (2, 0, A),
        "no send matches: rank 1 sends 0 message(s) to rank 2, which receives 1; let rank 1 send",
    ),
    "other blocks": (
        broadcast(">1AB >1C", "<0BA <0C"),
        (1, 0, B),
        "message 1 from rank 0, its step 0, carries bytes 0…3 of rank 0's data, bytes 4…7 of rank "
        "0's data; name the same blocks in the same order on both sides",
    ),
    "beyond the end": (
        one_message(Block(0, 0, 12)),
        (0, 0, Block(0, 10, 2)),
        "there is no such data as bytes 10…11 of rank 0's data; stay within the data",
    ),
    "before the start": (
        one_message(Block(0, -2, 12)),
        (0, 0, Block(0, -2, 2)),
        "there is no such data as bytes -2…-1 of rank 0's data",
    ),
    "of somebody else": (
        one_message(Block(1, 0, 10)),
        (0, 0, Block(1, 0, 10)),
        "there is no such data as bytes 0…9 of rank 1's data",
    ),
    "sent too early": (
        broadcast(">1A >1BC", "<0A >2ABC <0BC", "<1ABC"),
        (1, 1, Block(0, 4, 6)),
        "it does not hold bytes 4…9 of rank 0's data in its output by then, but gets data for it "
        "only at step 2; put this after step 2",
    ),
    "sent from a slot that has nothing": (
        broadcast(">1a", "<0A"),
        (0, 0, A),
        "it does not hold bytes 0…3 of rank 0's data in its input by then, nor ever",
    ),
    "received by the root": (
        broadcast(">1ABC <1B", "<0ABC >0B"),
        (0, 1, B),
        "it holds bytes 4…7 of rank 0's data from the start, and sends that read them may be under "
        "way; leave them out here: every byte of a slot is received once",
    ),
    "received again": (
        broadcast(
            [send(1, OUT, Block(0, 0, 6)), send(1, OUT, Block(0, 4, 6))],
            [recv(0, OUT, Block(0, 0, 6)), recv(0, OUT, Block(0, 4, 6))],
        ),
        (1, 1, Block(0, 4, 2)),
        "it holds bytes 4…5 of rank 0's data since step 0",
    ),
    "twice in one message": (
        broadcast(">1ABCB", "<0ABCB"),
        (1, 0, B),
        "it holds bytes 4…7 of rank 0's data from this very message",
    ),
    "left without": (
        broadcast(">1A >1C", "<0A <0C"),
        (1, None, B),
        "rank 1, at the end: bytes 4…7 of rank 0's data in its output: none of its 2 operations "
        "brings them; send them to this rank",
    ),
    "only into scratch": (
        broadcast(">1ABC", [recv(0, S0, A, B, C)]),
        (1, None, WHOLE),
        "rank 1, at the end: bytes 0…9 of rank 0's data in its output",
    ),
    "many blocks are cut short": (
        broadcast([send(1, OUT, *(Block(0, i, 1) for i in range(10)))], ""),
        (0, 0, Block(0, 0, 1)),
        "bytes 2…2 of rank 0's data and 7 more blocks to rank 1",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_said(story: str) -> None:
    schedule, (rank, step, block), text = STORIES[story]
    error = violation(schedule)
    assert text in str(error)
    assert (error.rank, error.step, error.block) == (rank, step, block)
    assert error.exit_code == 1


def test_the_root_is_the_users() -> None:
    """A program speaks of virtual ranks; the violation names the user's."""
    problem = Problem("broadcast", 3, 10, root=2)
    lists = tuple(tuple(operations_of(spelled)) for spelled in (">1ABC", "<0ABC", ""))
    error = violation(Schedule(problem, Written(lists)))
    assert (error.rank, error.block) == (1, Block(2, 0, 10))
