"""Checks which ranks' contributions each byte of a result combines, and in which order.

A value is an expression: one rank's contribution, or two values combined.  Equal expressions have
equal numbers, so ranks that end with equal numbers end with the same bits, whatever the operator
is.  The schedule is evaluated with these numbers in place of vector elements.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from collwise.schedule.evaluation import evaluate
from collwise.schedule.operations import Block, Copy, Operation, blocks_in
from collwise.schedule.problem import Problem, brackets, satisfies
from collwise.schedule.program import Schedule
from collwise.verifier.partition import Partition
from collwise.verifier.violations import Lists, reject, reject_output

_REMEDY = "combine every rank's contribution exactly once, in the order that was promised"


class _Value(NamedTuple):
    """The contributions in an expression.

    ranks: bit r is set if rank r contributed.   in_order: whether the contributions are combined
    in the order of the ranks.
    """

    ranks: int
    in_order: bool


class Expressions:
    """All expressions so far, by number; numbers below `ranks` are these ranks' contributions."""

    def __init__(self, ranks: int) -> None:
        self.values = [_Value(1 << rank, True) for rank in range(ranks)]
        self._numbers: dict[tuple[int, int], int] = {}

    @property
    def pairs(self) -> Iterable[tuple[int, int]]:
        """The operands (left, right) of all combined expressions, by ascending number."""
        return self._numbers

    def combine(self, left: int, right: int) -> int:
        """The number of the expression left ∘ right; −1 if both have a contribution in common."""
        if (known := self._numbers.get((left, right))) is not None:
            return known
        a, b = self.values[left], self.values[right]
        if a.ranks & b.ranks:
            return -1
        ordered = a.in_order and b.in_order and a.ranks.bit_length() <= _lowest(b.ranks)
        self._numbers[left, right] = number = len(self.values)
        self.values.append(_Value(a.ranks | b.ranks, ordered))
        return number


def _lowest(ranks: int) -> int:
    return (ranks & -ranks).bit_length() - 1


def check_contributions(lists: Lists, problem: Problem, partition: Partition) -> None:
    """Check that each piece of an output has every contribution once, in the promised order.

    Call this after `check_partners`, `check_holdings` and `check_progress`.  Raises
    InvalidSchedule.
    """
    expressions = Expressions(problem.ranks)
    everybody = (1 << problem.ranks) - 1
    first_rank: dict[int, int] = {}  # by piece, the first rank that has it in its output
    first_value: dict[int, int] = {}
    fixed = list(range(problem.ranks))  # the last one becomes the expression of this order
    for left, right in brackets(problem.ranks):
        fixed[right] = expressions.combine(fixed[left], fixed[right])
    for rank, outcome in enumerate(_evaluate(lists, problem, partition, expressions)):
        pieces = _piece_numbers(partition, problem.output_of(rank))
        for number, piece in zip(outcome, pieces, strict=True):
            value, block = expressions.values[number], partition.piece(piece)
            if missing := everybody & ~value.ranks:
                seen = f"the contribution of rank {_lowest(missing)} is missing"
                reject_output(rank, block, ", combined", seen, _REMEDY)
            if satisfies(problem.order, "rank") and not value.in_order:
                seen = "it is not combined in the order of the ranks"
                reject_output(rank, block, ", combined", seen, _REMEDY)
            if problem.order == "fixed" and number != fixed[-1]:
                seen = "it is combined with other brackets than those of the order 'fixed'"
                reject_output(rank, block, ", combined", seen, _REMEDY)
            other = first_rank.setdefault(piece, rank)
            if problem.order != "any" and first_value.setdefault(piece, number) != number:
                seen = f"it is combined in another order than on rank {other}"
                reject_output(rank, block, ", combined", seen, _REMEDY)


def expressions_of(schedule: Schedule) -> tuple[tuple[str, ...], ...]:
    """For each rank, the distinct expressions in its result, such as "((0 1) 2)".

    The schedule must be right: `check_flow` raises nothing.
    """
    lists, problem = schedule.lists, schedule.problem
    expressions = Expressions(problem.ranks)
    by_rank = _evaluate(lists, problem, Partition(lists, problem), expressions)
    texts = [str(rank) for rank in range(problem.ranks)]
    for left, right in expressions.pairs:
        texts.append(f"({texts[left]} {texts[right]})")
    return tuple(tuple(texts[number] for number in dict.fromkeys(here)) for here in by_rank)


def _evaluate(
    lists: Lists, problem: Problem, partition: Partition, expressions: Expressions
) -> list[list[int]]:
    """For each rank, its output's expression numbers by piece; rejects double contributions."""

    @cache
    def in_pieces(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        spans = [partition.span(block) for block in blocks]
        return tuple(Block(0, span.start, len(span)) for span in spans)

    def combine(rank: int, step: int, left: list[int], right: list[int]) -> list[int]:
        numbers = list(map(expressions.combine, left, right))
        if -1 in numbers:
            i = numbers.index(-1)
            one, other = (expressions.values[value].ranks for value in (left[i], right[i]))
            block = partition.piece(_piece_numbers(partition, lists[rank][step].blocks)[i])
            seen = f"rank {_lowest(one & other)}'s contribution is in both operands"
            reject(lists, rank, step, seen, "combine every contribution once", block)
        return numbers

    def numbered(op: Operation) -> Operation:
        blocks = in_pieces(op.blocks)
        if isinstance(op, Copy) and op.shift:
            there = in_pieces(blocks_in(op, op.into))
            return op._replace(blocks=blocks, shift=there[0].offset - blocks[0].offset)
        return op._replace(blocks=blocks)

    inputs = []
    for rank in range(problem.ranks):
        blocks = in_pieces(problem.input_of(rank))
        inputs.append((blocks, [rank] * sum(block.length for block in blocks)))
    return evaluate(
        [list(map(numbered, operations)) for operations in lists],
        problem.input_slot,
        inputs,
        [in_pieces(problem.output_of(rank)) for rank in range(problem.ranks)],
        combine,
        lambda length: [0] * length,
    )


def _piece_numbers(partition: Partition, blocks: Sequence[Block]) -> list[int]:
    """The numbers of all pieces of `blocks`, in the order of the blocks."""
    return [number for block in blocks for number in partition.span(block)]
