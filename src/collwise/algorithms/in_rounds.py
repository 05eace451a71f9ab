"""What broadcasts and reduces in rounds share: the program, and the choice of the pieces."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, floor
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.registry import Settings, program_time
from collwise.errors import BeyondLimits
from collwise.model.limits import (
    CYCLIC_ROUNDS,
    FREE_RANKS,
    MOST_PIECES,
    ROUNDS_EVER,
    ROUNDS_PLAYED,
    SEARCHED_RANKS,
    TABLED_ROUNDS,
)
from collwise.model.machine import Cost, Machine
from collwise.schedule.circulant import Circulant
from collwise.schedule.cyclic_trees import CyclicTrees, arrangement
from collwise.schedule.data_movement import pieces
from collwise.schedule.free_rounds import FreeRounds
from collwise.schedule.operations import Block
from collwise.schedule.postal_rounds import PostalRounds
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rounds import DownRounds, Rounds, UpRounds, highest
from collwise.schedule.two_trees import TwoTrees

MAX_COMPARED = 4
"""Numbers of pieces that are compared by exact times."""
SAMPLED = 16
"""Pieces of the rounds that show how many rounds there are for other numbers of pieces."""
_RoundsOf: TypeAlias = Callable[[Problem, Settings, int], Rounds]


def circulant(problem: Problem, settings: Settings, count: int) -> Rounds:
    """Rounds through a circulant graph."""
    return Circulant(problem.ranks, count, 1)


def two_trees(problem: Problem, settings: Settings, count: int) -> Rounds:
    """Down two binary trees, for the latency that is set."""
    return TwoTrees(problem.ranks, count, settings["latency"])


def postal_rounds(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The shortest known rounds for the latency that is set."""
    latency = settings["latency"]
    return _shortest(problem.ranks, latency)[0](problem.ranks, count, latency)


class _Kind(NamedTuple):
    rounds: type[Rounds]
    later: int
    """Rounds until the last piece is there, after the one in which it is sent first."""


def _cyclic(ranks: int, latency: int) -> bool:
    """Whether there are cyclic trees, of which one rank's sends are known without playing all."""
    return latency > 2 and arrangement(ranks - 1, latency) is not None


