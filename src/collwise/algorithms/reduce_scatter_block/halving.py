"""Recursive halving in the order of the ranks: neighbours first, each keeps every other block.

The first half of halving and doubling [vandeGeijn1991 §3.3].  Ranks that lie side by side exchange
first, so that operators need not commute; what a rank keeps are the blocks of the ranks that it
will still exchange with.  Ranks beyond the largest 2^d hand their vectors over and get one block.
"""

from collwise.algorithms.reductions import by_strategy, exchange_time, twos, unless_alone
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.problem import Problem


def _stages(problem: Problem) -> tuple[Stage, ...]:
    return by_strategy((1,) * twos(problem.ranks))


register(
    Algorithm(
        name="reduce_scatter_block/recursive_halving",
        summary="exchange and combine halves with a neighbour in every direction",
        source=("vandeGeijn1991 §3.3", "Thakur2005"),
        time="dα + (p − 1)/p·n(β + γ) for p = 2^d",
        build=unless_alone(lambda problem, _: Exchange(problem, _stages(problem))),
        predicted=lambda problem, machine, _: exchange_time(problem, machine, _stages(problem)),
        segmented=True,
    )
)
