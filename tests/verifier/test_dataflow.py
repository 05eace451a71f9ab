"""What the verifier says of right schedules, and of each kind of wrong one."""

import pytest
from tests.verifier.rejected import broadcast, violation

from collwise.errors import UnknownName
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Operation, Recv, Send, Slot
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.verifier import verify

POSTAL = Machine.postal(t0_s=1, lam=2)
HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10")
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
MACHINES = (POSTAL, HOCKNEY, LOGGP)

A, B, C = Block(0, 0, 4), Block(0, 4, 4), Block(0, 8, 2)
ALL = Block(0, 0, 10)


# --- what is right ---


@pytest.mark.parametrize("machine", [None, *MACHINES])
def test_right_schedules_pass(machine: Machine | None) -> None:
    verify(broadcast([]), machine)
    verify(broadcast([], [], [], nbytes=0), machine)
    verify(broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))]), machine)
    # Different cuts on the way: whole to rank 1, on in two messages, in another order.
    on: list[Operation] = [Send(2, (Block(0, 3, 7),)), Send(2, (Block(0, 0, 1), Block(0, 1, 2)))]
    to = [Recv(1, (Block(0, 3, 7),)), Recv(1, (Block(0, 0, 1), Block(0, 1, 2)))]
    verify(broadcast([Send(1, (ALL,))], [Recv(0, (ALL,)), *on], to), machine)


def test_blocks_of_no_bytes_may_go_along() -> None:
    blocks = (Block(0, 3, 0), ALL)
    verify(broadcast([Send(1, blocks)], [Recv(0, blocks)]))


def test_scratch_is_another_place() -> None:
    """What passes through scratch may come again into the output, and is not owed there."""
    first = [Send(1, (ALL,)), Send(1, (ALL,))]
    into: list[Operation] = [
        Recv(0, (ALL,), Slot.SCRATCH),
        Recv(0, (ALL,)),
        Send(2, (ALL,), Slot.SCRATCH),
    ]
    verify(broadcast(first, into, [Recv(1, (ALL,))]))


def test_unknown_collective() -> None:
    with pytest.raises(UnknownName, match=r"collective 'braodcast': .* did you mean broadcast, "):
        verify(Schedule(Problem("braodcast", 1, 1), Written(((),))))


# --- what is said of wrong ones: (schedule, rank, step, block, what the text says) ---

