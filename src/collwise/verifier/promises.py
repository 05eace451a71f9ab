"""What is right: the promise of every collective, rank by rank.

A collective is entered here once, as data; no check asks which one it is.  One that combines will
promise contributors as well: its blocks are right not when they are there, but when they have come
together of the right contributions, each counted once.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from collwise.schedule.data import Block, Problem, Slot

Holding: TypeAlias = tuple[tuple[Slot, Block], ...]
"""Blocks, and the slots in which they lie."""


class Promise(NamedTuple):
    """What one rank is given at the start, and what it is owed in the end."""

    given: Holding
    owed: Holding


def _broadcast(problem: Problem, rank: int) -> Promise:
    everything: Holding = ((Slot.OUTPUT, problem.whole),)
    return Promise(everything if rank == problem.root else (), everything)


PROMISES: Mapping[str, Callable[[Problem, int], Promise]] = MappingProxyType(
    {"broadcast": _broadcast}
)
"""For each collective, its promise to a rank."""
