"""Broadcasts by scatter and allgather: their program and registration.

This is the long-vector broadcast of van de Geijn: a scatter down a binomial tree halves the message
again and again, then an allgather collects the pieces in steps.  A rank that has forwarded pieces
in the scatter does not receive them again.
"""

from collections.abc import Callable

from collwise.algorithms.broadcast import binomial
from collwise.algorithms.registry import Algorithm, Settings, register
from collwise.errors import BeyondLimits
from collwise.model.limits import COLLECTED_STEPS
from collwise.schedule.data_movement import ScatterCollect, Steps
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


def register_scatter_collect(
    name: str,
    summary: str,
    time: str,
    source: tuple[str, ...],
    steps: Callable[[int], Steps],
    most: int,
) -> Algorithm:
    """Register a broadcast that scatters down the binomial tree and then collects in steps.

    steps: maps the number of ranks to the steps of the allgather.   most: the largest number of
    ranks for which plans try the broadcast.
    """

    def build(problem: Problem, _: Settings) -> Program:
        if (turns := len(steps(problem.ranks))) > COLLECTED_STEPS:
            asked, seen = f"{problem} by {name}", f"a rank would take {turns:,} steps"
            raise BeyondLimits(asked, seen, "choose fewer ranks, or another algorithm")
        item = problem.itemsize  # no element is cut
        piece = max(-(-problem.nbytes // (problem.ranks * item)), 1) * item
        tree = binomial.tree(problem.ranks)
        return ScatterCollect(tree, problem.nbytes, piece, steps(problem.ranks))

    return register(
        Algorithm(
            name=f"broadcast/{name}",
            summary=summary,
            source=source,
            time=time,
            build=build,
            choices=lambda problem, _: [{}] * (2 < problem.ranks <= min(most, problem.nbytes)),
            segmented=True,
            usual=True,
        )
    )
