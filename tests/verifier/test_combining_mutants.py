"""Reduces and allreduces, broken in every way: the verifier against a twin that moves every byte.

A mutant may be right by chance (an order that is as good, a copy that nobody reads): so what is
proved or refused is compared with what really comes out, symbol by symbol.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
from tests.algorithms.examples import fitting, settings_of
from tests.verifier.rejected import Posted

from collwise.algorithms import ALGORITHMS, Algorithm
from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    clobbers,
    reads,
    scratch,
    size_of,
    writes,
)
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal
from collwise.verifier import check_flow

HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10", gamma_s="1/7")
POSTAL = Machine.postal(t0_s=1, lam=2)
Lists: TypeAlias = list[list[Operation]]
Symbol: TypeAlias = Any
"""What is in a byte: a rank's contribution, or a pair of symbols combined."""


# --- the twin ---


class Wrong(Exception):
    pass


class Letter(NamedTuple):
    """A byte of a message: of the k-th from one rank to another, the i-th byte."""

    source: int
    target: int
    k: int
    i: int


class Twin:
    """All ranks, every byte by itself: (slot, offset) -> symbol.

    Lists are walked in order; what is received is a letter, opened when all has been sent.
    """

    def __init__(self, problem: Problem, lists: Lists) -> None:
        self.problem, self.lists = problem, lists
        size = range(problem.nbytes)
        self.memory: list[dict[tuple[int, int], Symbol]] = [
            {(int(Slot.INPUT), i): rank for i in size} for rank in range(problem.ranks)
        ]
        self.touched: list[set[tuple[int, int]]] = [set(m) for m in self.memory]
        self.sent: dict[tuple[int, int], list[tuple[Operation, list[Symbol]]]] = {}
        self.received: dict[tuple[int, int], list[Operation]] = {}
        self.pairs: list[Symbol] = []
        self.opened: dict[Letter, Symbol] = {}

    def owed(self, rank: int, i: int) -> bool:
        """Whether a rank must end with byte i of the result."""
        if self.problem.collective == "reduce_scatter_block":
            return i * self.problem.ranks // self.problem.nbytes == rank
        return self.problem.collective == "allreduce" or rank == self.problem.root

    def run(self) -> None:
        """To the end; raises Wrong."""
        for rank, operations in enumerate(self.lists):
            for op in operations:
                self.act(rank, op)
        for pair in {*self.sent, *self.received}:
            sends = [op.blocks for op, _ in self.sent.get(pair, [])]
            if sends != [op.blocks for op in self.received.get(pair, [])]:
                raise Wrong("other messages")
        for left, right in self.pairs:
            if set(contributors(self.open(left))) & set(contributors(self.open(right))):
                raise Wrong("twice")
        self.check_end()

    def cells(self, op: Operation, slot: int) -> list[tuple[int, int]]:
        shift = op.shift if isinstance(op, Copy) and slot == op.into else 0
        return [(slot, i + shift) for b in op.blocks for i in range(b.offset, b.end)]

    def act(self, rank: int, op: Operation) -> None:
        memory = self.memory[rank]
        if isinstance(op, Recv):
            before = self.received.setdefault((op.peer, rank), [])
            letters = [Letter(op.peer, rank, len(before), i) for i in range(size_of(op))]
            before.append(op)
            self.write(rank, op, op.slot, letters)
            return
        operands = []
        for slot in reads(op):
            if any(cell not in memory for cell in self.cells(op, slot)):
                raise Wrong("nothing there to read")
            operands.append([memory[cell] for cell in self.cells(op, slot)])
        if isinstance(op, Send):
            self.sent.setdefault((rank, op.peer), []).append((op, operands[0]))
        elif isinstance(op, Combine):
            for slot in clobbers(op):
                for cell in self.cells(op, slot):
                    memory.pop(cell, None)
                    self.touched[rank].add(cell)
            pairs = list(zip(*operands, strict=True))
            self.pairs += pairs
            self.write(rank, op, op.into, pairs)
        else:
            self.write(rank, op, writes(op) or 0, operands[0])

    def write(self, rank: int, op: Operation, slot: int, symbols: Sequence[Symbol]) -> None:
        for cell, symbol in zip(self.cells(op, slot), symbols, strict=True):
            if isinstance(op, Recv) and cell in self.touched[rank]:
                raise Wrong("received where something was")
            if not 0 <= cell[1] < (self.problem.nbytes if slot < Slot.SCRATCH else sys.maxsize):
                raise Wrong("no such byte")
            if slot == Slot.INPUT or (slot == Slot.OUTPUT and not self.owed(rank, cell[1])):
                raise Wrong("not to be written")
            self.memory[rank][cell] = symbol
            self.touched[rank].add(cell)

    def open(self, symbol: Symbol) -> Symbol:
        """The symbol without letters; raises Wrong if a letter comes of itself."""
        if isinstance(symbol, Letter):
            if symbol not in self.opened:
                self.opened[symbol] = Wrong
                sent = self.sent[symbol.source, symbol.target][symbol.k][1][symbol.i]
                self.opened[symbol] = self.open(sent)
            if self.opened[symbol] is Wrong:
                raise Wrong("it comes of itself")
            return self.opened[symbol]
        if isinstance(symbol, tuple):
            return tuple(map(self.open, symbol))
        return symbol

    def check_end(self) -> None:
        everybody = list(range(self.problem.ranks))
        for i in range(self.problem.nbytes):
            ends = []
            for rank in everybody:
                if self.owed(rank, i):
                    if (cell := (int(Slot.OUTPUT), i)) not in self.memory[rank]:
                        raise Wrong("no result")
                    ends.append(self.open(self.memory[rank][cell]))
            for end in ends:
                found = contributors(end)
                if sorted(found) != everybody:
                    raise Wrong("not all contributions")
                if self.problem.order == "rank" and found != everybody:
                    raise Wrong("another order")
            if self.problem.order != "any" and any(end != ends[0] for end in ends):
                raise Wrong("not the same")


