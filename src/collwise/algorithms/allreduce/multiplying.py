"""Recursive multiplying: groups of k ranks exchange whole vectors; and all ranks as one group.

With k = 2 this is recursive doubling.  A larger k means more messages in fewer rounds.  A round
takes (k − 2 + λ)·t0, so that pays where λ is high.  With k = p every rank gathers all vectors and
combines them in the order of the ranks.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import prod

from collwise.algorithms.reductions import register_exchange
from collwise.algorithms.registry import Settings, integer
from collwise.model.machine import Machine
from collwise.schedule.exchange import Stage
from collwise.schedule.problem import Problem

RADICES = (3, 4, 5, 6, 8, 12, 16, 32)
LARGEST_GATHERED = 64
"""Ranks beyond which gathering everything is never worth the memory."""


def stages(problem: Problem, radix: int) -> tuple[Stage, ...]:
    """As many stages of `radix` as fit, and one of what is left: for at least half of the ranks."""
    left, radices = problem.ranks, []
    while left > 1:
        radices.append(min(radix, left))
        left //= radix
    return tuple(Stage(radix, divided=False) for radix in radices)


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    radices = [radix for radix in RADICES if radix < problem.ranks]
    if not radices:
        return []
    gap, latency = machine.message(problem.nbytes)
    combine = machine.combine(problem.nbytes) or 0

    def time(radix: int) -> Fraction:
        made = stages(problem, radix)
        times = ((k - 2) * gap + latency + (k - 1) * combine for k, _ in made)
        others = prod(stage.radix for stage in made) < problem.ranks
        return sum(times, Fraction(0)) + others * (2 * latency + combine)

    return [{"radix": min(radices, key=time)}]


register_exchange(
    "allreduce/recursive_multiplying",
    "groups of k ranks exchange whole vectors, round after round",
    "log_k(p)·(k − 2 + λ)·t0 for p = k^r, and combining",
    lambda problem, settings: stages(problem, settings["radix"]),
    source=("Ruefenacht2017",),
    choices=_choices,
    parameters={"radix": integer("radix", 2, "the ranks in a group, an integer of at least 2")},
    searched=False,
)
register_exchange(
    "allreduce/gather_combine",
    "everybody sends to everybody, and combines in the order of the ranks",
    "(p − 2 + λ)·t0, and combining",
    lambda problem, _: stages(problem, problem.ranks),
    source=("BarNoyKipnis1994",),
    choices=lambda problem, _: [{}] if problem.ranks <= LARGEST_GATHERED else [],
    searched=False,
)
