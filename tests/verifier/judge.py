"""A judge of schedules that moves every byte, one by one: slow, and nothing like the verifier.

Lists name the user's ranks.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tests.verifier.rejected import Posted

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
    size_of,
    writes,
)
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal

HOCKNEY = Machine.hockney(alpha_s=1, beta_s="1/10", gamma_s="1/7")
POSTAL = Machine.postal(t0_s=1, lam=2)
LOGGP = Machine.loggp(L_s=10, o_s=2, g_s=3, G_s="1/2")
MACHINES = (POSTAL, HOCKNEY, LOGGP)
Lists: TypeAlias = list[list[Operation]]
Byte: TypeAlias = tuple[int, int]
"""Whose it is, and its offset."""
Symbol: TypeAlias = Any
"""What is in a byte: where it was at first (of a vector, whose), or a pair of symbols combined."""


def is_right(problem: Problem, lists: Lists, *, posted: bool = False) -> bool:
    """By moving it; and whether blocking sends come through, by the timing engine.

    posted: whether they need not.
    """
    if not all(
        makes_sense(problem, rank, op) for rank, operations in enumerate(lists) for op in operations
    ):
        return False
    try:
        _Mover(problem, lists).run()
        ideal(schedule_of(problem, lists), POSTAL if posted else HOCKNEY)
    except (_Wrong, InvalidSchedule):
        return False
    return True


def schedule_of(problem: Problem, lists: Lists, *, posted: bool = False) -> Schedule:
    """The schedule of lists that name the user's ranks."""
    p, root = problem.ranks, problem.root

    def virtual(op: Operation) -> Operation:
        blocks = tuple(b._replace(owner=(b.owner - root) % p) for b in op.blocks)
        if isinstance(op, Send | Recv):
            peer = (op.peer - root) % p if 0 <= op.peer < p else op.peer
            return op._replace(peer=peer, blocks=blocks)
        return op._replace(blocks=blocks)

    turned = (tuple(map(virtual, lists[(v + root) % p])) for v in range(p))
    return Schedule(problem, (Posted if posted else Written)(tuple(turned)))


def makes_sense(problem: Problem, rank: int, op: Operation) -> bool:
    """What can be said of an operation by itself."""
    item = problem.itemsize if problem.kind.combines else 1
    if size_of(op) == 0 or any(b.length < 0 for b in op.blocks):
        return False
    if any(b.offset % item or b.length % item for b in op.blocks):
        return False
    if isinstance(op, Send | Recv) and not (0 <= op.peer < problem.ranks and op.peer != rank):
        return False
    if isinstance(op, Copy) and op.shift:
        return not (op.shift % item or len(op.blocks) > 1 or op.source == op.into)
    if isinstance(op, Combine):
        return op.left != op.right and not (op.left == op.into and op.right < Slot.SCRATCH)
    return True


class _Wrong(Exception):
    pass


class _Letter(NamedTuple):
    """A byte of a message: of the k-th from one rank to another, the i-th byte."""

    source: int
    target: int
    k: int
    i: int


def _bytes(blocks: Iterable[Block], shift: int = 0) -> list[Byte]:
    return [(b.owner, i + shift) for b in blocks for i in range(b.offset, b.end)]


