"""What the collectives that combine share: registration, and the orders that they keep."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from collwise.algorithms.registry import Algorithm, Build, Settings, program_time, register
from collwise.model.machine import Machine
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import Circular, SingleRank


def register_combining(name: str, summary: str, time: str, build: Build, **more: Any) -> Algorithm:
    """Register an algorithm that combines.  more: other fields of `Algorithm`.

    A single rank's own contribution is the result; wrong settings are refused all the same.
    """

    def built(problem: Problem, settings: Settings) -> Program:
        program = build(problem, settings)
        return SingleRank(problem) if problem.ranks == 1 else program

    return register(Algorithm(name=name, summary=summary, time=time, build=built, **more))


def register_circular(
    name: str, summary: str, time: str, program: Callable[..., Circular], **more: Any
) -> Algorithm:
    """Register a program of p blocks around a circle.

    program: of a problem, with the algorithm's settings.
    """
    facts: dict[str, Any] = {"order": lambda problem: "same", "segmented": True, **more}
    return register_combining(
        name, summary, time, lambda problem, settings: program(problem, **settings), **facts
    )


def from_root_on(problem: Problem) -> Order:
    """The order of reduces that number the ranks from the root on: the ranks' own for root 0."""
    return "same" if problem.root else "rank"


def in_no_order(problem: Problem) -> Order:
    """The order of reduces to one rank that keep no order; two ranks have only two."""
    return from_root_on(problem) if problem.ranks == 2 else "same"


def even_time(program: Circular, machine: Machine) -> Fraction:
    """Seconds of a program of equal blocks around a circle: of the next length that splits evenly.

    One rank stands for all; exact if the length splits evenly.
    """
    problem = program.problem
    even = replace(problem, nbytes=-(-problem.nbytes // program.unit) * program.unit)
    return program_time(even, replace(program, problem=even), machine)