STORIES: dict[str, tuple[Schedule, int | None, int | None, Block | None, str]] = {
    "a list is missing": (
        broadcast([], ranks=2),
        None,
        None,
        None,
        "broadcast over 2 ranks: 1 lists of operations are written; write one list for every rank",
    ),
    "a list too many": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))], [], ranks=2),
        None,
        None,
        None,
        "3 lists of operations are written",
    ),
    "peer out of range": (
        broadcast([Send(1, (ALL,)), Send(2, (ALL,))], [Recv(0, (ALL,))]),
        0,
        1,
        ALL,
        "rank 0, step 1: send bytes 0…9 of rank 0's data to rank 2: there are 2 ranks; "
        "name a peer from 0 to 1",
    ),
    "negative peer": (
        broadcast([Send(1, (ALL,))], [Recv(-1, (ALL,))]),
        1,
        0,
        ALL,
        "receive bytes 0…9 of rank 0's data from rank -1",
    ),
    "message to itself": (
        broadcast([Send(0, (ALL,)), Recv(0, (ALL,))]),
        0,
        0,
        ALL,
        "to rank 0: this is the rank itself; leave the message out",
    ),
    "negative length": (
        broadcast([Send(1, (Block(0, 5, -2),))], [Recv(0, (ALL,))]),
        0,
        0,
        Block(0, 5, -2),
        "send -2 bytes at 5 of rank 0's data to rank 1: a length is negative",
    ),
    "no block": (
        broadcast([Send(1, ())], []),
        0,
        0,
        None,
        "send nothing to rank 1: it is about 0 bytes",
    ),
    "only empty blocks": (
        broadcast([], [Recv(0, (Block(0, 3, 0),))]),
        1,
        0,
        None,
        "receive 0 bytes at 3 of rank 0's data from rank 0: it is about 0 bytes; leave out",
    ),
    "into the input": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,), Slot.INPUT)]),
        1,
        0,
        ALL,
        "it would overwrite the user's input; name the output or scratch",
    ),
    "a send that nobody receives": (
        broadcast([Send(1, (A,)), Send(1, (B,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))]),
        0,
        1,
        B,
        "no receive matches: rank 0 sends 3 message(s) to rank 1, which receives 2; "
        "let rank 1 receive it, or drop it",
    ),
    "a receive that nobody sends": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,))], [Recv(1, (ALL,))]),
        2,
        0,
        ALL,
        "no send matches: rank 1 sends 0 message(s) to rank 2, which receives 1; let rank 1 send",
    ),
    "other blocks": (
        broadcast([Send(1, (A, B)), Send(1, (C,))], [Recv(0, (B, A)), Recv(0, (C,))]),
        1,
        0,
        B,
        "message 1 from rank 0, its step 0, carries bytes 0…3 of rank 0's data, bytes 4…7 of rank "
        "0's data; name the same blocks in the same order on both sides",
    ),
    "beyond the end": (
        broadcast([Send(1, (Block(0, 0, 12),))], [Recv(0, (Block(0, 0, 12),))]),
        0,
        0,
        Block(0, 10, 2),
        "there is no such data as bytes 10…11 of rank 0's data; stay within the data",
    ),
    "before the start": (
        broadcast([Send(1, (Block(0, -2, 12),))], [Recv(0, (Block(0, -2, 12),))]),
        0,
        0,
        Block(0, -2, 2),
        "there is no such data as bytes -2…-1 of rank 0's data",
    ),
    "of somebody else": (
        broadcast([Send(1, (Block(1, 0, 10),))], [Recv(0, (Block(1, 0, 10),))]),
        0,
        0,
        Block(1, 0, 10),
        "there is no such data as bytes 0…9 of rank 1's data",
    ),
    "sent too early": (
        broadcast(
            [Send(1, (A,)), Send(1, (B, C))],
            [Recv(0, (A,)), Send(2, (A, B, C)), Recv(0, (B, C))],
            [Recv(1, (A, B, C))],
        ),
        1,
        1,
        Block(0, 4, 6),
        "it does not hold bytes 4…9 of rank 0's data in its output by then, but gets data for it "
        "only at step 2; put this after step 2",
    ),
    "sent without ever having it": (
        broadcast([], [Send(2, (A,))], [Recv(1, (A,))]),
        1,
        0,
        A,
        "in its output by then, nor ever; receive the data first",
    ),
    "sent from a slot that has nothing": (
        broadcast([Send(1, (ALL,), Slot.INPUT)], [Recv(0, (ALL,))]),
        0,
        0,
        ALL,
        "it does not hold bytes 0…9 of rank 0's data in its input by then, nor ever",
    ),
    "received by the root": (
        broadcast([Send(1, (ALL,)), Recv(1, (B,))], [Recv(0, (ALL,)), Send(0, (B,))]),
        0,
        1,
        B,
        "it holds bytes 4…7 of rank 0's data from the start, and sends that read them may be under "
        "way; leave them out here: every byte of a slot is received once",
    ),
    "received again": (
        broadcast(
            [Send(1, (Block(0, 0, 6),)), Send(1, (Block(0, 4, 6),))],
            [Recv(0, (Block(0, 0, 6),)), Recv(0, (Block(0, 4, 6),))],
        ),
        1,
        1,
        Block(0, 4, 2),
        "it holds bytes 4…5 of rank 0's data since step 0",
    ),
    "twice in one message": (
        broadcast([Send(1, (ALL, B))], [Recv(0, (ALL, B))]),
        1,
        0,
        B,
        "it holds bytes 4…7 of rank 0's data from this very message",
    ),
    "left without": (
        broadcast([Send(1, (A,)), Send(1, (C,))], [Recv(0, (A,)), Recv(0, (C,))]),
        1,
        None,
        B,
        "rank 1, at the end: bytes 4…7 of rank 0's data in its output: none of its 2 operations "
        "brings them; send them to this rank",
    ),
    "only into scratch": (
        broadcast([Send(1, (ALL,))], [Recv(0, (ALL,), Slot.SCRATCH)]),
        1,
        None,
        ALL,
        "rank 1, at the end: bytes 0…9 of rank 0's data in its output",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_said(story: str) -> None:
    schedule, rank, step, block, text = STORIES[story]
    error = violation(schedule)
    assert text in str(error)
    assert (error.rank, error.step, error.block) == (rank, step, block)
    assert error.exit_code == 1


def test_many_blocks_are_cut_short() -> None:
    blocks = tuple(Block(0, i, 1) for i in range(10))
    error = violation(broadcast([Send(1, blocks)], []))
    assert "bytes 2…2 of rank 0's data and 7 more blocks to rank 1" in error.asked


def test_the_root_is_the_users() -> None:
    """A program speaks of virtual ranks; the violation names the user's."""
    problem = Problem("broadcast", 3, 10, root=2)
    lists = ((Send(1, (ALL,)),), (Recv(0, (ALL,)),), ())
    error = violation(Schedule(problem, Written(lists)))
    assert (error.rank, error.block) == (1, Block(2, 0, 10))
