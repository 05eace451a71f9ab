"""Schedules of every algorithm, broken in every way: the verifier says what the judge says.

A mutant may be right by chance (an order that is as good, a copy that nobody reads): so what is
proved or refused is compared with what really comes out, byte by byte.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Any, TypeAlias

import pytest
from tests.algorithms.examples import fitting, settings_of
from tests.case import in_case
from tests.verifier.judge import Lists, is_right, schedule_of

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.algorithms.registry import algorithms_for
from collwise.errors import InvalidSchedule
from collwise.schedule.dependencies import awaited_receives
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    reads,
    scratch,
    writes,
)
from collwise.schedule.program import Schedule
from collwise.verifier import verify


class Mutant:
    """A valid schedule as lists that can be broken."""

    def __init__(self, algorithm: Algorithm, seed: int) -> None:
        self.random = random = Random(seed)
        p, item = random.randrange(2, 9), random.choice((1, 4))
        nbytes = fitting(algorithm, p, random.choice((1, 2, p, p + 3)) * item, item)
        settings = settings_of(
            algorithm, p, lam=random.choice((1, 2, 3)), segment=-(-nbytes // (3 * item)) * item
        )
        if algorithm.kind.has_sources:
            sources = random.sample(range(p), random.randint(1, p))
            lengths = [random.randint(1, 4) for _ in sources]
            valid = algorithm.schedule(p, lengths, sources=sources, **settings)
        else:
            root = random.randrange(p) if algorithm.kind.rooted else 0
            valid = algorithm.schedule(p, nbytes, root, itemsize=item, **settings)
        self.problem = valid.problem
        if algorithm.kind.combines and random.random() < 0.3:  # then more mutants are right
            self.problem = replace(valid.problem, order="any")
        self.lists: Lists = [list(operations) for operations in valid.lists]
        self.valid: Lists = [list(operations) for operations in valid.lists]
        self.posted = valid.program.needs_posted_receives
        verify(valid)

    def pick(self, *kinds: type[Operation]) -> tuple[int, int, Any]:
        """An operation of one of these types, by rank and step; IndexError if there is none."""
        places = [
            (rank, step, op)
            for rank, operations in enumerate(self.lists)
            for step, op in enumerate(operations)
            if isinstance(op, kinds or (Send, Recv, Combine, Copy))
        ]
        return self.random.choice(places)

    def slot(self) -> int:
        return self.random.choice((Slot.INPUT, Slot.OUTPUT, *map(scratch, range(4))))

    def rank(self, *others: int) -> int:
        """Any rank but some."""
        return self.random.choice([r for r in range(self.problem.ranks) if r not in others])

    def schedule(self) -> Schedule:
        return schedule_of(self.problem, self.lists, posted=self.posted)

    def suspects(self) -> set[int]:
        """The ranks whose lists are not as they were, and the peers of what is not."""
        suspects = set()
        for rank, lists in enumerate(zip(self.valid, self.lists, strict=True)):
            for before, now in zip_longest(*lists):
                if type(before) is not type(now) or before != now:
                    suspects |= {rank, *(getattr(op, "peer", rank) for op in (before, now))}
        return suspects


class Message:
    """A message of a mutant: its send and its receive, which can be replaced, or left out."""

    def __init__(self, m: Mutant) -> None:
        self.lists = m.lists
        self.a, self.i, _ = m.pick(Send)
        self.b = self.send.peer
        same = [o for o in m.lists[self.a][: self.i] if isinstance(o, Send) and o.peer == self.b]
        receives = [
            i for i, o in enumerate(m.lists[self.b]) if isinstance(o, Recv) and o.peer == self.a
        ]
        self.j = receives[len(same)]

    @property
    def send(self) -> Send:
        op = self.lists[self.a][self.i]
        assert isinstance(op, Send)
        return op

    @property
    def recv(self) -> Recv:
        op = self.lists[self.b][self.j]
        assert isinstance(op, Recv)
        return op

    def carries(self, blocks: tuple[Block, ...]) -> None:
        """It carries these blocks, at both ends."""
        self.lists[self.a][self.i] = self.send._replace(blocks=blocks)
        self.lists[self.b][self.j] = self.recv._replace(blocks=blocks)


# --- of any schedule ---


def nothing(m: Mutant) -> None:
    """It is as it was."""


def drop(m: Mutant) -> None:
    rank, step, _ = m.pick()
    del m.lists[rank][step]


def drop_message(m: Mutant) -> None:
    message = Message(m)
    del m.lists[message.a][message.i], m.lists[message.b][message.j]


def repeat(m: Mutant) -> None:
    rank, step, op = m.pick()
    m.lists[rank].insert(m.random.randrange(step, len(m.lists[rank])) + 1, op)


def repeat_message(m: Mutant) -> None:
    """Into another slot, or (which is refused) into the same one."""
    message = Message(m)
    m.lists[message.a].append(message.send)
    slot = m.random.choice((message.recv.slot, scratch(9)))
    m.lists[message.b].append(message.recv._replace(slot=slot))


def tell_again(m: Mutant) -> None:
    """Somebody else sends the same, once all is over: to its receiver, or to its owner."""
    message = Message(m)
    told = m.random.choice((message.b, message.recv.blocks[0].owner))
    teller = m.rank(told)
    m.lists[teller].append(message.send._replace(peer=told))
    m.lists[told].append(message.recv._replace(peer=teller))


def move(m: Mutant) -> None:
    rank, step, op = m.pick()
    del m.lists[rank][step]
    m.lists[rank].insert(m.random.randrange(len(m.lists[rank]) + 1), op)


def receives_shuffled(m: Mutant) -> None:
    """The receives of a rank change places with each other."""
    operations = m.lists[m.pick(Recv)[0]]
    places = [i for i, op in enumerate(operations) if isinstance(op, Recv)]
    receives = [operations[i] for i in places]
    for place, op in zip(places, m.random.sample(receives, len(receives)), strict=True):
        operations[place] = op


def other_slot(m: Mutant) -> None:
    rank, step, op = m.pick(Send, Recv)
    m.lists[rank][step] = op._replace(slot=m.slot())


def changed(m: Mutant, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    i = m.random.randrange(len(blocks))
    by = m.random.choice((-1, 1)) * m.random.choice((1, m.problem.itemsize))
    block = blocks[i]
    block = m.random.choice(
        (
            block._replace(offset=block.offset + by),
            block._replace(length=block.length + by),
            block._replace(offset=block.offset + by, length=block.length - by),
            block._replace(owner=(block.owner + 1) % m.problem.ranks),
        )
    )
    return (*blocks[:i], block, *blocks[i + 1 :])


def other_block(m: Mutant) -> None:
    rank, step, op = m.pick()
    m.lists[rank][step] = op._replace(blocks=changed(m, op.blocks))


def other_message(m: Mutant) -> None:
    """On both sides alike."""
    message = Message(m)
    message.carries(changed(m, message.send.blocks))


def blocks_turned(m: Mutant) -> None:
    """On both sides: that is as good."""
    message = Message(m)
    message.carries(message.send.blocks[::-1])


def blocks_turned_on_one_side(m: Mutant) -> None:
    message = Message(m)
    m.lists[message.a][message.i] = message.send._replace(blocks=message.send.blocks[::-1])


def block_halved(m: Mutant) -> None:
    """A block in two pieces, on both sides: that is as good, too, between elements."""
    message = Message(m)
    first, *rest = message.send.blocks
    cut = m.random.randint(0, first.length)
    after = Block(first.owner, first.offset + cut, first.length - cut)
    message.carries((first._replace(length=cut), after, *rest))


def block_left_out(m: Mutant) -> None:
    message = Message(m)
    message.carries(message.send.blocks[1:])


def block_twice(m: Mutant) -> None:
    message = Message(m)
    message.carries((*message.send.blocks, m.random.choice(message.send.blocks)))


def other_peer(m: Mutant) -> None:
    """Itself and what is no rank among them, but where the numbers of ranks go around."""
    rank, step, op = m.pick(Send, Recv)
    nobody = () if m.problem.root else (-1, m.problem.ranks, 10**9)
    peer = m.random.choice((*range(m.problem.ranks), *nobody))
    m.lists[rank][step] = op._replace(peer=peer)


def other_target(m: Mutant) -> None:
    """A message goes to another rank, with its receive and all that is done there."""
    message = Message(m)
    target = m.rank(message.a, message.b)
    m.lists[message.a][message.i] = message.send._replace(peer=target)
    recv = m.lists[message.b].pop(message.j)
    m.lists[target].insert(m.random.randrange(len(m.lists[target]) + 1), recv)


def exchange_ranks(m: Mutant) -> None:
    """Two ranks change places: what was in rank order no longer is."""
    a, b = m.random.sample(range(m.problem.ranks), 2)
    swap = {a: b, b: a}
    for rank, ops in enumerate(m.lists):
        m.lists[rank] = [
            op._replace(peer=swap.get(op.peer, op.peer)) if isinstance(op, Send | Recv) else op
            for op in ops
        ]
    m.lists[a], m.lists[b] = m.lists[b], m.lists[a]


def copy_aside(m: Mutant) -> None:
    """What is sent is copied first, and sent from there."""
    rank, step, op = m.pick(Send)
    aside = m.random.choice((scratch(20), m.slot()))
    m.lists[rank][step : step + 1] = [Copy(op.slot, aside, op.blocks), op._replace(slot=aside)]


# --- of schedules that combine ---


def combine_again(m: Mutant) -> None:
    """One of the operands once more, from the result."""
    rank, step, op = m.pick(Combine)
    m.lists[rank].insert(step + 1, Combine(op.left, op.into, op.into, op.blocks))


def swap_operands(m: Mutant) -> None:
    rank, step, op = m.pick(Combine)
    m.lists[rank][step] = op._replace(left=op.right, right=op.left)


def other_operand(m: Mutant) -> None:
    rank, step, op = m.pick(Combine)
    m.lists[rank][step] = op._replace(**{m.random.choice(("left", "right")): m.slot()})


def other_result(m: Mutant) -> None:
    rank, step, op = m.pick(Combine, Copy)
    m.lists[rank][step] = op._replace(into=m.slot())


def other_scratch(m: Mutant) -> None:
    """One slot is another everywhere on a rank: right, unless that one was in use."""
    rank, _, op = m.pick(Combine)
    names = {op.right: m.slot()}
    for step, other in enumerate(m.lists[rank]):
        slots = {"slot", "left", "right", "source", "into"}.intersection(other._fields)
        named = {slot: getattr(other, slot) for slot in slots}
        m.lists[rank][step] = other._replace(**{s: names.get(n, n) for s, n in named.items()})


def copy_not_combine(m: Mutant) -> None:
    rank, step, op = m.pick(Combine)
    m.lists[rank][step] = Copy(m.random.choice((op.left, op.right)), op.into, op.blocks)


def combine_not_copy(m: Mutant) -> None:
    rank, step, op = m.pick(Copy, Combine)
    m.lists[rank][step] = Combine(m.slot(), reads(op)[-1], writes(op) or 0, op.blocks)


def cut_in_two(m: Mutant) -> None:
    """The blocks of a combine or a copy, in two operations: right, if between elements."""
    rank, step, op = m.pick(Combine, Copy)
    block = op.blocks[0]
    at = m.random.randrange(block.length)
    first, after = (
        block._replace(length=at),
        Block(block.owner, block.offset + at, block.length - at),
    )
    m.lists[rank][step : step + 1] = [
        op._replace(blocks=(first,)),
        op._replace(blocks=(after, *op.blocks[1:])),
    ][at == 0 :]


Mutation: TypeAlias = Callable[[Mutant], None]
ALWAYS_RIGHT: tuple[Mutation, ...] = (nothing, blocks_turned)
NEVER_RIGHT: tuple[Mutation, ...] = (
    drop, drop_message, other_block, block_left_out, other_target, combine_again, copy_not_combine,
)  # fmt: skip
OFTEN_WRONG: tuple[Mutation, ...] = (
    repeat, repeat_message, tell_again, move, receives_shuffled, other_slot, other_message,
    blocks_turned_on_one_side, block_halved, block_twice, other_peer, exchange_ranks, copy_aside,
    swap_operands, other_operand, other_result, other_scratch, combine_not_copy, cut_in_two,
)  # fmt: skip
MUTATIONS: tuple[Mutation, ...] = (*ALWAYS_RIGHT, *NEVER_RIGHT, *OFTEN_WRONG)


def judged(algorithm: Algorithm, mutation: Mutation, seed: int) -> str | None:
    """Why a mutant is refused (nothing if it is right), if the judge agrees; None for no mutant."""
    mutant = Mutant(algorithm, seed)
    try:
        mutation(mutant)
    except (IndexError, ValueError):  # nothing of the kind is there
        return None
    if is_right(mutant.problem, mutant.lists, posted=mutant.posted):
        verify(mutant.schedule())
        return ""
    with pytest.raises(InvalidSchedule) as caught:
        verify(mutant.schedule())
    error = caught.value
    assert error.rank is not None
    assert error.asked.startswith(f"rank {error.rank}, ")
    assert error.step is not None or "at the end" in error.asked
    assert error.seen
    assert error.remedy
    stuck = "it never completes" in error.seen
    if not (stuck or algorithm.kind.combines):  # there, far away contributions are missing
        assert error.rank in mutant.suspects(), error
    return error.seen


def check(algorithm: Algorithm, mutation: Mutation, seeds: range) -> None:
    for seed in seeds:
        with in_case(algorithm.name, mutation.__name__, seed):
            refused = judged(algorithm, mutation, 1000 * MUTATIONS.index(mutation) + seed)
            assert not (refused and mutation in ALWAYS_RIGHT)
            assert refused != "" or mutation not in NEVER_RIGHT


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
def test_every_mutant_is_found_or_right(algorithm: Algorithm) -> None:
    """Algorithms take turns: each is broken in a third of the ways."""
    for mutation in MUTATIONS[[*ALGORITHMS].index(algorithm.name) % 3 :: 3]:
        check(algorithm, mutation, range(1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda a: a.name)
def test_many_mutants(algorithm: Algorithm) -> None:
    for mutation in MUTATIONS:
        check(algorithm, mutation, range(300))


@pytest.mark.no_cover
@pytest.mark.parametrize("mutation", [*NEVER_RIGHT, *OFTEN_WRONG], ids=lambda f: f.__name__)
def test_every_mutation_breaks_something(mutation: Mutation) -> None:
    among = algorithms_for("allreduce")
    verdicts = (judged(a, mutation, seed) for seed in range(3) for a in among)
    assert any(verdicts)


@pytest.mark.no_cover
def test_some_mutants_wait_for_ever() -> None:
    """All is there for the asking in their lists; but not in this order."""
    algorithm = ALGORITHMS["allgatherv/xor"]
    refused = [judged(algorithm, receives_shuffled, seed) or "" for seed in range(40)]
    assert sum(text.startswith("it never completes") for text in refused) > 3


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", algorithms_for("allgatherv"), ids=lambda a: a.name)
def test_what_is_awaited_is_what_was_written_last(algorithm: Algorithm) -> None:
    """By intervals as byte by byte, in lists that are right and lists that are not."""
    for seed, mutation in enumerate((nothing, move, receives_shuffled, block_twice)):
        mutant = Mutant(algorithm, seed)
        mutation(mutant)
        schedule = mutant.schedule()
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