class _Mover:
    """All ranks, every byte by itself: (slot, byte) -> symbol.

    Lists are walked in order; what is received is a letter, opened when all has been sent.
    """

    def __init__(self, problem: Problem, lists: Lists) -> None:
        self.problem, self.lists = problem, lists
        ranks, slot = range(problem.ranks), int(problem.input_slot)
        self.memory: list[dict[tuple[int, Byte], Symbol]] = [
            {
                (slot, byte): rank if problem.kind.combines else byte
                for byte in _bytes(problem.input_of(rank))
            }
            for rank in ranks
        ]
        self.owed = [set(_bytes(problem.output_of(rank))) for rank in ranks]
        self.touched = [set(memory) for memory in self.memory]
        self.sent: dict[tuple[int, int], list[tuple[Operation, list[Symbol]]]] = {}
        self.received: dict[tuple[int, int], list[Operation]] = {}
        self.pairs: list[Symbol] = []
        self.opened: dict[_Letter, Symbol] = {}

    def run(self) -> None:
        """To the end; raises _Wrong."""
        for rank, operations in enumerate(self.lists):
            for op in operations:
                self.act(rank, op)
        for pair in {*self.sent, *self.received}:
            sends = [op.blocks for op, _ in self.sent.get(pair, [])]
            if sends != [op.blocks for op in self.received.get(pair, [])]:
                raise _Wrong("other messages")
        for left, right in self.pairs:
            if set(_contributors(self.open(left))) & set(_contributors(self.open(right))):
                raise _Wrong("twice")
        self.check_end()

    def act(self, rank: int, op: Operation) -> None:
        memory = self.memory[rank]
        if isinstance(op, Recv):
            before = self.received.setdefault((op.peer, rank), [])
            letters = [_Letter(op.peer, rank, len(before), i) for i in range(size_of(op))]
            before.append(op)
            self.write(rank, op, op.slot, letters)
            return
        operands = []
        for slot in reads(op):
            cells = [(slot, byte) for byte in _bytes(op.blocks)]
            if any(cell not in memory for cell in cells):
                raise _Wrong("nothing there to read")
            operands.append([memory[cell] for cell in cells])
        if isinstance(op, Send):
            self.sent.setdefault((rank, op.peer), []).append((op, operands[0]))
        elif isinstance(op, Combine):
            for cell in [(slot, byte) for slot in clobbers(op) for byte in _bytes(op.blocks)]:
                memory.pop(cell, None)
                self.touched[rank].add(cell)
            pairs = list(zip(*operands, strict=True))
            self.pairs += pairs
            self.write(rank, op, op.into, pairs)
        else:
            self.write(rank, op, writes(op) or 0, operands[0])

    def write(self, rank: int, op: Operation, slot: int, symbols: Sequence[Symbol]) -> None:
        there = _bytes(op.blocks, op.shift if isinstance(op, Copy) else 0)
        for byte, symbol in zip(there, symbols, strict=True):
            if isinstance(op, Recv) and (slot, byte) in self.touched[rank]:
                raise _Wrong("received where something was")
            if slot == Slot.INPUT or (slot == Slot.OUTPUT and byte not in self.owed[rank]):
                raise _Wrong("not to be written")
            if byte[1] < 0:
                raise _Wrong("no such byte")
            self.memory[rank][slot, byte] = symbol
            self.touched[rank].add((slot, byte))

    def open(self, symbol: Symbol) -> Symbol:
        """The symbol without letters; raises _Wrong if a letter comes of itself."""
        if isinstance(symbol, _Letter):
            if symbol not in self.opened:
                self.opened[symbol] = _Wrong
                sent = self.sent[symbol.source, symbol.target][symbol.k][1][symbol.i]
                self.opened[symbol] = self.open(sent)
            if self.opened[symbol] is _Wrong:
                raise _Wrong("it comes of itself")
            return self.opened[symbol]
        return tuple(map(self.open, symbol)) if isinstance(symbol, tuple) else symbol

    def check_end(self) -> None:
        ends: dict[Byte, Symbol] = {}
        for rank, byte in ((rank, byte) for rank, owed in enumerate(self.owed) for byte in owed):
            if (cell := (int(Slot.OUTPUT), byte)) not in self.memory[rank]:
                raise _Wrong("no result")
            end = self.open(self.memory[rank][cell])
            if not self.problem.kind.combines:
                if end != byte:
                    raise _Wrong("other data")
                continue
            everybody = list(range(self.problem.ranks))
            if sorted(_contributors(end)) != everybody:
                raise _Wrong("not all contributions")
            if self.problem.order in ("rank", "fixed") and _contributors(end) != everybody:
                raise _Wrong("another order")
            if self.problem.order == "fixed" and end != doubled(self.problem.ranks):
                raise _Wrong("other brackets")
            if self.problem.order != "any" and ends.setdefault(byte, end) != end:
                raise _Wrong("not the same")


def doubled(ranks: int) -> Symbol:
    """What recursive doubling computes: excess ranks join their neighbours first."""

    def halves(values: Sequence[Symbol]) -> Symbol:
        half = len(values) // 2
        return (halves(values[:half]), halves(values[half:])) if half else values[0]

    excess = ranks - max(1 << k for k in range(ranks.bit_length()))
    pairs = [(2 * number, 2 * number + 1) for number in range(excess)]
    return halves([*pairs, *range(2 * excess, ranks)])


def _contributors(symbol: Symbol) -> list[int]:
    """From left to right."""
    if isinstance(symbol, int):
        return [symbol]
    return _contributors(symbol[0]) + _contributors(symbol[1])
