"""Broadcasts and reduces of pieces in rounds: their programs, and the choice of the pieces."""

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
"""Number of settings that are compared by exact times."""
SAMPLED = 16
"""Pieces in the rounds that are simulated to extrapolate to other numbers of pieces."""
_RoundsOf: TypeAlias = Callable[[Problem, Settings, int], Rounds]


def circulant(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The rounds of `count` pieces through a circulant graph."""
    return Circulant(problem.ranks, count, 1)


def two_trees(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The rounds of `count` pieces down two binary trees, for the latency of the settings."""
    return TwoTrees(problem.ranks, count, settings["latency"])


def postal_rounds(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The shortest known rounds of `count` pieces for the latency of the settings."""
    latency = settings["latency"]
    return _shortest_kind(problem.ranks, latency)[0](problem.ranks, count, latency)


class _Kind(NamedTuple):
    """A class of rounds, and how many rounds it needs for the last piece."""

    rounds: type[Rounds]
    later: int
    """Rounds from the first send of the last piece until all ranks have it."""


def _has_cyclic_trees(ranks: int, latency: int) -> bool:
    """Whether a closed-form arrangement of cyclic trees exists (no global simulation needed)."""
    return latency > 2 and arrangement(ranks - 1, latency) is not None


@lru_cache(maxsize=256)
def _shortest_kind(ranks: int, latency: int) -> _Kind:
    """The class of rounds that needs the fewest rounds for a few pieces."""
    kinds: list[type[Rounds]] = []
    if _has_cyclic_trees(ranks, latency):
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
    """Cut a vector into pieces of about `segment` bytes, between elements.

    Raises BeyondLimits for too many pieces.
    """
    items = -(-segment // problem.itemsize)
    if (count := -(-problem.nbytes // (items * problem.itemsize))) > ROUNDS_EVER:
        raise BeyondLimits(
            f"{problem} in rounds", f"there are {count:,} pieces", "choose longer ones"
        )
    return tuple(pieces(problem.nbytes, items * problem.itemsize))


def rounds_fields(rounds_of: _RoundsOf) -> dict[str, Any]:
    """The field `build` of a broadcast or reduce in the given rounds."""

    def build(problem: Problem, settings: Settings) -> Program:
        blocks = pieces_of(problem, settings["segment"])
        rounds = rounds_of(problem, settings, len(blocks))
        return (UpRounds if problem.kind.combines else DownRounds)(rounds, blocks)

    return {"build": build}


def circulant_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best piece length, timed as if all pieces were equally long."""
    most = ROUNDS_PLAYED // problem.ranks if problem.ranks <= SEARCHED_RANKS else 0
    tried = [
        (_even_time(problem, machine, count, nbytes), nbytes)
        for nbytes in lengths(problem)
        if (count := -(-problem.nbytes // nbytes)) <= most
        or (problem.nbytes % nbytes == 0 and _arrives_at_once(machine, nbytes))
    ]
    return [{"segment": min(tried)[1]}] if tried and problem.ranks > 1 else []


def lengths(problem: Problem, apart: int = 8) -> set[int]:
    """Piece lengths in bytes to try: one item, and lengths for growing numbers of pieces.

    apart: each number of pieces is about 1 + 1/apart times the one before.
    """
    items = problem.nbytes // problem.itemsize
    counts, count = {items} if 1 < items <= MOST_PIECES else set[int](), 2
    while count <= min(items, MOST_PIECES):
        counts.add(count)
        count += -(-count // apart)
    return {-(-items // count) * problem.itemsize for count in counts}


def postal_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best piece length and latency of postal rounds, by exact times of the roughly best."""

    def later(work: int, latency: int) -> int | None:
        if work > CYCLIC_ROUNDS or (
            work > TABLED_ROUNDS and not _has_cyclic_trees(problem.ranks, latency)
        ):
            return None
        kind = _shortest_kind(problem.ranks, latency)
        return kind.later if work <= TABLED_ROUNDS or kind.rounds is CyclicTrees else None

    return _best_settings(problem, machine, postal_rounds, later, MAX_COMPARED)


def two_tree_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best piece length and latency of rounds down two trees, by a rough time.

    Empty where λ is 1: a circulant graph needs k − 1 + ⌈log2 p⌉ rounds, which is never more.
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

    return _best_settings(problem, machine, two_trees, later, 1)


def _best_settings(
    problem: Problem,
    machine: Machine,
    rounds_of: _RoundsOf,
    later: Callable[[int, int], int | None],
    compared: int,
) -> Iterable[Settings]:
    """The best latency and piece length, by exact times of the few that are best by a rough time.

    later: maps (pieces × ranks, latency) to the number of rounds from the first send of the last
    piece until all ranks have it; None if these rounds are not to be tried.
    Combining adds to the gap and to the latency of a message.
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

    def time(tried: tuple[int, int]) -> Fraction:
        nbytes, latency = tried
        blocks = tuple(pieces(problem.nbytes, nbytes))
        rounds = rounds_of(problem, {"latency": latency}, len(blocks))
        program = (UpRounds if problem.kind.combines else DownRounds)(rounds, blocks)
        return program_time(problem, program, machine)

    few = sorted(rough, key=lambda tried: (rough[tried], tried))[:compared]
    return [
        {"latency": latency, "segment": nbytes}
        for nbytes, latency in sorted(few, key=time if len(few) > 1 else None)[:1]
    ]


def _arrives_at_once(machine: Machine, nbytes: int) -> bool:
    """Whether λ is 1: a message arrives when its sender's port is free."""
    cost = machine.message(nbytes)
    return cost.gap == cost.latency


def _even_time(problem: Problem, machine: Machine, count: int, nbytes: int) -> Fraction:
    """Seconds for `count` equal pieces on a circulant graph: exact if λ is 1, else rough."""
    rounds = count - 1 + (problem.ranks - 1).bit_length()
    return rounds * (machine.message(nbytes).latency + (_combine(problem, machine, nbytes) or 0))


def _combine(problem: Problem, machine: Machine, nbytes: int) -> Fraction | None:
    return machine.combine(nbytes) if problem.kind.combines else None
