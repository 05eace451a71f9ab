"""By any algorithm that allreduces, in scratch; in the end everybody copies its own block.

Nothing is saved, but it is as fast as the allreduce.  That is best for short vectors where λ is
high: an allreduce along a census has no second half that could be left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from collwise.algorithms.composition import (
    LevelAlgorithm,
    check_order,
    one_part,
    part,
    tried_labels,
)
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Settings, algorithms_for
from collwise.model.machine import Machine
from collwise.schedule.operations import (
    Combine,
    Copy,
    Operation,
    Slot,
    clobbers,
    in_other_slot,
    reads,
)
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Class, Rows


@dataclass(frozen=True)
class OwnBlock(Program):
    """An allreduce whose result lies in scratch, of which every rank keeps its block."""

    problem: Problem
    allreduce: Program

    def rows(self, *, combines: bool) -> Rows | None:  # noqa: D102
        return self.allreduce.rows(combines=combines)

    def classes(self) -> list[Class] | None:  # noqa: D102
        return self.allreduce.classes()

    def one_for_all(self) -> list[Operation]:  # noqa: D102
        return self.allreduce.one_for_all()

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        if not (operations := self.allreduce.operations(rank)):
            return []
        used = {slot for op in operations for slot in (*reads(op), *clobbers(op))}
        result = max(used, default=Slot.SCRATCH) + 1
        moved: list[Operation] = []
        for op in operations:
            if isinstance(op, Combine) and op.right == Slot.OUTPUT != op.into:
                # In scratch a right operand is used up.
                moved.append(Copy(result, result + 1, op.blocks))
                op = op._replace(right=result + 1)
            moved.append(in_other_slot(op, Slot.OUTPUT, result))
        return [*moved, Copy(result, Slot.OUTPUT, self.problem.output_of(rank))]


def _allreduce(problem: Problem) -> Problem:
    return Problem("allreduce", problem.ranks, problem.nbytes, 0, problem.itemsize, problem.order)


def _part(settings: Settings) -> LevelAlgorithm:
    return part(settings["algorithm"], "allreduce")


def _build(problem: Problem, settings: Settings) -> Program:
    (algorithm, own), whole = _part(settings), _allreduce(problem)
    check_order(algorithm, whole)
    return OwnBlock(problem, algorithm.build(whole, dict(own)))


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    whole = _allreduce(problem)
    among = [a for a in algorithms_for("allreduce", levels=False) if a.keeps_order(whole)]
    return [{"algorithm": label} for label in tried_labels(among, whole, machine)]


register_combining(
    "reduce_scatter_block/as_allreduce",
    "by any algorithm that allreduces, of whose result every rank keeps its block",
    "that of the allreduce",
    _build,
    source=("Bruck1996 §3",),
    choices=_choices,
    parameters={"algorithm": one_part("algorithm", "allreduce", "census_in_order(latency=4)")},
    segmented=True,
)
