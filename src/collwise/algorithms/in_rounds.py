"""Broadcasts and reduces in rounds: the kinds of rounds, and the best lengths of pieces.

In almost every round, almost all ranks send one piece and receive one; in a tree, a rank with c
children needs c rounds for each piece.  Through a circulant graph k pieces take k − 1 + ⌈log2 p⌉
rounds; where λ is 1, no algorithm is better for long messages [Traeff2024b].  Rounds made for a
latency λ take little more than k − 1 + T_λ(p), where a single piece takes T_λ(p).  Each of two
binary trees carries every second piece; an inner rank of one tree is a leaf of the other tree
[Sanders2009].  A reduce, the time-reversed broadcast, in general does not combine in rank order.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, lru_cache, partial
from math import ceil, floor
from typing import Any, NamedTuple, TypeAlias

from collwise.algorithms.allgatherv.census import LATENCY
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.reductions import in_no_order, register_combining
from collwise.algorithms.registry import (
    Algorithm,
    Choices,
    Parameter,
    Rough,
    Settings,
    register,
)
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

SAMPLED = 16
"""The most pieces whose rounds are computed to extrapolate how many rounds more pieces need."""
_RoundsOf: TypeAlias = Callable[[Problem, Settings, int], Rounds]


def circulant(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The rounds in which `count` pieces go through a circulant graph; `settings` is ignored."""
    return Circulant(problem.ranks, count, 1)


