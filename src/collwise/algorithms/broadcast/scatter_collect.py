"""Broadcasts by scatter and allgather, for long messages [vandeGeijn1991 §3].

A scatter down a binomial tree halves the message again and again, then an allgather collects the
pieces in steps.  A rank that has forwarded pieces in the scatter does not receive them again.
For many ranks the allgather is Bruck's, in ⌈log2 p⌉ steps.  For very long messages on few ranks it
goes around a ring in p − 1 steps.  In a ring only neighbours exchange messages, so a network that
contains a ring has no contention.
"""

from collections.abc import Callable, Sequence

from collwise.algorithms.broadcast import binomial
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.errors import BeyondLimits
from collwise.model.limits import COLLECTED_STEPS, RING_RANKS
from collwise.schedule.data_movement import ScatterCollect
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


def doubling(ranks: int) -> Sequence[int]:
    """How many pieces, 1, 2, 4, …, a rank has before each of the ⌈log2 p⌉ doubling steps."""
    return tuple(1 << k for k in range((ranks - 1).bit_length()))


def _register(
    name: str, summary: str, time: str, starts: Callable[[int], Sequence[int]], most: int
) -> None:
    """Register a broadcast that does a scatter, then an allgather.

    starts: maps the number of ranks to the field `starts` of `ScatterCollect`.   most: the largest
    number of ranks for which plans try the broadcast.
    """

    def build(problem: Problem, _: Settings) -> Program:
        steps = starts(problem.ranks)
        if len(steps) > COLLECTED_STEPS:
            asked, seen = f"{problem} by {name}", f"a rank would take {len(steps):,} steps"
            raise BeyondLimits(asked, seen, "choose fewer ranks, or another algorithm")
        item = problem.itemsize  # no element is cut
        piece = max(-(-problem.nbytes // (problem.ranks * item)), 1) * item
        tree = binomial.tree(problem.ranks)
        return ScatterCollect(tree, problem.nbytes, piece, steps, ring=starts is not doubling)

    register(
        Algorithm(
            name=f"broadcast/{name}",
            summary=summary,
            source=("vandeGeijn1991 §3", "Barnett1994", *("Bruck1997",) * (starts is doubling)),
            time=time,
            build=build,
            choices=lambda problem, _: [{}] * (2 < problem.ranks <= min(most, problem.nbytes)),
            segmented=True,
            usual=True,
        )
    )


_register(
    "scatter_allgather",
    "scatter down a binomial tree, collect in ⌈log2 p⌉ rounds of doubling size",
    "recurrence over 2⌈log2 p⌉ rounds; about 2d·α + 2(p − 1)/p·nβ for p = 2^d",
    doubling,
    most=1 << 16,
)
_register(
    "scatter_ring",
    "scatter down a binomial tree, collect around a ring in p − 1 steps",
    "recurrence over ⌈log2 p⌉ + p − 1 rounds; about (p − 1 + log2 p)·α + 2(p − 1)/p·nβ",
    lambda ranks: range(1, ranks),
    most=RING_RANKS,
)
