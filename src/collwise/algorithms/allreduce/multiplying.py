"""Recursive multiplying: groups of k ranks exchange whole vectors; and all ranks as one group.

With k = 2 this is recursive doubling.  A larger k sends more messages in fewer rounds, which pays
where λ is high: a round takes (k − 2 + λ)·t0.  With k = p everybody gathers all vectors and
combines them in the order of the ranks.
"""

from collections.abc import Iterable
from fractions import Fraction

from collwise.algorithms.reductions import exchange_estimate, exchange_time, unless_alone
from collwise.algorithms.registry import Algorithm, Settings, integer, register
from collwise.model.machine import Machine
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem

RADICES = (3, 4, 5, 6, 8, 12, 16, 32)
LARGEST_GATHERED = 64
"""Ranks beyond which gathering everything is never worth the memory."""


def stages(problem: Problem, radix: int) -> tuple[Stage, ...]:
    """As many groups of `radix` as fit, and one of what is left; at least half of all ranks."""
    left, found = problem.ranks, []
    while left > 1:
        found.append(Stage(min(radix, left), divided=False))
        left //= radix
    return tuple(found)


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    radices = [radix for radix in RADICES if radix < problem.ranks]
    if not radices:
        return []
    best = min(radices, key=lambda k: exchange_estimate(problem, machine, stages(problem, k)))
    return [{"radix": best}]


def _time(problem: Problem, machine: Machine, radix: int) -> Fraction:
    return exchange_time(problem, machine, stages(problem, radix))


register(
    Algorithm(
        name="allreduce/recursive_multiplying",
        summary="groups of k ranks exchange whole vectors, round after round",
        source=("Ruefenacht2017",),
        time="log_k(p)·(k − 2 + λ)·t0 for p = k^r, and combining",
        build=unless_alone(
            lambda problem, settings: Exchange(problem, stages(problem, settings["radix"]))
        ),
        predicted=lambda problem, machine, settings: _time(problem, machine, settings["radix"]),
        choices=_choices,
        parameters={"radix": integer("radix", 2, "the ranks in a group, an integer of at least 2")},
    )
)
register(
    Algorithm(
        name="allreduce/gather_combine",
        summary="everybody sends to everybody, and combines in the order of the ranks",
        source=("BarNoyKipnis1994",),
        time="(p − 2 + λ)·t0, and combining",
        build=unless_alone(lambda problem, _: Exchange(problem, stages(problem, problem.ranks))),
        predicted=lambda problem, machine, _: _time(problem, machine, problem.ranks),
        choices=lambda problem, _: [{}] if problem.ranks <= LARGEST_GATHERED else [],
    )
)