def two_trees(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The rounds in which `count` pieces go down two binary trees, for the setting `latency`."""
    return TwoTrees(problem.ranks, count, settings["latency"])


def postal_rounds(problem: Problem, settings: Settings, count: int) -> Rounds:
    """The rounds that broadcast `count` pieces, for the setting `latency`.

    Their class is the subclass of `Rounds` that broadcasts a few pieces in the fewest rounds.
    """
    latency = settings["latency"]
    return _shortest_kind(problem.ranks, latency)[0](problem.ranks, count, latency)


class _Kind(NamedTuple):
    """A `Rounds` subclass, and how many rounds it needs after the last piece was first sent."""

    rounds: type[Rounds]
    later: int
    """Number of rounds after the one that first sends the last piece, until all ranks have it.

    So k pieces take k + later rounds.  It is 0, and not computed, if there are too many ranks.
    """


def _has_cyclic_trees(ranks: int, latency: int) -> bool:
    """Whether `CyclicTrees` can be used: the latency exceeds 2, and an `arrangement` is found."""
    return latency > 2 and arrangement(ranks - 1, latency) is not None


@lru_cache(maxsize=256)
def _shortest_kind(ranks: int, latency: int) -> _Kind:
    """The subclass of `Rounds` that broadcasts a few pieces in the fewest rounds."""
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
    """The byte ranges of pieces of `segment` bytes, rounded up to whole elements.

    The last piece may be shorter.  Raises BeyondLimits for too many pieces.
    """
    items = -(-segment // problem.itemsize)
    if (count := -(-problem.nbytes // (items * problem.itemsize))) > ROUNDS_EVER:
        raise BeyondLimits(
            f"{problem} in rounds", f"there are {count:,} pieces", "choose longer ones"
        )
    return tuple(pieces(problem.nbytes, items * problem.itemsize))


def circulant_choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `segment` with the least time, computed as if all pieces were equally long.

    Empty for one rank, for fewer than two elements, and if all lengths would make too many pieces.
    """
    most = ROUNDS_PLAYED // problem.ranks if problem.ranks <= SEARCHED_RANKS else 0
    tried = [
        (_even_time(problem, machine, count, nbytes), nbytes)
        for nbytes in lengths(problem)
        if (count := -(-problem.nbytes // nbytes)) <= most
        or (problem.nbytes % nbytes == 0 and _arrives_at_once(machine, nbytes))
    ]
    return [{"segment": min(tried)[1]}] if tried and problem.ranks > 1 else []


def lengths(problem: Problem, apart: int = 8) -> set[int]:
    """Piece lengths in bytes to try, for numbers of pieces from 2 to MOST_PIECES.

    apart: each number of pieces exceeds the next smaller one by about 1/apart of it, at least by 1.
    One element is a length too, unless it makes too many pieces.  Empty for 0 or 1 elements.
    """
    items = problem.nbytes // problem.itemsize
    counts, count = {items} if 1 < items <= MOST_PIECES else set[int](), 2
    while count <= min(items, MOST_PIECES):
        counts.add(count)
        count += -(-count // apart)
    return {-(-items // count) * problem.itemsize for count in counts}


def postal_choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    """The settings `segment` and `latency` of postal rounds to compare."""

    def later(work: int, latency: int) -> int | None:
        if work > CYCLIC_ROUNDS or (
            work > TABLED_ROUNDS and not _has_cyclic_trees(problem.ranks, latency)
        ):
            return None
        kind = _shortest_kind(problem.ranks, latency)
        return kind.later if work <= TABLED_ROUNDS or kind.rounds is CyclicTrees else None

    return _rough_settings(problem, machine, later)


def two_tree_choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    """The settings `segment` and `latency` to compare, for rounds down two trees.

    Empty if λ is 1, where circulant graphs need the fewest rounds, and for one or too many ranks.
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

    return _rough_settings(problem, machine, later)


def _rough_settings(
    problem: Problem, machine: Machine, later: Callable[[int, int], int | None]
) -> Iterable[Rough]:
    """The settings `latency` and `segment` to compare, with rough times.

    later: called with (pieces × ranks, latency).  Returns the number of rounds after the one
    that first sends the last piece, until all ranks have it; None if plans should not try these
    arguments.
    A rough time counts combining as a part of both the gap and the latency of a message.
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
    return [
        Rough(time, {"latency": latency, "segment": nbytes})
        for (nbytes, latency), time in sorted(rough.items())
    ]


def _arrives_at_once(machine: Machine, nbytes: int) -> bool:
    """Whether λ is 1: a message arrives at the moment when its sender's port becomes free."""
    cost = machine.message(nbytes)
    return cost.gap == cost.latency


def _even_time(problem: Problem, machine: Machine, count: int, nbytes: int) -> Fraction:
    """Seconds for `count` pieces of `nbytes` bytes through a circulant graph; exact if λ is 1."""
    rounds = count - 1 + (problem.ranks - 1).bit_length()
    return rounds * (machine.message(nbytes).latency + (_combine(problem, machine, nbytes) or 0))


def _combine(problem: Problem, machine: Machine, nbytes: int) -> Fraction | None:
    return machine.combine(nbytes) if problem.kind.combines else None


_BY_LATENCY = {"latency": LATENCY, "segment": SEGMENT}
_POSTAL = ("BarNoyKipnis1994", "Karp1993", "Traeff2024b")
_KINDS: dict[str, tuple[_RoundsOf, Choices, tuple[str, ...], dict[str, Parameter]]] = {
    "circulant": (circulant, circulant_choices, ("Traeff2024b",), {"segment": SEGMENT}),
    "postal_rounds": (postal_rounds, postal_choices, _POSTAL, _BY_LATENCY),
    "two_trees": (two_trees, two_tree_choices, ("Sanders2009",), _BY_LATENCY),
}
"""Maps a short name to: the function that makes the rounds; choices, source, parameters."""
_FAMILY = {
    "broadcast/circulant": (
        "pieces through a circulant graph, in as few rounds as possible",
        "(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1",
    ),
    "broadcast/postal_rounds": (
        "pieces in rounds; in a round all ranks send by the same distance, the newest piece first",
        "about (k − 1 + T_λ(p))·t0 for k pieces; simulated",
    ),
    "broadcast/two_trees": (
        "two binary trees, each of which passes every other piece down",
        "about (k + (2λ + 1)·log2(p)/2)·t0 for k pieces; played round by round",
    ),
    "reduce/circulant": (
        "the rounds of broadcast/circulant backwards, in as few rounds as possible",
        "(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1, and combining in every round",
    ),
    "reduce/postal_rounds": (
        "the rounds of broadcast/postal_rounds backwards",
        "about (k − 1 + T_λ(p))·t0 for k pieces, and combining; simulated",
    ),
    "reduce/two_trees": (
        "two binary trees, each of which passes every other piece up",
        "about (k + (2λ + 1)·log2(p)/2)·t0 for k pieces, and combining; played round by round",
    ),
}
"""Maps the name of each algorithm to its summary and its time."""


def register_rounds(collective: str) -> None:
    """Register the algorithms that send pieces in rounds; collective: "broadcast" or "reduce"."""
    for name, (summary, time) in _FAMILY.items():
        own, _, kind = name.partition("/")
        rounds_of, choices, source, parameters = _KINDS[kind]
        facts: dict[str, Any] = {"source": source, "choices": choices, "parameters": parameters}
        facts |= {"segmented": True, "build": partial(_program, rounds_of)}
        if own == collective == "reduce":
            register_combining(name, summary, time, order=in_no_order, **facts)
        elif own == collective:
            register(Algorithm(name=name, summary=summary, time=time, **facts))


def _program(rounds_of: _RoundsOf, problem: Problem, settings: Settings) -> Program:
    blocks = pieces_of(problem, settings["segment"])
    program = UpRounds if problem.kind.combines else DownRounds
    return program(rounds_of(problem, settings, len(blocks)), blocks)
