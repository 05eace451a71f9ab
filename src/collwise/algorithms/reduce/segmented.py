"""Pipelined reduces: segment after segment up a chain or a λ-tree, for long vectors.

Up a chain, a segment's time per byte is that of one transfer and one combine, however many ranks
there are.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeAlias

from collwise.algorithms.broadcast import chain, postal_tree
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.reductions import from_root_on, played, unless_alone, up_tree
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.trees import Tree

TreeOf: TypeAlias = Callable[[Problem, Settings], Tree]

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of segments worth a try."""
LARGEST_PLAYED = 4096
"""Messages of a schedule that is played for its time."""


def _program(tree: TreeOf, problem: Problem, settings: Settings) -> Program:
    whole = (
        -(-settings["segment"] // problem.itemsize) * problem.itemsize
    )  # not cut inside an element
    return up_tree(tree(problem, settings), problem, whole)


def _choices(tree: TreeOf, problem: Problem, machine: Machine, **more: Any) -> Iterable[Settings]:
    """The best of a few numbers of segments, for schedules that can be played quickly."""
    items = problem.nbytes // problem.itemsize
    counts = [n for n in COUNTS if n <= items and n * problem.ranks <= LARGEST_PLAYED]
    if problem.ranks == 1 or not counts:
        return []
    found = [{**more, "segment": -(-items // n) * problem.itemsize} for n in counts]
    return [min(found, key=lambda s: played(problem, machine, _program(tree, problem, s)))]


def _time(tree: TreeOf) -> Callable[[Problem, Machine, Settings], Fraction]:
    return lambda problem, machine, settings: played(
        problem, machine, _program(tree, problem, settings)
    )


def _chain(problem: Problem, _: Settings) -> Tree:
    return chain.tree(problem.ranks)


def _postal(problem: Problem, settings: Settings) -> Tree:
    return postal_tree.tree(problem.ranks, settings["lam"])


register(
    Algorithm(
        name="reduce/chain_segmented",
        summary="pipelined chain, upwards: segments follow each other to the root",
        source=("Desprez1993",),
        time="((p − 1)·λ + k − 1)·t0 for k segments, and combining on the way",
        build=unless_alone(lambda problem, settings: _program(_chain, problem, settings)),
        predicted=_time(_chain),
        choices=lambda problem, machine: _choices(_chain, problem, machine),
        parameters={"segment": SEGMENT},
        order=from_root_on,
        segmented=True,
    )
)
register(
    Algorithm(
        name="reduce/postal_tree_segmented",
        summary="pipelined λ-tree, upwards",
        source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
        time="(T_λ(p) + (k − 1)·d)·t0 for k segments, d the root's number of children",
        build=unless_alone(lambda problem, settings: _program(_postal, problem, settings)),
        predicted=_time(_postal),
        choices=lambda problem, machine: _choices(
            _postal, problem, machine, lam=machine.planning_lam(problem.nbytes)
        ),
        parameters={"lam": postal_tree.LAM, "segment": SEGMENT},
        order=from_root_on,
        segmented=True,
    )
)
