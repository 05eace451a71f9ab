"""What the operations of a schedule make of given inputs, whatever the order of execution.

Nothing is ever overwritten: every operation keeps its result, and a reader takes each element from
the operation that wrote it last in list order.
"""

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidSchedule
from collwise.schedule.dependencies import Writers, matching
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, reads, writes

Array: TypeAlias = NDArray[Any]
CombineArrays: TypeAlias = Callable[[int, int, Array, Array], Array]
"""Of a rank, a step and its two operands: their combination."""
_INPUT = -1
"""The step at which a rank has its input."""


class _Part(NamedTuple):
    """A run of elements of an operand, and where it lies in the result of an earlier step."""

    position: int
    step: int
    begin: int
    end: int


def evaluate(
    lists: Sequence[Sequence[Operation]],
    input_slot: int,
    inputs: Sequence[tuple[tuple[Block, ...], Array]],
    outputs: Sequence[tuple[Block, ...]],
    combine: CombineArrays,
) -> list[Array]:
    """The blocks `outputs` of every rank's output slot in the end, one after another.

    inputs: per rank, its blocks in the input slot and their elements; all of one type.  Offsets and
    lengths of blocks count elements.  What nobody wrote is 0.
    Raises InvalidSchedule if ranks wait for each other in a circle, or for a message nobody sends.
    """
    # In the end the output is read, as if it were sent to somebody.
    every = [
        (*operations, Send(-1, blocks)) for operations, blocks in zip(lists, outputs, strict=True)
    ]
    parts = [
        _operands(operations, input_slot, blocks)
        for operations, (blocks, _) in zip(every, inputs, strict=True)
    ]
    sends = {receive: send for send, receive in matching(lists).items()}
    results = {(rank, _INPUT): array for rank, (_, array) in enumerate(inputs)}
    for rank, step in _order(every, parts, sends):
        op = every[rank][step]
        if isinstance(op, Recv):
            results[rank, step] = results[sends[rank, step]]
            continue
        operands = []
        for operand in parts[rank][step]:
            length = sum(block.length for block in op.blocks)
            operands.append(elements := np.zeros(length, inputs[rank][1].dtype))
            for position, writer, begin, end in operand:
                made = results[rank, writer][begin:end]
                elements[position : position + end - begin] = made
        is_combine = isinstance(op, Combine)
        results[rank, step] = combine(rank, step, *operands) if is_combine else operands[0]
    return [results[rank, len(operations)] for rank, operations in enumerate(lists)]


def _operands(
    operations: Sequence[Operation], input_slot: int, blocks: tuple[Block, ...]
) -> list[list[list[_Part]]]:
    """For every operation of a rank and every slot that it reads, where its elements come from."""
    writers = Writers()
    shifts: list[tuple[int, int]] = []  # by writer: its step, and offset − position in its result

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
            write(slot, op.blocks, step)
    return operands


def _order(
    lists: Sequence[Sequence[Operation]],
    parts: Sequence[Sequence[Sequence[Sequence[_Part]]]],
    sends: dict[tuple[int, int], tuple[int, int]],
) -> list[tuple[int, int]]:
    """All operations as (rank, step), each after those whose results it needs."""
    needs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if not isinstance(op, Recv):
                steps = {part.step for operand in parts[rank][step] for part in operand}
                needs[rank, step] = [(rank, earlier) for earlier in steps - {_INPUT}]
            elif (rank, step) in sends:
                needs[rank, step] = [sends[rank, step]]
            else:
                raise never_completes(rank, step, op)
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        rank, step = min(error.args[1])
        raise never_completes(rank, step, lists[rank][step]) from None


def never_completes(rank: int, step: int, op: Operation) -> InvalidSchedule:
    """The error of a run of the schedule that stops before this operation."""
    verb = type(op).__name__.lower()
    return InvalidSchedule(
        f"rank {rank}, step {step}: {verb}"
        + (f" with rank {op.peer}" if isinstance(op, Send | Recv) else ""),
        "it never completes: the ranks wait for each other, or nobody answers",
        rank=rank,
        step=step,
    )
