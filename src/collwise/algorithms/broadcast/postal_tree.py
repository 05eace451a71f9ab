"""The λ-tree: optimal in the postal model for a whole message; also used with segments.

It is built by bottom-up doubling [Bruck1996 §2.3].  The λ-tree for time t reaches as many ranks
as possible in that time.  It consists of the tree for time t − 1, which has the same root, and the
tree for time t − λ, whose root is the first child of the λ-tree's root.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from collwise.algorithms.broadcast.segmented_tree import (
    SEGMENT,
    register_tree,
    segment_choices,
)
from collwise.algorithms.registry import Parameter, Settings, fraction
from collwise.model import postal
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import Part, SplitTree

LAM = fraction(
    "lam",
    postal.SMALLEST_LATENCY,
    None,
    "the latency λ in units of t0, a number of at least 1/1024",
)


@lru_cache(maxsize=256)
def tree(ranks: int, lam: Fraction) -> SplitTree:
    """The λ-tree over `ranks` ranks.   lam: the latency λ in t0.

    The state of a `Part` is the index of the `Grade` with the time that is left to inform the
    part's ranks.
    """
    grades = postal.doubling(ranks, lam).grades

    def rule(part: Part) -> tuple[Part, Part]:
        grade = grades[part.state]
        kept = min(part.size - 1, grades[grade.kept].size)
        return Part(kept, grade.kept), Part(part.size - kept, grade.given)

    return SplitTree(rule, Part(ranks, len(grades) - 1))


def of_settings(problem: Problem, settings: Settings) -> SplitTree:
    """The λ-tree of a problem, for the setting `lam`."""
    return tree(problem.ranks, settings["lam"])


def _by_lam(parameter: Parameter, least: Fraction) -> dict[str, Any]:
    def at_machine(problem: Problem, machine: Machine) -> Iterable[Settings]:
        return [{"lam": max(machine.planning_lam(problem.nbytes), least)}]

    return {"choices": at_machine, "parameters": {"lam": parameter}}


BY_LAM = _by_lam(LAM, postal.SMALLEST_LATENCY)
"""The fields `choices` and `parameters` of an `Algorithm` whose only parameter is λ, `lam`.

The only value that plans try is the λ of the machine.
"""
BY_LAM_FROM_1 = _by_lam(
    fraction("lam", Fraction(1), None, "the latency λ in units of t0, a number of at least 1"),
    Fraction(1),
)
"""The same fields as BY_LAM, for algorithms that need λ >= 1."""


def _segments(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """Settings for at most three λ-trees, each with its best segment.

    The trees are for the machine's λ for the whole message, for its λ for 4 KiB, and for λ = 1.
    """
    lams = {machine.planning_lam(problem.nbytes), machine.planning_lam(4096), Fraction(1)}
    choices: list[Settings] = []
    for lam in sorted(lams):
        segments = segment_choices(tree(problem.ranks, lam), problem, machine)
        choices += [{"lam": lam, **choice} for choice in segments]
    return choices


register_tree(
    "postal_tree",
    "λ-tree: every informed rank goes on sending; optimal in the postal model",
    "T_λ(p)·t0",
    of_settings,
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    **BY_LAM,
)
register_tree(
    "postal_tree_segmented",
    "pipelined λ-tree: segment after segment down the λ-tree",
    "(T_λ(p) + (k − 1)·d)·t0 for k segments, d the root's number of children",
    of_settings,
    source=("BarNoyKipnis1994", "Bruck1996 §2.3"),
    choices=_segments,
    parameters={"lam": LAM, "segment": SEGMENT},
    searched=False,
)
