"""What is right: the promise of every collective, rank by rank.

A collective is entered here once, as data; no check asks which one it is.  One that combines
promises contributors as well: its blocks are right not when they are there, but when they have come
together of the contributions of all ranks, each counted once.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from collwise.schedule.data import Block, Problem, Slot

Holding: TypeAlias = tuple[tuple[int, Block], ...]
"""Blocks, and the slots in which they lie."""


class Promise(NamedTuple):
    """What one rank is given at the start, and what it is owed in the end.

    combined: whether everybody's data is owed, combined, and not somebody's as it was given.
    """

    given: Holding
    owed: Holding
    combined: bool = False


def _broadcast(problem: Problem, rank: int) -> Promise:
    everything: Holding = ((Slot.OUTPUT, problem.whole),)
    return Promise(everything if rank == problem.root else (), everything)


def _reduce(problem: Problem, rank: int) -> Promise:
    mine: Holding = ((Slot.INPUT, problem.whole),)
    owed: Holding = ((Slot.OUTPUT, problem.whole),)
    return Promise(mine, owed if rank == problem.root else (), combined=True)


def _allreduce(problem: Problem, rank: int) -> Promise:
    return _reduce(problem, problem.root)


@lru_cache(maxsize=1)
def _everything(problem: Problem) -> Holding:
    return tuple((Slot.OUTPUT, block) for block in problem.gathered)


def _s_to_p(problem: Problem, rank: int) -> Promise:
    everything = _everything(problem)
    return Promise(tuple(held for held in everything if held[1].owner == rank), everything)


PROMISES: Mapping[str, Callable[[Problem, int], Promise]] = MappingProxyType(
    {
        "broadcast": _broadcast,
        "reduce": _reduce,
        "allreduce": _allreduce,
        "s_to_p": _s_to_p,
    }
)
"""For each collective, its promise to a rank."""
