"""One λ-tree from the first source, to which the others send straight.

It broadcasts all contributions as one message down the tree that is optimal in the postal model:
for few sources where λ is large.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.broadcast.postal_tree import LAM, tree
from collwise.algorithms.broadcast.segmented_tree import tree_time
from collwise.algorithms.registry import Settings
from collwise.algorithms.s_to_p.spreading import MAX_RECEIVED, register_s_to_p
from collwise.algorithms.s_to_p.trees import down_trees
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Deliveries, Delivery
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.schedule.trees import Tree
from collwise.timing.trace import fastest_timing


@dataclass(frozen=True)
class SourceTree(Deliveries):
    """One tree, whose root is the first source."""

    tree: Tree

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        for block in contributions:
            yield Delivery(block.owner, contributions[0].owner, (block,))
        if contributions:
            yield from down_trees(self.tree, [(contributions[0].owner, contributions)], rank)


def _too_many(problem: Problem) -> bool:
    return problem.ranks * len(problem.sources) > MAX_RECEIVED


def _source_tree_time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    """Simulated; where that takes too long, an estimate from above, as if all ranks got everything.

    With one source it is the time of the tree.
    """
    program = SourceTree(problem, tree(problem.ranks, settings["lam"]))
    if not _too_many(problem) and len(problem.sources) > 1:
        return fastest_timing(Schedule(problem, program), machine).completion
    others = Counter(source.nbytes for source in problem.sources[1:])
    costs = [(machine.message(nbytes), number) for nbytes, number in others.items()]
    gathered = max((cost.latency for cost, _ in costs), default=Fraction(0))
    gathered += sum((cost.gap * number for cost, number in costs), Fraction(0))
    return gathered + tree_time(program.tree, problem.nbytes, machine)


register_s_to_p(
    "source_tree",
    "the other sources send to the first, which broadcasts everything down a λ-tree",
    ("BarNoyKipnis1994",),
    "T_λ(p) in t0, up to λ + s − 2 more if s > 1, all messages counted as one size",
    lambda problem, settings: SourceTree(problem, tree(problem.ranks, settings["lam"])),
    parameters={"lam": LAM},
    choices=lambda problem, machine: [{"lam": machine.planning_lam(problem.nbytes)}],
    predicted=_source_tree_time,
    simulated=lambda problem, _: 0,
    estimated=lambda problem, _: _too_many(problem) and len(problem.sources) > 1,
)
