"""Helpers to register algorithms that combine, and orders in which some of them combine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from collwise.algorithms.registry import Algorithm, Build, Settings, register
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank


def register_combining(name: str, summary: str, time: str, build: Build, **more: Any) -> Algorithm:
    """Register an algorithm that combines.   more: other fields of `Algorithm`.

    On one rank the program only copies the rank's contribution; `build` is still called, so that
    invalid settings raise an error.
    """

    def built(problem: Problem, settings: Settings) -> Program:
        program = build(problem, settings)
        return SingleRank(problem) if problem.ranks == 1 else program

    return register(Algorithm(name=name, summary=summary, time=time, build=built, **more))


def register_circular(
    name: str, summary: str, time: str, program: Callable[..., Program], **more: Any
) -> Algorithm:
    """Register an algorithm that sends p blocks around a ring or a circulant graph.

    program: called with the problem, and with the algorithm's settings as keywords.
    more: other fields of `Algorithm`; the default order of combining is "same".
    """
    facts: dict[str, Any] = {"order": lambda problem: "same", "segmented": True, **more}
    return register_combining(
        name, summary, time, lambda problem, settings: program(problem, **settings), **facts
    )


def fixed_if_asked(problem: Problem) -> Order:
    """The order "fixed" if a problem needs it, else "rank"; `choices` and `build` must keep it."""
    return "fixed" if problem.order == "fixed" else "rank"


def from_root_on(problem: Problem) -> Order:
    """The order of a reduce that combines ranks root, root + 1, …, p − 1, 0, …, root − 1.

    The order is "rank" if the root is 0, else "same".
    """
    return "same" if problem.root else "rank"


def in_no_order(problem: Problem) -> Order:
    """The order of a reduce that keeps no particular order: "same" except for p = 2 and root 0.

    With two ranks the root's contribution always comes first.  So the order is "rank" for root 0.
    """
    return from_root_on(problem) if problem.ranks == 2 else "same"


def in_even_blocks(problem: Problem, unit: int) -> Problem:
    """The problem with its vector length rounded up to a multiple of `unit` bytes.

    All blocks are then equally long, so that simulating one rank is enough.
    """
    return replace(problem, nbytes=-(-problem.nbytes // unit) * unit)
