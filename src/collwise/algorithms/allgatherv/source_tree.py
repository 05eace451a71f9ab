"""All other sources send to the first source, which broadcasts everything down a λ-tree.

The first source broadcasts all contributions as one message.  The tree is optimal in the postal
model.  The algorithm is for few sources and large λ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collwise.algorithms.allgatherv.spreading import register_allgatherv
from collwise.algorithms.allgatherv.trees import down_trees
from collwise.algorithms.broadcast.postal_tree import LAM, tree
from collwise.schedule.deliveries import Deliveries, Delivery
from collwise.schedule.trees import Tree


@dataclass(frozen=True)
class SourceTree(Deliveries):
    """All other sources send to the first source, which broadcasts everything down a tree.

    tree: built for root 0; its ranks are shifted so that the first source is the root.
    """

    tree: Tree

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        for block in contributions:
            yield Delivery(block.owner, contributions[0].owner, (block,))
        if contributions:
            yield from down_trees(self.tree, [(contributions[0].owner, contributions)], rank)


register_allgatherv(
    "source_tree",
    "the other sources send to the first, which broadcasts everything down a λ-tree",
    ("BarNoyKipnis1994",),
    "T_λ(p) in t0, up to λ + s − 2 more if s > 1, all messages counted as one size",
    lambda problem, settings: SourceTree(problem, tree(problem.ranks, settings["lam"])),
    parameters={"lam": LAM},
    choices=lambda problem, machine: [{"lam": machine.planning_lam(problem.nbytes)}],
)