@lru_cache(maxsize=256)
def _shortest(ranks: int, latency: int) -> _Kind:
    """The kind of rounds that ends first for a few pieces."""
    kinds: list[type[Rounds]] = []
    if _cyclic(ranks, latency):
        kinds.append(CyclicTrees)
    if ranks <= FREE_RANKS:
        kinds.append(FreeRounds)
    if ranks <= FREE_RANKS or not kinds:
        kinds.append(PostalRounds)
    few = max(min(SAMPLED, TABLED_ROUNDS // ranks), 1)
    if len(kinds) == 1 and ranks > TABLED_ROUNDS:
        return _Kind(kinds[0], 0)
    return min(
        (_Kind(kind, len(kind(ranks, few, latency).every()) - 1 + latency - few) for kind in kinds),
        key=lambda kind: kind.later,
    )


def pieces_of(problem: Problem, segment: int) -> tuple[Block, ...]:
    """The pieces of a vector; no element is cut.   Raises BeyondLimits for too many of them."""
    items = -(-segment // problem.itemsize)
    if (count := -(-problem.nbytes // (items * problem.itemsize))) > ROUNDS_EVER:
        raise BeyondLimits(
            f"{problem} in rounds", f"there are {count:,} pieces", "choose longer ones"
        )
    return tuple(pieces(problem.nbytes, items * problem.itemsize))


def rounds_fields(rounds_of: _RoundsOf) -> dict[str, Any]:
    """The field `build` of an algorithm in such rounds."""

    def build(problem: Problem, settings: Settings) -> Program:
        blocks = pieces_of(problem, settings["segment"])
        rounds = rounds_of(problem, settings, len(blocks))
        return (UpRounds if problem.kind.combines else DownRounds)(rounds, blocks)

    return {"build": build}


def circulant_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best length of pieces, by the time if all of them were of this length."""
    most = ROUNDS_PLAYED // problem.ranks if problem.ranks <= SEARCHED_RANKS else 0
    tried = [
        (_even_time(problem, machine, count, nbytes), nbytes)
        for nbytes in lengths(problem)
        if (count := -(-problem.nbytes // nbytes)) <= most
        or (problem.nbytes % nbytes == 0 and _at_once(machine, nbytes))
    ]
    return [{"segment": min(tried)[1]}] if tried and problem.ranks > 1 else []


def lengths(problem: Problem, apart: int = 8) -> set[int]:
    """Bytes in a piece, for numbers of pieces that are an eighth apart, and for pieces of one item.

    apart: 16 for a sixteenth.
    """
    items = problem.nbytes // problem.itemsize
    counts, count = {items} if 1 < items <= MOST_PIECES else set[int](), 2
    while count <= min(items, MOST_PIECES):
        counts.add(count)
        count += -(-count // apart)
    return {-(-items // count) * problem.itemsize for count in counts}


def postal_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best number of pieces and latency of the rounds, of those that a rough time favours."""

    def later(work: int, latency: int) -> int | None:
        if work > CYCLIC_ROUNDS or (work > TABLED_ROUNDS and not _cyclic(problem.ranks, latency)):
            return None
        kind = _shortest(problem.ranks, latency)
        return kind.later if work <= TABLED_ROUNDS or kind.rounds is CyclicTrees else None

    return _best(problem, machine, postal_rounds, later, MAX_COMPARED)


def two_tree_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best number of pieces, and the latency of their rounds, by a rough time.

    None where λ is 1: rounds of a circulant graph, k − 1 + ⌈log2 p⌉ of them, are never more.
    """
    if all(machine.message(nbytes).lam <= 1 for nbytes in lengths(problem)):
        return ()

    def later(work: int, latency: int) -> int | None:
        if work > ROUNDS_PLAYED or problem.ranks > SEARCHED_RANKS:
            return None
        return trees(latency).later + latency - 1

    @cache
    def trees(latency: int) -> TwoTrees:
        return TwoTrees(problem.ranks, 1, latency)

    return _best(problem, machine, two_trees, later, 1)


def _best(
    problem: Problem,
    machine: Machine,
    rounds_of: _RoundsOf,
    later: Callable[[int, int], int | None],
    compared: int,
) -> Iterable[Settings]:
    """The best latency and length of the pieces, by exact times of the best few by a rough one.

    later: from the number of pieces × ranks and the latency, the rounds that pass between the first
    sending of the last piece and its arrival everywhere; None for what is not to be tried.
    Combining adds to what a message takes, and to the time until it can be sent on.
    """
    rough: dict[tuple[int, int], Fraction] = {}
    for nbytes in lengths(problem) if problem.ranks > 1 else ():
        count = -(-problem.nbytes // nbytes)
        combining = _combine(problem, machine, nbytes) or Fraction(0)
        cost = Cost(*(x + combining for x in machine.message(nbytes)))
        for rounded in (floor, ceil):
            latency = min(max(rounded(cost.lam), 1), highest(problem.ranks))
            if (rest := later(count * problem.ranks, latency)) is not None:
                rough[nbytes, latency] = (count + rest) * max(cost.gap, cost.latency / latency)

    def time(one: tuple[int, int]) -> Fraction:
        blocks = tuple(pieces(problem.nbytes, one[0]))
        rounds = rounds_of(problem, {"latency": one[1]}, len(blocks))
        program = (UpRounds if problem.kind.combines else DownRounds)(rounds, blocks)
        return program_time(problem, program, machine)

    few = sorted(rough, key=lambda one: (rough[one], one))[:compared]
    return [
        {"latency": latency, "segment": nbytes}
        for nbytes, latency in sorted(few, key=time if len(few) > 1 else None)[:1]
    ]


def _at_once(machine: Machine, nbytes: int) -> bool:
    """Whether a message arrives as soon as its sender is free, as λ is 1."""
    cost = machine.message(nbytes)
    return cost.gap == cost.latency


def _even_time(problem: Problem, machine: Machine, count: int, nbytes: int) -> Fraction:
    """Seconds for so many pieces of so many bytes each: exact if λ is 1, else about."""
    rounds = count - 1 + (problem.ranks - 1).bit_length()
    return rounds * (machine.message(nbytes).latency + (_combine(problem, machine, nbytes) or 0))


def _combine(problem: Problem, machine: Machine, nbytes: int) -> Fraction | None:
    return machine.combine(nbytes) if problem.kind.combines else None
