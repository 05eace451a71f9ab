"""The census that carries contributions instead of sums: T_λ(p)·t0 for an integer λ [Bruck1996 §3].

Every rank does the same, relative to its own number.  It sends all the time: each message goes to
another rank and carries everything that the sender holds by then.  With k = 1 it is Bruck's
allgather; with k >= p − 1 every rank sends its own contribution to every other one.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from collwise.algorithms.registry import Settings, integer, program_time
from collwise.algorithms.s_to_p.spreading import alike_or_simulable, register_s_to_p
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Deliveries, Delivery
from collwise.schedule.problem import Problem
from collwise.schedule.rows import Class, Rows, around_a_circle

LATENCY = integer("latency", 1, "the latency in units of t0, an integer of at least 1")


class Shift(NamedTuple):
    """One message of every rank, to the rank `distance` before it.

    It carries the contributions of `width` ranks, the sender's first.
    """

    distance: int
    width: int


def shifts(ranks: int, k: int) -> list[Shift]:
    """The messages of every rank, in order, if one that is sent in round j is there in round j + k.

    After the message of distance d a rank has what d + width ranks gave, from itself on.
    """
    held = [1] * min(k, ranks)  # by round, what a rank holds when it sends
    known, messages = 1, list[Shift]()
    while known < ranks:
        messages.append(Shift(known, min(held[len(messages)], ranks - known)))
        known += messages[-1].width
        held.append(known)
    return messages


@dataclass(frozen=True)
class Census(Deliveries):
    """The census of all ranks for the integer latency k."""

    k: int

    def classes(self) -> list[Class] | None:  # noqa: D102
        return [around_a_circle(self.problem.ranks)] if self.problem.all_give_alike else None

    def rows(self, *, combines: bool) -> Rows | None:
        """Of two that are sent in a round, the one of the lower rank comes first in all lists."""
        if not self.problem.all_give_alike:
            return None
        ranks, messages = self.problem.ranks, shifts(self.problem.ranks, self.k)
        every = np.arange(ranks, dtype=np.int64)
        known = [1, *(distance + width for distance, width in messages)]
        parts = [[every[:0]] * 6]
        for number, (distance, width) in enumerate(messages):
            target = (every - distance) % ranks
            at_source = 2 * number + (every + distance >= ranks)
            at_target = 2 * number + (target + distance < ranks)
            one = width * self.problem.sources[0].nbytes, bisect_left(known, width)
            parts.append([every, target, at_source, at_target, *(np.full(ranks, x) for x in one)])
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks = self.problem.ranks
        for distance, width in shifts(ranks, self.k):
            mine = () if rank is None else (rank, (rank + distance) % ranks)
            for sender in range(ranks) if rank is None else sorted(set(mine)):
                blocks = self.given_from(sender, width)
                yield Delivery(sender, (sender - distance) % ranks, blocks)


def latencies(ranks: int, each: int, machine: Machine) -> list[int]:
    """Both roundings of the λ that messages have, with `each` bytes of one rank, or of several."""
    sizes = (each << power for power in range(ranks.bit_length()))
    lams = {min(max(machine.planning_lam(size), Fraction(1)), Fraction(ranks)) for size in sizes}
    return sorted({rounded(lam) for lam in lams for rounded in (floor, ceil)})


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The latency that is best if all ranks give equally much."""
    if not problem.nbytes or not alike_or_simulable(problem, machine):
        return [{"latency": 1}] * (not problem.nbytes)
    ranks, each = problem.ranks, max(problem.nbytes // problem.ranks, 1)
    ks = latencies(ranks, each, machine)
    even = Problem.of("s_to_p", ranks, each, sources=range(ranks))
    return [{"latency": min(ks, key=lambda k: program_time(even, Census(even, k), machine))}]


register_s_to_p(
    "census",
    "all send all the time, to ever other ranks, each message with all that is there by then",
    ("Bruck1996 §3",),
    "T_k(p)·t0 for λ = k, all messages counted as one size",
    lambda problem, settings: Census(problem, settings["latency"]),
    choices=_choices,
    parameters={"latency": LATENCY},
    alike=True,
)
