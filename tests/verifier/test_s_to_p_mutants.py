"""Random mutants of s-to-p broadcasts: the verifier against a judge that looks at every byte.

The mutants of `test_mutants` are all wrong.  These may still be right, and then have to pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.algorithms.examples import settings_of

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidSchedule
from collwise.schedule.dependencies import awaited_receives
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.verifier import check_flow

Lists = list[list[Operation]]
SEEDS = 60


def bytes_of(op: Operation) -> list[tuple[int, int]]:
    return [(b.owner, i) for b in op.blocks for i in range(b.offset, b.end)]


def is_right(problem: Problem, lists: Sequence[Sequence[Operation]]) -> bool:
    """Slow and plain: messages meet in pairs, every rank is told every byte exactly once."""
    everything = {(rank, i) for rank, nbytes in problem.sources for i in range(nbytes)}
    for rank, operations in enumerate(lists):
        held = {byte for byte in everything if byte[0] == rank}
        for op in operations:
            moved = bytes_of(op)
            if not moved or any(b.length < 0 for b in op.blocks):
                return False
            if isinstance(op, Send) and not held >= set(moved):
                return False
            if isinstance(op, Recv):
                if len(set(moved)) < len(moved) or held & set(moved):
                    return False
                held |= set(moved)
        if held != everything:
            return False
    return never_waits_for_ever(problem, lists)


def never_waits_for_ever(problem: Problem, lists: Sequence[Sequence[Operation]]) -> bool:
    """A send is done when the next receive of its receiver is for it, and its data is there."""
    todo = {
        kind: [[op for op in operations if isinstance(op, kind)] for operations in lists]
        for kind in (Send, Recv)
    }
    held = [
        {(rank, i) for i in range(dict(problem.sources).get(rank, 0))} for rank in range(len(lists))
    ]
    moved = True
    while moved:
        moved = False
        for rank, sends in enumerate(todo[Send]):
            if not sends or not 0 <= (peer := sends[0].peer) < len(lists) or peer == rank:
                continue
            receives = todo[Recv][peer]
            if (
                not receives
                or receives[0].peer != rank
                or not held[rank] >= set(bytes_of(sends[0]))
            ):
                continue
            if sends[0].blocks != receives[0].blocks:
                return False
            held[peer] |= set(bytes_of(sends.pop(0)))
            receives.pop(0)
            moved = True
    return not any(map(any, todo.values()))


def somewhere(lists: Lists, random: Random) -> tuple[int, int]:
    rank = random.choice([rank for rank, operations in enumerate(lists) if operations])
    return rank, random.randrange(len(lists[rank]))


def other_place(lists: Lists, random: Random) -> None:
    """An operation comes earlier or later."""
    rank, at = somewhere(lists, random)
    op = lists[rank].pop(at)
    lists[rank].insert(random.randint(0, len(lists[rank])), op)


def neighbours_change(lists: Lists, random: Random) -> None:
    rank, at = somewhere(lists, random)
    lists[rank][at : at + 2] = lists[rank][at : at + 2][::-1]


def receives_shuffled(lists: Lists, random: Random) -> None:
    """The receives of a rank change places with each other."""
    rank, _ = somewhere(lists, random)
    places = [i for i, op in enumerate(lists[rank]) if isinstance(op, Recv)]
    receives = [lists[rank][i] for i in places]
    for place, op in zip(places, random.sample(receives, len(receives)), strict=True):
        lists[rank][place] = op


def gone(lists: Lists, random: Random) -> None:
    rank, at = somewhere(lists, random)
    del lists[rank][at]


def message(lists: Lists, random: Random) -> tuple[Send, Callable[[Send | None], None]]:
    """One at both its ends, and how to change both, or leave both out for None."""
    sends = [
        (rank, at)
        for rank, operations in enumerate(lists)
        for at, op in enumerate(operations)
        if isinstance(op, Send)
    ]
    rank, at = random.choice(sends)
    op = lists[rank][at]
    assert isinstance(op, Send)
    k = sum(isinstance(o, Send) and o.peer == op.peer for o in lists[rank][:at])
    places = [i for i, o in enumerate(lists[op.peer]) if isinstance(o, Recv) and o.peer == rank]

    def change(new: Send | None) -> None:
        lists[rank][at : at + 1] = [new] if new else []
        lists[op.peer][places[k] : places[k] + 1] = [Recv(rank, new.blocks)] if new else []

    return op, change


def message_gone(lists: Lists, random: Random) -> None:
    _, leave = message(lists, random)
    leave(None)


def blocks_turned(lists: Lists, random: Random) -> None:
    """On both sides: that is as good."""
    op, change = message(lists, random)
    change(op._replace(blocks=op.blocks[::-1]))


def block_halved(lists: Lists, random: Random) -> None:
    """A block is told in two pieces, on both sides: that is as good, too."""
    op, change = message(lists, random)
    first, *rest = op.blocks
    cut = random.randint(0, first.length)
    after = Block(first.owner, first.offset + cut, first.length - cut)
    halves = first._replace(length=cut), after
    change(op._replace(blocks=(*halves, *rest)))


def block_left_out(lists: Lists, random: Random) -> None:
    op, change = message(lists, random)
    change(op._replace(blocks=op.blocks[1:]))


def block_twice(lists: Lists, random: Random) -> None:
    op, change = message(lists, random)
    change(op._replace(blocks=(*op.blocks, random.choice(op.blocks))))


def block_of_another(lists: Lists, random: Random) -> None:
    op, change = message(lists, random)
    first, *rest = op.blocks
    change(op._replace(blocks=(first._replace(owner=random.randrange(len(lists))), *rest)))


def byte_less(lists: Lists, random: Random) -> None:
    op, change = message(lists, random)
    *rest, last = op.blocks
    change(op._replace(blocks=(*rest, last._replace(length=last.length - 1))))


def message_twice(lists: Lists, random: Random) -> None:
    op, _ = message(lists, random)
    rank = random.choice([rank for rank in range(len(lists)) if rank != op.peer])
    lists[op.peer].append(Recv(rank, op.blocks))
    lists[rank].append(op)


def nothing(lists: Lists, random: Random) -> None:
    """As it was."""


MUTATIONS = (
    nothing,
    other_place,
    neighbours_change,
    receives_shuffled,
    gone,
    message_gone,
    blocks_turned,
    block_halved,
    block_left_out,
    block_twice,
    block_of_another,
    byte_less,
    message_twice,
)


def broken(algorithm: Algorithm, seed: int) -> tuple[str, Schedule]:
    random = Random(seed)
    p = random.randrange(2, 9)
    sources = random.sample(range(p), random.randint(1, p))
    lengths = [random.randint(1, 4) for _ in sources]
    valid = algorithm.schedule(p, lengths, sources=sources, **settings_of(algorithm, p))
    lists = [list(operations) for operations in valid.lists]
    mutation = MUTATIONS[seed % len(MUTATIONS)]
    mutation(lists, random)
    return mutation.__name__, replace(valid, program=Written(tuple(map(tuple, lists))))


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", algorithms_for("s_to_p"), ids=lambda a: a.name)
def test_the_verifier_and_the_judge_agree(algorithm: Algorithm) -> None:
    seen: dict[str, set[bool]] = {}
    for seed in range(SEEDS):
        name, schedule = broken(algorithm, seed)
        right = is_right(schedule.problem, schedule.lists)
        try:
            check_flow(schedule)
            refused = None
        except InvalidSchedule as error:
            refused = str(error)
        assert (refused is None) == right, (name, seed, refused)
        seen.setdefault(name, set()).add(right)
    assert seen["nothing"] == seen["blocks_turned"] == seen["block_halved"] == {True}
    for name in ("gone", "message_gone", "block_left_out", "block_twice", "byte_less"):
        assert seen[name] == {False}
    assert seen["message_twice"] == {False}
    assert False in seen["block_of_another"]


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", algorithms_for("s_to_p"), ids=lambda a: a.name)
def test_what_is_awaited_is_what_was_written_last(algorithm: Algorithm) -> None:
    """By intervals as byte by byte, in lists that are right and lists that are not."""
    for seed in range(SEEDS):
        _, schedule = broken(algorithm, seed)
        for operations, writers in zip(schedule.lists, schedule.dependencies, strict=True):
            written_by: dict[tuple[int, int], int] = {}  # a byte -> the receive that wrote it last
            received = 0
            for op, count in zip(operations, awaited_receives(operations, writers), strict=True):
                data = [(b.owner, byte) for b in op.blocks for byte in range(b.offset, b.end)]
                if isinstance(op, Send):
                    assert count == max((written_by.get(byte, 0) for byte in data), default=0)
                else:
                    received += 1
                    written_by |= dict.fromkeys(data, received)


def test_some_mutants_wait_for_ever() -> None:
    """All is there for the asking in their lists; but not in this order."""
    stuck = 0
    for seed in range(MUTATIONS.index(receives_shuffled), 90 * len(MUTATIONS), len(MUTATIONS)):
        _, schedule = broken(ALGORITHMS["s_to_p/xor"], seed)
        if never_waits_for_ever(schedule.problem, schedule.lists):
            check_flow(schedule)
            continue
        stuck += 1
        with pytest.raises(InvalidSchedule, match="it never completes") as caught:
            check_flow(schedule)
        assert caught.value.rank is not None
        assert caught.value.step is not None
    assert stuck > 3
