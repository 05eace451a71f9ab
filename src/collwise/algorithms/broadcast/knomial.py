"""k-nomial tree: in every level a leader serves k − 1 others, k times as many are informed."""

from collections.abc import Iterable
from functools import partial

from collwise.algorithms.broadcast.segmented_tree import down_tree, tree_time
from collwise.algorithms.registry import Algorithm, Settings, integer, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import Part, SplitTree


def radix(part: Part, k: int) -> tuple[Part, Part]:
    """Keep the largest multiple j·k^h below n (1 <= j < k)."""
    power = 1
    while power * k < part.size:
        power *= k
    kept = (part.size - 1) // power * power
    return Part(kept), Part(part.size - kept)


def tree(ranks: int, k: int) -> SplitTree:
    """The k-nomial tree over `ranks` ranks."""
    return SplitTree(partial(radix, k=k), Part(ranks))


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    return [{"k": k} for k in (2, 3, 4, 8, 16) if k == 2 or k < problem.ranks]


register(
    Algorithm(
        name="broadcast/knomial",
        summary="k-nomial tree: each level multiplies the informed ranks by k",
        source=("MPICH",),
        time="h·(k − 2 + λ)·t0 for n = k^h",
        build=lambda problem, settings: down_tree(tree(problem.ranks, settings["k"]), problem),
        predicted=lambda problem, machine, settings: tree_time(
            tree(problem.ranks, settings["k"]), problem.nbytes, machine
        ),
        choices=_choices,
        parameters={"k": integer("k", 2, "the radix, an integer of at least 2")},
    )
)
