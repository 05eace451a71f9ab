"""Reduce by halving and gathering, and the hybrids of that with a tree [vandeGeijn1991 §5].

In each direction of a cube a strategy says whether one of two ranks hands its whole vector over, or
both combine halves, which are gathered at the end.
"""

from collections.abc import Iterable
from fractions import Fraction

from collwise.algorithms.reductions import (
    STRATEGY,
    best_strategy,
    by_strategy,
    exchange_time,
    from_root_on,
    twos,
    unless_alone,
)
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.model import hybrid
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem


def _halving(problem: Problem) -> tuple[Stage, ...]:
    return by_strategy((1,) * twos(problem.ranks))


def _stages(problem: Problem, settings: Settings) -> tuple[Stage, ...]:
    return by_strategy(hybrid.checked_strategy(settings["strategy"], twos(problem.ranks)))


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    return [{"strategy": best_strategy(problem, machine)}]


def _time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    return exchange_time(problem, machine, _stages(problem, settings))


register(
    Algorithm(
        name="reduce/halving_gather",
        summary="halve the vectors in every direction, combine halves, gather them at the root",
        source=("vandeGeijn1991 §5",),
        time="2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
        build=unless_alone(lambda problem, _: Exchange(problem, _halving(problem))),
        predicted=lambda problem, machine, _: exchange_time(problem, machine, _halving(problem)),
        order=from_root_on,
        segmented=True,
    )
)
register(
    Algorithm(
        name="reduce/hybrid",
        summary="halve in some directions, hand whole vectors over in the others",
        source=("vandeGeijn1991 §5", "vandeGeijn1991 Theorem 1"),
        time="T(S, n, d) for p = 2^d",
        build=unless_alone(lambda problem, settings: Exchange(problem, _stages(problem, settings))),
        predicted=_time,
        choices=_choices,
        parameters={"strategy": STRATEGY},
        order=from_root_on,
        segmented=True,
    )
)
