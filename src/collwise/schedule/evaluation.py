"""The outputs that a schedule computes from given inputs.

The order of execution does not matter: every operation keeps its result, so nothing is overwritten.
Each element that an operation reads comes from the last earlier operation in the same rank's list
that wrote this element.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from collwise.errors import InvalidSchedule
from collwise.schedule.dependencies import Writers, matching
from collwise.schedule.operations import (
    Block,
    Combine,
    Operation,
    Recv,
    Send,
    blocks_in,
    reads,
    size_of,
    writes,
)

Values = TypeVar("Values", NDArray[Any], list[int])
"""An operand: its elements in order, as an array or as a list of integers."""
_INPUT = -1
"""Step number that stands for a rank's input."""


class _Part(NamedTuple):
    """From `position` on, an operand has the elements [begin, end) of the result of `step`."""

    position: int
    step: int
    begin: int
    end: int


def evaluate(
    lists: Sequence[Sequence[Operation]],
    input_slot: int,
    inputs: Sequence[tuple[tuple[Block, ...], Values]],
    outputs: Sequence[tuple[Block, ...]],
    combine: Callable[[int, int, Values, Values], Values],
    zeros: Callable[[int], Values],
) -> list[Values]:
    """For every rank, the final elements of the blocks `outputs` of its output slot, concatenated.

    lists: the operations of every rank.   inputs: per rank, its blocks in the input slot and their
    elements.  Offsets and lengths of blocks count elements.
    combine: maps (rank, step, left operand, right operand) to the combined elements.   zeros: maps
    n to n zeros, the value of elements that are neither input nor written.
    Raises InvalidSchedule if ranks wait for each other in a circle, or for a message nobody sends.
    """
    # The output is the operand of one more send at the end, whose target is no rank.
    extended = [list(operations) for operations in lists]
    for operations, blocks in zip(extended, outputs, strict=True):
        operations.append(Send(-1, blocks))
    parts = [
        _operands(operations, input_slot, blocks)
        for operations, (blocks, _) in zip(extended, inputs, strict=True)
    ]
    receives = matching(lists)
    results: list[list[Values]] = []
    for row, (_, values) in zip(lists, inputs, strict=True):
        results.append([values] * (len(row) + 2))  # the last entry, step −1, is the input
    for rank, step in _order(extended, parts, receives):
        op, done = extended[rank][step], results[rank]
        if isinstance(op, Recv):  # its value was set when its send was evaluated
            continue
        operands = []
        for operand in parts[rank][step]:
            operands.append(elements := zeros(size_of(op)))
            for position, writer, begin, end in operand:
                elements[position : position + end - begin] = done[writer][begin:end]
        done[step] = combine(rank, step, *operands) if isinstance(op, Combine) else operands[0]
        if (receive := receives.get((rank, step))) is not None:
            results[receive[0]][receive[1]] = done[step]
    return [done[-2] for done in results]


def _operands(
    operations: Sequence[Operation], input_slot: int, blocks: tuple[Block, ...]
) -> list[list[list[_Part]]]:
    """For every operation of a rank, a list with one operand for each slot that is read.

    blocks: the blocks that the rank's input slot holds at the start.
    """
    writers = Writers()
    shifts: list[tuple[int, int]] = []  # [writer]: its step, and offset − position there

    def write(slot: int, blocks: tuple[Block, ...], step: int) -> None:
        position = 0
        for block in blocks:
            writers.write(slot, block, len(shifts))
            shifts.append((step, block.offset - position))
            position += block.length

    def read(slot: int, blocks: tuple[Block, ...]) -> list[_Part]:
        parts, position = [], 0
        for block in blocks:
            for begin, end, writer in writers.pieces(slot, block):
                step, shift = shifts[writer]
                at = position + begin - block.offset
                parts.append(_Part(at, step, begin - shift, end - shift))
            position += block.length
        return parts

    write(input_slot, blocks, _INPUT)
    operands = []
    for step, op in enumerate(operations):
        operands.append([read(slot, op.blocks) for slot in reads(op)])
        if (slot := writes(op)) is not None:
            write(slot, blocks_in(op, slot), step)
    return operands


def _order(
    lists: Sequence[Sequence[Operation]],
    parts: Sequence[Sequence[Sequence[Sequence[_Part]]]],
    receives: dict[tuple[int, int], tuple[int, int]],
) -> list[tuple[int, int]]:
    """All operations as (rank, step), each after those whose results it needs.

    parts: by rank, the result of `_operands`.   receives: the result of `matching`.
    Raises InvalidSchedule if there is no such order.
    """
    needed: list[list[int]] = []  # by rank and step: how many results it still needs
    readers: list[list[list[int]]] = [[[] for _ in operations] for operations in lists]
    for operations, operands, readers_here in zip(lists, parts, readers, strict=True):
        needed.append([])
        for step, op in enumerate(operations):
            steps = {part.step for operand in operands[step] for part in operand} - {_INPUT}
            for earlier in steps:
                readers_here[earlier].append(step)
            needed[-1].append(1 if isinstance(op, Recv) else len(steps))
    order = [(rank, i) for rank, row in enumerate(needed) for i, n in enumerate(row) if not n]
    for rank, step in order:  # `order` grows during this loop
        ready = [(rank, reader) for reader in readers[rank][step]]
        if (receive := receives.get((rank, step))) is not None:
            ready.append(receive)
        for target, reader in ready:
            needed[target][reader] -= 1
            if not needed[target][reader]:
                order.append((target, reader))
    for rank, row in enumerate(needed):
        if step := next((i for i, n in enumerate(row, 1) if n), 0):
            raise never_completes(rank, step - 1, lists[rank][step - 1])
    return order


def never_completes(rank: int, step: int, op: Operation) -> InvalidSchedule:
    """The error for a schedule whose execution stops before this operation."""
    verb = type(op).__name__.lower()
    return InvalidSchedule(
        f"rank {rank}, step {step}: {verb}"
        + (f" with rank {op.peer}" if isinstance(op, Send | Recv) else ""),
        "it never completes: the ranks wait for each other, or nobody answers",
        rank=rank,
        step=step,
    )
