"""The census: an allgather in T_λ(p)·t0, for an integer λ and a constant t0 [Bruck1996 §3].

All ranks do the same, relative to their own numbers.  A rank sends a message in every t0, each to a
different rank.  A message carries the contributions that its sender holds by then, the last message
only those that its receiver lacks.  The census for latency k = 1 is Bruck's allgather; for
k >= p − 1 every rank sends its own contribution to all others.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from collwise.algorithms.allgatherv.spreading import alike_or_simulable, register_allgatherv
from collwise.algorithms.registry import Rough, Settings, integer
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Deliveries, Delivery
from collwise.schedule.problem import Problem
from collwise.schedule.rows import Class, Rows, around_a_circle

LATENCY = integer("latency", 1, "the latency in units of t0, an integer of at least 1")


class Shift(NamedTuple):
    """One message from every rank r to rank r − distance, modulo p.

    The message carries the contributions of ranks r … r + width − 1, modulo p.
    """

    distance: int
    width: int


def shifts(ranks: int, k: int) -> list[Shift]:
    """The messages that every rank sends, in order.

    k: the latency in rounds; a message that is sent in round j is received in round j + k.
    After the message with distance d, rank r has the contributions of ranks r … r + d + width − 1.
    """
    held = [1] * min(k, ranks)  # by round, the number of contributions that a rank can send
    known, messages = 1, list[Shift]()
    while known < ranks:
        messages.append(Shift(known, min(held[len(messages)], ranks - known)))
        known += messages[-1].width
        held.append(known)
    return messages


@dataclass(frozen=True)
class Census(Deliveries):
    """The program of the allgather by census.   k: the latency in t0, an integer."""

    k: int

    def classes(self) -> list[Class] | None:  # noqa: D102
        return [around_a_circle(self.problem.ranks)] if self.problem.all_give_alike else None

    def rows(self, *, combines: bool) -> Rows | None:
        """All messages as arrays; None if ranks do not contribute equally.

        In every round, a rank's operations are in ascending order of the sender's rank.
        """
        if not self.problem.all_give_alike:
            return None
        ranks, messages = self.problem.ranks, shifts(self.problem.ranks, self.k)
        source = np.arange(ranks, dtype=np.int64)
        known = [1, *(distance + width for distance, width in messages)]
        parts = [[source[:0]] * 6]
        for number, (distance, width) in enumerate(messages):
            target = (source - distance) % ranks
            at_source = 2 * number + (source + distance >= ranks)
            at_target = 2 * number + (target + distance < ranks)
            same = width * self.problem.sources[0].nbytes, bisect_left(known, width)
            parts.append([source, target, at_source, at_target, *(np.full(ranks, x) for x in same)])
        return Rows.counted(*map(np.concatenate, zip(*parts, strict=True)))

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        ranks = self.problem.ranks
        for distance, width in shifts(ranks, self.k):
            senders = () if rank is None else (rank, (rank + distance) % ranks)
            for sender in range(ranks) if rank is None else sorted(set(senders)):
                blocks = self.given_from(sender, width)
                yield Delivery(sender, (sender - distance) % ranks, blocks)


def latencies(ranks: int, each: int, machine: Machine) -> list[int]:
    """The latencies to try: λ, from 1 to p, rounded down and up, for `each`, 2·`each`, … bytes.

    each: bytes of a contribution.
    """
    sizes = (each << power for power in range(ranks.bit_length()))
    lams = {min(max(machine.planning_lam(size), Fraction(1)), Fraction(ranks)) for size in sizes}
    return sorted({rounded(lam) for lam in lams for rounded in (floor, ceil)})


def census_time(ranks: int, each: int, latency: int, machine: Machine) -> Fraction:
    """Rough seconds of a census in which every rank contributes `each` bytes.

    latency: the number of rounds that a message travels.   A round lasts as long as its message
    keeps a port busy, or λ·t0 of the message divided by `latency` if that is longer.
    """
    time = Fraction(0)
    for _, width in shifts(ranks, latency):
        cost = machine.message(each * width)
        time += max(cost.gap, cost.latency / latency)
    return time + cost.latency - cost.gap if ranks > 1 else time


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings | Rough]:
    """The settings `latency` to compare, as if all ranks contributed equally.

    Without data only latency 1; empty if there are too many messages to simulate.
    """
    if not problem.nbytes or not alike_or_simulable(problem, machine):
        return [{"latency": 1}] * (not problem.nbytes)
    ranks, each = problem.ranks, max(problem.nbytes // problem.ranks, 1)
    even = Problem.of("allgatherv", ranks, each, sources=range(ranks))
    return [
        Rough(census_time(ranks, each, k, machine), {"latency": k}, even)
        for k in latencies(ranks, each, machine)
    ]


register_allgatherv(
    "census",
    "every rank sends all the time, to another rank each time, all data that it has by then",
    ("Bruck1996 §3",),
    "T_k(p)·t0 for λ = k, all messages counted as one size",
    lambda problem, settings: Census(problem, settings["latency"]),
    choices=_choices,
    parameters={"latency": LATENCY},
    alike=True,
)
