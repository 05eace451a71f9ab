"""Versions 2, 3 and 4 of van de Geijn: exchange whole vectors, halves, or some of both.

Version 2 is recursive doubling, Version 3 recursive halving and doubling, Version 4 any strategy
that says in which of the d directions vectors are halved; Theorem 1 says which strategy is best,
dynamic programming does where costs are no straight line [vandeGeijn1991 §3, §4, §6].
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from collwise.algorithms.reductions import (
    STRATEGY,
    best_strategy,
    by_strategy,
    exchange_time,
    twos,
    unless_alone,
)
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model import hybrid
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem

Stages: TypeAlias = Callable[[Problem, Settings], tuple[Stage, ...]]


def whole(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Version 2."""
    return by_strategy((0,) * twos(problem.ranks))


def halved(problem: Problem, _: Settings) -> tuple[Stage, ...]:
    """Version 3."""
    return by_strategy((1,) * twos(problem.ranks))


def chosen(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    """Version 4."""
    return by_strategy(hybrid.checked_strategy(settings["strategy"], twos(problem.ranks)))


def _time(stages: Stages) -> Callable[[Problem, Machine, Settings], Fraction]:
    return lambda problem, machine, settings: exchange_time(
        problem, machine, stages(problem, settings)
    )


register(
    Algorithm(
        name="allreduce/recursive_doubling",
        summary="exchange whole vectors with a neighbour in every direction",
        source=("vandeGeijn1991 §3.2",),
        time="d(α + nβ + nγ) for p = 2^d",
        build=unless_alone(lambda problem, s: Exchange(problem, whole(problem, s))),
        predicted=_time(whole),
    )
)
register(
    Algorithm(
        name="allreduce/halving_doubling",
        summary="exchange and combine halves in every direction, then put them together again",
        source=("vandeGeijn1991 §3.3", "Thakur2005"),
        time="2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
        build=unless_alone(lambda problem, s: Exchange(problem, halved(problem, s))),
        predicted=_time(halved),
        segmented=True,
    )
)
register(
    Algorithm(
        name="allreduce/hybrid",
        summary="halve in some directions, exchange whole vectors in the others",
        source=("vandeGeijn1991 §3.4", "vandeGeijn1991 Theorem 1"),
        time="T(S, n, d) for p = 2^d",
        build=unless_alone(lambda problem, s: Exchange(problem, chosen(problem, s))),
        predicted=_time(chosen),
        choices=lambda problem, machine: [{"strategy": best_strategy(problem, machine)}],
        parameters={"strategy": STRATEGY},
        segmented=True,
    )
)
