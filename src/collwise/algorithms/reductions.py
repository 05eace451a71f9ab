"""Registration of algorithms that combine, and the orders of combining that they keep."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from collwise.algorithms.registry import Algorithm, Build, Settings, program_time, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import SingleRank


def register_combining(name: str, summary: str, time: str, build: Build, **more: Any) -> Algorithm:
    """Register an algorithm that combines.   more: other fields of `Algorithm`.

    With one rank the program copies its contribution; invalid settings still raise an error.
    """

    def built(problem: Problem, settings: Settings) -> Program:
        program = build(problem, settings)
        return SingleRank(problem) if problem.ranks == 1 else program

    return register(Algorithm(name=name, summary=summary, time=time, build=built, **more))


def register_circular(
    name: str, summary: str, time: str, program: Callable[..., Program], **more: Any
) -> Algorithm:
    """Register an algorithm that sends p blocks around a ring or a circulant graph.

    program: called with the problem and the algorithm's settings as keywords.
    """
    facts: dict[str, Any] = {"order": lambda problem: "same", "segmented": True, **more}
    return register_combining(
        name, summary, time, lambda problem, settings: program(problem, **settings), **facts
    )


def from_root_on(problem: Problem) -> Order:
    """The order of a reduce along root, root + 1, …, root − 1: rank order if the root is 0."""
    return "same" if problem.root else "rank"


def in_no_order(problem: Problem) -> Order:
    """The order of a reduce that keeps none; with two ranks it keeps that of `from_root_on`."""
    return from_root_on(problem) if problem.ranks == 2 else "same"


def even_time(
    problem: Problem, unit: int, program: Callable[[Problem], Program], machine: Machine
) -> Fraction:
    """Seconds of a program for the next length that is a multiple of `unit` bytes.

    Then all of its blocks are equally long, and one rank stands for all.
    """
    even = replace(problem, nbytes=-(-problem.nbytes // unit) * unit)
    return program_time(even, program(even), machine)
