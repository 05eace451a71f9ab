"""What is right: what every rank has at the start and must have at the end of a collective.

Both follow from the collective's entry in the table.  One that combines promises contributors as
well: its blocks are right not when they are there, but when they have come together of the
contributions of all ranks, each counted once.
"""

from functools import lru_cache
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


def postcondition(problem: Problem, rank: int) -> Postcondition:
    """What a problem promises to one rank."""
    given = _holding(problem.input_slot, problem.input_of(rank))
    return Postcondition(
        given, _holding(Slot.OUTPUT, problem.output_of(rank)), problem.kind.combines
    )


@lru_cache(maxsize=4)
def _holding(slot: int, blocks: tuple[Block, ...]) -> Holding:
    """The blocks, each with its slot: one object for equal ones, which most ranks have."""
    return tuple((slot, block) for block in blocks)