def contributors(symbol: Symbol) -> list[int]:
    """From left to right."""
    if isinstance(symbol, int):
        return [symbol]
    return contributors(symbol[0]) + contributors(symbol[1])


def makes_sense(problem: Problem, lists: Lists) -> bool:
    """What can be said of each operation by itself."""
    for rank, operations in enumerate(lists):
        for op in operations:
            item = problem.itemsize
            if size_of(op) == 0 or any(b.length < 0 for b in op.blocks):
                return False
            if any(
                b.offset % item or b.length % item or b.owner != problem.root for b in op.blocks
            ):
                return False
            if isinstance(op, Send | Recv) and not (
                0 <= op.peer < problem.ranks and op.peer != rank
            ):
                return False
            if Slot.INPUT in clobbers(op):
                return False
            if (
                isinstance(op, Copy)
                and op.shift
                and (op.shift % item or len(op.blocks) > 1 or op.source == op.into)
            ):
                return False
            if isinstance(op, Combine) and (
                op.left == op.right or (op.left == op.into and op.right < Slot.SCRATCH)
            ):
                return False
    return True


def is_right(problem: Problem, lists: Lists, *, posted: bool = False) -> bool:
    """By playing it; and whether blocking sends come through, by the timing engine.

    posted: whether they need not.
    """
    if not makes_sense(problem, lists):
        return False
    try:
        Twin(problem, lists).run()
        ideal(written(problem, lists), POSTAL if posted else HOCKNEY)
    except (Wrong, InvalidSchedule):
        return False
    return True


def written(problem: Problem, lists: Lists, *, posted: bool = False) -> Schedule:
    """The schedule of lists that name the user's ranks."""
    p, root = problem.ranks, problem.root

    def virtual(op: Operation) -> Operation:
        blocks = tuple(b._replace(owner=(b.owner - root) % p) for b in op.blocks)
        if isinstance(op, Send | Recv):
            return op._replace(peer=(op.peer - root) % p, blocks=blocks)
        return op._replace(blocks=blocks)

    turned = (tuple(map(virtual, lists[(v + root) % p])) for v in range(p))
    return Schedule(problem, (Posted if posted else Written)(tuple(turned)))


