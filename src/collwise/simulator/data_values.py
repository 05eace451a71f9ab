"""Runs a schedule on real values, in this process, without MPI."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.errors import InvalidArgument
from collwise.schedule.evaluation import evaluate
from collwise.schedule.operations import Block
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule

Vector: TypeAlias = NDArray[Any]


def values(
    schedule: Schedule,
    inputs: Sequence[Vector | None],
    combine: Callable[[Vector, Vector], Vector] = np.add,
) -> list[Vector | None]:
    """Run a schedule on the vectors of all ranks; returns the output of every rank, as new arrays.

    inputs: by rank, one-dimensional arrays of one element type, as long as the problem's vectors.
    A broadcast uses only the root's array.  An allgatherv uses only the arrays of the sources, each
    as long as the source's contribution.
    combine: a NumPy ufunc, or any function of a left and a right operand; operands are pieces of
    the vectors in whole elements, in the schedule's order.
    A rank without output has None.  The output of an allgatherv is the data of all sources, one
    after another, in rank order.
    Raises InvalidArgument for inputs that do not fit, and InvalidSchedule if a rank would wait for
    ever (`collwise.verify` says more).
    """
    problem = schedule.problem
    blocks = {rank: block for rank in range(problem.ranks) for block in problem.input_of(rank)}
    dtype = _element_type(problem, inputs, blocks)

    def as_bytes(rank: int) -> Vector:
        vector = inputs[rank] if rank in blocks else None
        return np.frombuffer(b"" if vector is None else vector.tobytes(), np.uint8)

    def combine_bytes(_rank: int, _step: int, left: Vector, right: Vector) -> Vector:
        combined = combine(left.view(dtype), right.view(dtype))
        return np.frombuffer(np.asarray(combined, dtype).tobytes(), np.uint8)

    ranks = range(problem.ranks)
    outputs = evaluate(
        schedule.lists,
        problem.input_slot,
        [(problem.input_of(rank), as_bytes(rank)) for rank in ranks],
        [problem.output_of(rank) for rank in ranks],
        combine_bytes,
        lambda length: np.zeros(length, np.uint8),
    )
    return [
        output.view(dtype) if problem.kind.has_output(rank, problem.root) else None
        for rank, output in enumerate(outputs)
    ]


def _element_type(
    problem: Problem, inputs: Sequence[Vector | None], blocks: Mapping[int, Block]
) -> np.dtype[Any]:
    """The element type of all inputs, uint8 without inputs; InvalidArgument if they do not fit."""
    asked = f"the values of {problem}"
    if len(inputs) != problem.ranks:
        remedy = f"give {problem.ranks}, one for each rank"
        raise InvalidArgument(asked, f"{len(inputs)} inputs", remedy)
    types = []
    for rank, block in blocks.items():
        vector = inputs[rank]
        if not isinstance(vector, np.ndarray) or vector.nbytes != block.length:
            size = "none" if vector is None else f"one of {np.asarray(vector).nbytes} bytes"
            remedy = f"give an array of {block.length} bytes"
            raise InvalidArgument(asked, f"the input of rank {rank} is {size}", remedy)
        types.append(vector.dtype)
    if not types:
        return np.dtype(np.uint8)
    if len(set(types)) > 1 or problem.itemsize % types[0].itemsize:
        names = ", ".join(sorted({str(dtype) for dtype in types}))
        remedy = f"give arrays of one type, which {problem.itemsize} bytes are a multiple of"
        raise InvalidArgument(asked, f"elements of type {names}", remedy)
    return types[0]
