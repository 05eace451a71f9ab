"""A schedule run on real values, in this process, without MPI: what every rank ends with.

Nothing is ever overwritten: every operation keeps what it made, and who reads puts together what
was written last.  So the result is that of the list as it stands, whatever the order of execution.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidArgument, InvalidSchedule
from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, reads
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

Vector: TypeAlias = NDArray[Any]
_Bytes: TypeAlias = NDArray[np.uint8]


def values(
    schedule: Schedule,
    inputs: Sequence[Vector | None],
    combine: Callable[[Vector, Vector], Vector] = np.add,
) -> list[Vector | None]:
    """Run a schedule on everybody's vectors; what every rank has in its output in the end.

    inputs: one-dimensional arrays of one type, by rank, each of the problem's bytes (of a broadcast
    only the root's counts; of an s-to-p broadcast the sources', each of its bytes).
    combine: a NumPy ufunc, or any function of the left and the right operand, pieces of the vectors
    in whole elements; it is called in the schedule's order.
    Returns new arrays (of an s-to-p broadcast what sources gave, by rank); None for a rank that has
    no output.
    Raises InvalidArgument for inputs that do not fit, InvalidSchedule if the ranks wait for each
    other in a circle (`collwise.verify` says more).
    """
    problem = schedule.problem
    given = {rank: block for rank in range(problem.ranks) for block in problem.input_of(rank)}
    dtype = _checked(problem, inputs, given)
    ranks = [
        _Rank(problem, operations, number, inputs[number] if number in given else None)
        for number, operations in enumerate(schedule.lists)
    ]
    _run(ranks, dtype, combine)
    return [
        rank.result().view(dtype) if problem.kind.has_output(number, problem.root) else None
        for number, rank in enumerate(ranks)
    ]


def _checked(
    problem: Problem, inputs: Sequence[Vector | None], given: Mapping[int, Block]
) -> np.dtype[Any]:
    """The type of the elements."""
    asked = f"the values of {problem}"
    if len(inputs) != problem.ranks:
        remedy = f"give {problem.ranks}, one for each rank"
        raise InvalidArgument(asked, f"{len(inputs)} inputs", remedy)
    kinds = []
    for rank, block in given.items():
        vector = inputs[rank]
        if not isinstance(vector, np.ndarray) or vector.nbytes != block.length:
            told = "none" if vector is None else f"one of {np.asarray(vector).nbytes} bytes"
            remedy = f"give an array of {block.length} bytes"
            raise InvalidArgument(asked, f"the input of rank {rank} is {told}", remedy)
        kinds.append(vector.dtype)
    if not kinds:
        return np.dtype(np.uint8)
    if len(set(kinds)) > 1 or problem.itemsize % kinds[0].itemsize:
        told = ", ".join(sorted({str(kind) for kind in kinds}))
        remedy = f"give arrays of one type, which {problem.itemsize} bytes are a multiple of"
        raise InvalidArgument(asked, f"elements of type {told}", remedy)
    return kinds[0]


class _Rank:
    """One rank's operations, what each of them made, and who waits for it."""

    def __init__(
        self,
        problem: Problem,
        operations: Sequence[Operation],
        rank: int,
        vector: Vector | None,
    ) -> None:
        # In the end the output is read, as if it were sent to somebody.
        self.operations = (*operations, Send(-1, problem.output_of(rank), Slot.OUTPUT))
        self.writers = dependencies(self.operations)
        self.slot = problem.input_slot
        self.given = next(iter(problem.input_of(rank)), None)
        self.data = np.zeros(0, np.uint8)
        if vector is not None:
            self.data = np.frombuffer(vector.tobytes(), np.uint8)
        self.made: dict[int, _Bytes] = {}
        self.missing = [len(waits) for waits in self.writers]
        self.waiting: dict[int, list[int]] = {}
        for place, waits in enumerate(self.writers):
            for writer in waits:
                self.waiting.setdefault(writer, []).append(place)

    def finish(self, place: int, made: _Bytes) -> list[int]:
        """Keep what an operation made; the places that can go on now."""
        self.made[place] = made
        waiting = self.waiting.get(place, [])
        for other in waiting:
            self.missing[other] -= 1
        return [other for other in waiting if not self.missing[other]]

    def operand(self, place: int, slot: int) -> _Bytes:
        """What an operation reads from a slot: its blocks, one after another."""
        blocks = self.operations[place].blocks
        pieces = [self._block(place, slot, block) for block in blocks]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)

    def _block(self, place: int, slot: int, block: Block) -> _Bytes:
        found = np.zeros(block.length, np.uint8)
        if slot == self.slot and self.given is not None and self.given.owner == block.owner:
            found[:] = self.data[block.offset : block.end]
        for writer in self.writers[place]:  # the latest last
            op, at = self.operations[writer], 0
            into = op.slot if isinstance(op, Recv | Send) else op.into
            for piece in op.blocks:
                low, high = max(piece.offset, block.offset), min(piece.end, block.end)
                if into == slot and piece.owner == block.owner and low < high:
                    source = self.made[writer][at + low - piece.offset : at + high - piece.offset]
                    found[low - block.offset : high - block.offset] = source
                at += piece.length
        return found

    def result(self) -> _Bytes:
        """What is in the output in the end."""
        return self.made[len(self.operations) - 1]


def _run(
    ranks: Sequence[_Rank], dtype: np.dtype[Any], combine: Callable[[Vector, Vector], Vector]
) -> None:
    receives: dict[tuple[int, int], deque[int]] = {}
    sends: dict[tuple[int, int], int] = {}
    arrives: dict[tuple[int, int], tuple[int, int]] = {}  # a send -> the receive that gets it
    for number, rank in enumerate(ranks):
        for place, op in enumerate(rank.operations):
            if isinstance(op, Recv):
                receives.setdefault((op.peer, number), deque()).append(place)
    for number, rank in enumerate(ranks):
        for place, op in enumerate(rank.operations[:-1]):
            if isinstance(op, Send):
                k = sends[number, op.peer] = sends.get((number, op.peer), -1) + 1
                queue = receives.get((number, op.peer), deque())
                if k < len(queue):
                    arrives[number, place] = op.peer, queue[k]
    awake = deque(
        (number, place)
        for number, rank in enumerate(ranks)
        for place, op in enumerate(rank.operations)
        if not isinstance(op, Recv) and not rank.missing[place]
    )
    while awake:
        number, place = awake.popleft()
        rank = ranks[number]
        op = rank.operations[place]
        operands = [rank.operand(place, slot) for slot in reads(op)]
        made = operands[0]
        if isinstance(op, Combine):
            combined = combine(*(operand.view(dtype) for operand in operands))
            made = np.frombuffer(np.asarray(combined, dtype).tobytes(), np.uint8)
        awake.extend((number, other) for other in rank.finish(place, made))
        if (target := arrives.get((number, place))) is not None:
            other, at = target
            awake.extend((other, waiting) for waiting in ranks[other].finish(at, made))
    for number, rank in enumerate(ranks):
        for place, op in enumerate(rank.operations):
            if place not in rank.made:
                raise InvalidSchedule(
                    f"rank {number}, step {place}: {type(op).__name__.lower()}",
                    "it never completes: the ranks wait for each other, or nobody answers",
                    rank=number,
                    step=place,
                )