# --- mutations of any list ---


class Mutant:
    """A valid schedule as lists that can be broken."""

    def __init__(self, algorithm: Algorithm, seed: int) -> None:
        self.random = random = Random(seed)
        p = random.randrange(2, 9)
        item = random.choice((1, 4))
        root = random.randrange(p) if algorithm.collective == "reduce" else 0
        count = random.choice((1, 2, p, p + 3))
        settings = settings_of(algorithm, p, lam=random.choice((1, 2, 3)))
        nbytes = fitting(algorithm, p, count * item, item)
        valid = algorithm.schedule(p, nbytes, root, itemsize=item, **settings)
        self.problem = valid.problem
        if random.random() < 0.3:  # with less promised, more mutants are right
            self.problem = replace(valid.problem, order="any")
        self.lists: Lists = [list(ops) for ops in valid.lists]
        self.posted = valid.program.needs_posted_receives
        assert is_right(self.problem, self.lists, posted=self.posted)
        check_flow(valid)

    def pick(self, *kinds: type[Operation]) -> tuple[int, int]:
        """An operation of one of these types; raises IndexError if there is none."""
        places = [
            (rank, step)
            for rank, ops in enumerate(self.lists)
            for step, op in enumerate(ops)
            if isinstance(op, kinds or (Send, Recv, Combine, Copy))
        ]
        return self.random.choice(places)

    def slot(self) -> int:
        return self.random.choice((Slot.INPUT, Slot.OUTPUT, *map(scratch, range(4))))

    def partners(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """A send and its receive."""
        a, step = self.pick(Send)
        op = self.lists[a][step]
        assert isinstance(op, Send)
        same = [o for o in self.lists[a][:step] if isinstance(o, Send) and o.peer == op.peer]
        receives = [
            i for i, o in enumerate(self.lists[op.peer]) if isinstance(o, Recv) and o.peer == a
        ]
        return (a, step), (op.peer, receives[len(same)])


def drop(m: Mutant) -> None:
    rank, step = m.pick()
    del m.lists[rank][step]


def drop_message(m: Mutant) -> None:
    (a, i), (b, j) = m.partners()
    del m.lists[a][i], m.lists[b][j]


def repeat(m: Mutant) -> None:
    rank, step = m.pick()
    m.lists[rank].insert(m.random.randrange(step, len(m.lists[rank])) + 1, m.lists[rank][step])


def repeat_message(m: Mutant) -> None:
    """Into another slot, or (which is refused) into the same one."""
    (a, i), (b, j) = m.partners()
    send, recv = m.lists[a][i], m.lists[b][j]
    assert isinstance(recv, Recv)
    m.lists[a].append(send)
    m.lists[b].append(recv._replace(slot=m.random.choice((recv.slot, scratch(9)))))


def combine_again(m: Mutant) -> None:
    """One of the operands once more, from the result."""
    rank, step = m.pick(Combine)
    op = m.lists[rank][step]
    assert isinstance(op, Combine)
    m.lists[rank].insert(step + 1, Combine(op.left, op.into, op.into, op.blocks))


def swap_neighbours(m: Mutant) -> None:
    rank = m.random.choice([r for r, ops in enumerate(m.lists) if len(ops) > 1])
    step = m.random.randrange(len(m.lists[rank]) - 1)
    ops = m.lists[rank]
    ops[step], ops[step + 1] = ops[step + 1], ops[step]


def move(m: Mutant) -> None:
    rank, step = m.pick()
    op = m.lists[rank].pop(step)
    m.lists[rank].insert(m.random.randrange(len(m.lists[rank]) + 1), op)


def send_first(m: Mutant) -> None:
    """A send before the combine or the receipt that makes what it sends."""
    rank, step = m.pick(Send)
    op = m.lists[rank].pop(step)
    m.lists[rank].insert(m.random.randrange(step + 1), op)


def swap_operands(m: Mutant) -> None:
    rank, step = m.pick(Combine)
    op = m.lists[rank][step]
    assert isinstance(op, Combine)
    m.lists[rank][step] = op._replace(left=op.right, right=op.left)


def other_operand(m: Mutant) -> None:
    rank, step = m.pick(Combine)
    op = m.lists[rank][step]
    assert isinstance(op, Combine)
    slot = m.slot()
    m.lists[rank][step] = m.random.choice((op._replace(left=slot), op._replace(right=slot)))


def other_result(m: Mutant) -> None:
    rank, step = m.pick(Combine, Copy)
    op = m.lists[rank][step]
    assert isinstance(op, Combine | Copy)
    m.lists[rank][step] = op._replace(into=m.slot())


def other_slot(m: Mutant) -> None:
    rank, step = m.pick(Send, Recv)
    op = m.lists[rank][step]
    assert isinstance(op, Send | Recv)
    m.lists[rank][step] = op._replace(slot=m.slot())


def other_scratch(m: Mutant) -> None:
    """One slot is another everywhere on a rank: right, unless that one was in use."""
    rank, step = m.pick(Combine)
    op = m.lists[rank][step]
    assert isinstance(op, Combine)
    old, new = op.right, m.slot()

    def name(slot: int) -> int:
        return new if slot == old else slot

    renamed: list[Operation] = []
    for other in m.lists[rank]:
        match other:
            case Combine(left, right, into, blocks):
                renamed.append(Combine(name(left), name(right), name(into), blocks))
            case Copy(source, into, blocks):
                renamed.append(Copy(name(source), name(into), blocks))
            case _:
                renamed.append(other._replace(slot=name(other.slot)))
    m.lists[rank] = renamed


def copy_not_combine(m: Mutant) -> None:
    rank, step = m.pick(Combine)
    op = m.lists[rank][step]
    assert isinstance(op, Combine)
    m.lists[rank][step] = Copy(m.random.choice((op.left, op.right)), op.into, op.blocks)


def combine_not_copy(m: Mutant) -> None:
    rank, step = m.pick(Copy, Combine)
    op = m.lists[rank][step]
    m.lists[rank][step] = Combine(m.slot(), reads(op)[-1], writes(op) or 0, op.blocks)


def copy_aside(m: Mutant) -> None:
    """What is sent is copied first, and sent from there: right."""
    rank, step = m.pick(Send)
    op = m.lists[rank][step]
    assert isinstance(op, Send)
    aside = m.random.choice((scratch(20), m.slot()))
    m.lists[rank][step : step + 1] = [Copy(op.slot, aside, op.blocks), op._replace(slot=aside)]


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
    rank, step = m.pick()
    op = m.lists[rank][step]
    m.lists[rank][step] = op._replace(blocks=changed(m, op.blocks))


def other_message(m: Mutant) -> None:
    """On both sides alike."""
    (a, i), (b, j) = m.partners()
    blocks = changed(m, m.lists[a][i].blocks)
    m.lists[a][i] = m.lists[a][i]._replace(blocks=blocks)
    m.lists[b][j] = m.lists[b][j]._replace(blocks=blocks)


def cut_in_two(m: Mutant) -> None:
    """The blocks of a combine or a copy, in two operations: right, if between elements."""
    rank, step = m.pick(Combine, Copy)
    op = m.lists[rank][step]
    block = op.blocks[0]
    at = m.random.randrange(block.length)
    one, two = block._replace(length=at), Block(block.owner, block.offset + at, block.length - at)
    m.lists[rank][step : step + 1] = [
        op._replace(blocks=(one,)),
        op._replace(blocks=(two, *op.blocks[1:])),
    ][at == 0 :]


def other_peer(m: Mutant) -> None:
    rank, step = m.pick(Send, Recv)
    op = m.lists[rank][step]
    assert isinstance(op, Send | Recv)
    m.lists[rank][step] = op._replace(peer=m.random.randrange(m.problem.ranks))


def other_target(m: Mutant) -> None:
    """A message goes to another rank, with its receive and all that is done there."""
    (a, i), (b, j) = m.partners()
    c = m.random.choice([r for r in range(m.problem.ranks) if r not in (a, b)])
    send, recv = m.lists[a][i], m.lists[b].pop(j)
    assert isinstance(send, Send)
    m.lists[a][i] = send._replace(peer=c)
    m.lists[c].insert(m.random.randrange(len(m.lists[c]) + 1), recv)


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


Mutation: TypeAlias = Callable[[Mutant], None]
MUTATIONS: tuple[Mutation, ...] = (
    drop,
    drop_message,
    repeat,
    repeat_message,
    combine_again,
    swap_neighbours,
    move,
    send_first,
    swap_operands,
    other_operand,
    other_result,
    other_slot,
    other_scratch,
    copy_not_combine,
    combine_not_copy,
    copy_aside,
    other_block,
    other_message,
    cut_in_two,
    other_peer,
    other_target,
    exchange_ranks,
)
MAY_BE_RIGHT = {
    repeat,
    repeat_message,
    swap_neighbours,
    move,
    send_first,
    swap_operands,
    other_operand,
    other_result,
    other_slot,
    other_scratch,
    combine_not_copy,
    copy_aside,
    other_message,
    cut_in_two,
    other_peer,
    exchange_ranks,
}
"""Those of which some are as right as what they were made of."""
COMBINE = [a for a in ALGORITHMS.values() if a.kind.combines]


def judged(algorithm: Algorithm, mutation: Mutation, seed: int) -> bool | None:
    """Whether the mutant is right, by twin and verifier alike; None if there is none."""
    mutant = Mutant(algorithm, seed)
    try:
        mutation(mutant)
    except (IndexError, ValueError):  # nothing of the kind is there
        return None
    expected = is_right(mutant.problem, mutant.lists, posted=mutant.posted)
    error = refusal(written(mutant.problem, mutant.lists, posted=mutant.posted))
    assert (error is None) == expected, f"{algorithm.name}, {mutation.__name__}, {seed}: {error}"
    if error is not None:
        assert error.rank is not None
        assert error.asked.startswith(f"rank {error.rank}, ")
        assert error.step is not None or "at the end" in error.asked
        assert error.seen
        assert error.remedy
    return expected


def refusal(schedule: Schedule) -> InvalidSchedule | None:
    try:
        check_flow(schedule)
    except InvalidSchedule as error:
        return error
    return None


@cache
def a_mutant(name: str, mutation: Mutation, seed: int = 0) -> bool | None:
    return judged(ALGORITHMS[name], mutation, 100 * MUTATIONS.index(mutation) + seed)


@pytest.mark.no_cover
@pytest.mark.parametrize("algorithm", COMBINE, ids=lambda a: a.name)
def test_every_mutant_is_found_or_right(algorithm: Algorithm) -> None:
    for mutation in MUTATIONS:
        verdict = a_mutant(algorithm.name, mutation)
        assert verdict is not True or mutation in MAY_BE_RIGHT, mutation.__name__


@pytest.mark.no_cover
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda f: f.__name__)
def test_every_mutation_breaks_something(mutation: Mutation) -> None:
    mutants = (a_mutant(a.name, mutation, seed) for seed in range(3) for a in COMBINE)
    assert False in mutants


@pytest.mark.exhaustive
@pytest.mark.parametrize("algorithm", COMBINE, ids=lambda a: a.name)
def test_many_mutants(algorithm: Algorithm) -> None:
    for number, mutation in enumerate(MUTATIONS):
        for seed in range(300):
            judged(algorithm, mutation, 1000 * number + seed)
