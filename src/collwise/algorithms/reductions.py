"""What the collectives that combine share: registration, orders, van de Geijn's stages."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from collwise.algorithms.registry import (
    Algorithm,
    Build,
    Parameter,
    Settings,
    program_time,
    register,
)
from collwise.model import hybrid
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Order, Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import Circular, SingleRank

Stages: TypeAlias = Callable[[Problem, Settings], tuple[Stage, ...]]


def register_combining(name: str, summary: str, time: str, build: Build, **more: Any) -> Algorithm:
    """Register an algorithm that combines.  more: other fields of `Algorithm`.

    A single rank's own contribution is the result; wrong settings are refused all the same.
    """

    def built(problem: Problem, settings: Settings) -> Program:
        program = build(problem, settings)
        return SingleRank(problem) if problem.ranks == 1 else program

    return register(Algorithm(name=name, summary=summary, time=time, build=built, **more))


def register_exchange(name: str, summary: str, time: str, stages: Stages, **more: Any) -> Algorithm:
    """Register an exchange in these stages."""
    return register_combining(
        name,
        summary,
        time,
        lambda problem, settings: Exchange(problem, stages(problem, settings)),
        **more,
    )


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


def cube_dimension(ranks: int) -> int:
    """⌊log2 of the number of ranks⌋, the dimension of the largest cube among them."""
    return ranks.bit_length() - 1


def whole_vectors(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Exchange whole vectors in every direction: Version 2 of [vandeGeijn1991]."""
    return (Stage(2, divided=False),) * cube_dimension(problem.ranks)


def halved(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Halve vectors in every direction: Version 3."""
    return (Stage(2, divided=True),) * cube_dimension(problem.ranks)


def by_strategy(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """The stages of a strategy S: Version 4, direction d − 1 first."""
    strategy = hybrid.checked_strategy(settings["strategy"], cube_dimension(problem.ranks))
    return tuple(Stage(2, bool(divided)) for divided in reversed(strategy))


def best_strategy(problem: Problem, machine: Machine) -> hybrid.Strategy:
    """The best strategy for the machine's costs, by dynamic programming over its cost curve."""
    itemsize = problem.itemsize
    return hybrid.best_for(
        lambda items: machine.message(items * itemsize).latency,
        lambda items: machine.combine(items * itemsize) or 0,
        problem.nbytes // itemsize,
        cube_dimension(problem.ranks),
        to_root=problem.kind.output == "root",
    )


def _strategy(value: Any) -> hybrid.Strategy:
    if isinstance(value, str):  # as a profile keeps it
        value = [int(c) if c in "01" else c for c in value if c not in "(), "]
    return hybrid.checked_strategy(value)


STRATEGY = Parameter(
    _strategy,
    "S_0, …, S_(d−1), 1 where vectors are halved, for the largest 2^d ranks, such as (0, 1)",
)
CHOSEN_STRATEGY: dict[str, Any] = {
    "choices": lambda problem, machine: [{"strategy": best_strategy(problem, machine)}],
    "parameters": {"strategy": STRATEGY},
}
"""The fields of an algorithm with the parameter `strategy`."""
