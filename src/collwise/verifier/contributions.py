"""Contributions: what every combined piece is made of, told from the lists alone.

A value is an expression: one rank's contribution, or two values combined.  Equal expressions have
one number, so ranks that end with the same number end with the same bits, whatever the operator.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidSchedule
from collwise.schedule.operations import Block, Combine, Recv, Send, Slot, reads, writes
from collwise.schedule.problem import Problem
from collwise.verifier.partition import Partition
from collwise.verifier.postconditions import Postcondition
from collwise.verifier.wording import Lists, told_blocks, wrong

_Numbers: TypeAlias = NDArray[np.int64]
_GIVEN = -1


class _Value(NamedTuple):
    """An expression: whose contributions it has, and whether in the order of the ranks."""

    ranks: int
    in_order: bool


class Expressions:
    """All values, numbered; the first are the contributions as they were given."""

    def __init__(self, ranks: int) -> None:
        self.values = [_Value(1 << rank, True) for rank in range(ranks)]
        self._numbers: dict[tuple[int, int], int] = {}

    def combine(self, left: int, right: int) -> int | None:
        """The number of left ∘ right; None if they have a contribution in common."""
        if (known := self._numbers.get((left, right))) is not None:
            return known
        a, b = self.values[left], self.values[right]
        if a.ranks & b.ranks:
            return None
        ordered = a.in_order and b.in_order and a.ranks.bit_length() <= _lowest(b.ranks)
        self._numbers[left, right] = number = len(self.values)
        self.values.append(_Value(a.ranks | b.ranks, ordered))
        return number


def _lowest(ranks: int) -> int:
    return (ranks & -ranks).bit_length() - 1


class _Step(NamedTuple):
    """An operation: its pieces, and for each slot that it reads, who wrote them."""

    pieces: _Numbers
    writers: tuple[_Numbers, ...]


def check_contributions(
    lists: Lists, problem: Problem, promises: Sequence[Postcondition], atlas: Partition
) -> None:
    """Every owed piece has every rank's contribution exactly once, in the order promised.

    Presumes partners, holdings and progress to be proved.  Raises InvalidSchedule.
    """
    expressions = Expressions(len(lists))
    every_owed = [_numbers(atlas, [block for _, block in promise.owed]) for promise in promises]
    ends = _evaluate(lists, atlas, every_owed, expressions)
    everybody = (1 << len(lists)) - 1
    first_rank, first_value = np.full((2, len(atlas)), -1)  # by piece: who is owed it, and has what
    for rank, (owed, end) in enumerate(zip(every_owed, ends, strict=True)):
        for number, piece in zip(end.tolist(), owed.tolist(), strict=True):
            value = expressions.values[number]
            if missing := everybody & ~value.ranks:
                seen = f"the contribution of rank {_lowest(missing)} is missing"
                _amiss(rank, atlas.piece(piece), seen)
            if problem.order == "rank" and not value.in_order:
                _amiss(rank, atlas.piece(piece), "it is not combined in the order of the ranks")
        new = first_rank[owed] < 0
        first_rank[owed[new]], first_value[owed[new]] = rank, end[new]
        different = np.flatnonzero(end != first_value[owed])
        if problem.order != "any" and len(different):
            piece = int(owed[different[0]])
            seen = f"it is combined in another order than on rank {first_rank[piece]}"
            _amiss(rank, atlas.piece(piece), seen)


def _amiss(rank: int, block: Block, seen: str) -> None:
    raise InvalidSchedule(
        f"rank {rank}, at the end: {told_blocks([block])}, combined",
        seen,
        "combine every rank's contribution exactly once, in the order that was promised",
        rank=rank,
        block=block,
    )


def _numbers(atlas: Partition, blocks: Sequence[Block]) -> _Numbers:
    """The pieces of blocks, in the order of the blocks."""
    spans = [atlas.span(block) for block in blocks]
    if len(spans) == 1:
        return np.arange(spans[0].start, spans[0].stop)
    return np.concatenate([np.arange(s.start, s.stop) for s in spans] or [np.arange(0)])


def _evaluate(
    lists: Lists, atlas: Partition, owed: Sequence[_Numbers], expressions: Expressions
) -> list[_Numbers]:
    """The numbers of the pieces of its output that each rank is owed."""
    values = [_Values(rank, lists, atlas) for rank in range(len(lists))]
    matching = _matching(lists)
    awake = deque((rank, step) for rank, ops in enumerate(lists) for step in range(len(ops)))
    while awake:
        rank, step = awake.popleft()
        here, op = values[rank], lists[rank][step]
        if step in here.found or (isinstance(op, Recv)):
            continue
        operands = here.operands(step)
        if operands is None:
            here.waiting.append(step)
            continue
        if isinstance(op, Send):
            here.found[step] = operands[0]
            target, at_target = matching[rank, step]
            values[target].found[at_target] = operands[0]
            rank, here = target, values[target]
        elif isinstance(op, Combine):
            here.found[step] = _combined(lists, rank, step, operands, expressions, atlas)
        else:
            here.found[step] = operands[0]
        awake.extend((rank, waiting) for waiting in here.waiting)
        here.waiting.clear()
    return [here.end(pieces) for here, pieces in zip(values, owed, strict=True)]


def _combined(
    lists: Lists,
    rank: int,
    step: int,
    operands: Sequence[_Numbers],
    expressions: Expressions,
    atlas: Partition,
) -> _Numbers:
    made = np.empty(len(operands[0]), dtype=np.int64)
    for i, (left, right) in enumerate(zip(*(o.tolist() for o in operands), strict=True)):
        number = expressions.combine(left, right)
        if number is None:
            both = expressions.values[left].ranks & expressions.values[right].ranks
            block = atlas.piece(int(_numbers(atlas, lists[rank][step].blocks)[i]))
            seen = f"rank {_lowest(both)}'s contribution is in both operands"
            wrong(lists, rank, step, seen, "combine every contribution once", block)
        made[i] = number
    return made


class _Values:
    """One rank's values, by the step that made them."""

    def __init__(self, rank: int, lists: Lists, atlas: Partition) -> None:
        self.rank = rank
        self.found: dict[int, _Numbers] = {}
        self.waiting: list[int] = []
        self.place = np.zeros((len(lists[rank]), len(atlas)), dtype=np.int32)
        """Where in a step's values a piece is."""
        self.steps: list[_Step] = []
        latest: dict[int, _Numbers] = {}
        nobody = np.full(len(atlas), _GIVEN)
        for step, op in enumerate(lists[rank]):
            pieces = _numbers(atlas, op.blocks)
            self.steps.append(
                _Step(pieces, tuple(latest.get(slot, nobody)[pieces] for slot in reads(op)))
            )
            if (into := writes(op)) is not None:
                latest.setdefault(into, nobody.copy())[pieces] = step
                self.place[step, pieces] = np.arange(len(pieces))
        self.output = latest.get(Slot.OUTPUT, nobody)

    def operands(self, step: int) -> list[_Numbers] | None:
        """What an operation reads; None if it is not there yet."""
        found = []
        for writers in self.steps[step].writers:
            values = self._gather(self.steps[step].pieces, writers)
            if values is None:
                return None
            found.append(values)
        return found

    def _gather(self, pieces: _Numbers, writers: _Numbers) -> _Numbers | None:
        values = np.full(len(pieces), self.rank)
        for writer in set(writers.tolist()) - {_GIVEN}:
            if writer not in self.found:
                return None
            chosen = writers == writer
            values[chosen] = self.found[writer][self.place[writer, pieces[chosen]]]
        return values

    def end(self, owed: _Numbers) -> _Numbers:
        """The values in the output (the rank's own contribution where nothing was written)."""
        values = self._gather(owed, self.output[owed])
        assert values is not None, "progress was proved before"
        return values


def _matching(lists: Lists) -> dict[tuple[int, int], tuple[int, int]]:
    """For every send (rank, step), the receive that gets it."""
    receives: dict[tuple[int, int], deque[int]] = {}
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, Recv):
                receives.setdefault((op.peer, rank), deque()).append(step)
    return {
        (rank, step): (op.peer, receives[rank, op.peer].popleft())
        for rank, operations in enumerate(lists)
        for step, op in enumerate(operations)
        if isinstance(op, Send)
    }
