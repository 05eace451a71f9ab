"""What is right: the promise of every collective, rank by rank.

A collective is entered here once, as data; no check asks which one it is.  One that combines
promises contributors as well: its blocks are right not when they are there, but when they have come
together of the contributions of all ranks, each counted once.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from collwise.schedule.operations import Block, Slot
from collwise.schedule.problem import Problem

Holding: TypeAlias = tuple[tuple[int, Block], ...]
"""Blocks, and the slots in which they lie."""


class Postcondition(NamedTuple):
    """What one rank is given at the start, and what it is owed in the end.

    combined: whether everybody's data is owed, combined, and not somebody's as it was given.
    """

    given: Holding
    owed: Holding
    combined: bool = False


def _broadcast(problem: Problem, rank: int) -> Postcondition:
    everything: Holding = ((Slot.OUTPUT, problem.whole),)
    return Postcondition(everything if rank == problem.root else (), everything)


def _reduce(problem: Problem, rank: int) -> Postcondition:
    mine: Holding = ((Slot.INPUT, problem.whole),)
    owed: Holding = ((Slot.OUTPUT, problem.whole),)
    return Postcondition(mine, owed if rank == problem.root else (), combined=True)


def _allreduce(problem: Problem, rank: int) -> Postcondition:
    return _reduce(problem, problem.root)


@lru_cache(maxsize=1)
def _everything(problem: Problem) -> Holding:
    return tuple((Slot.OUTPUT, block) for block in problem.gathered)


def _s_to_p(problem: Problem, rank: int) -> Postcondition:
    everything = _everything(problem)
    return Postcondition(tuple(held for held in everything if held[1].owner == rank), everything)


POSTCONDITIONS: Mapping[str, Callable[[Problem, int], Postcondition]] = MappingProxyType(
    {
        "broadcast": _broadcast,
        "reduce": _reduce,
        "allreduce": _allreduce,
        "s_to_p": _s_to_p,
    }
)
"""For each collective, its promise to a rank."""
