"""One broadcast down a λ-tree for every source; no messages are merged, so none waits for others.

Each source's contribution takes p − 1 messages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collwise.algorithms.allgatherv.spreading import register_allgatherv, simulable
from collwise.algorithms.broadcast.postal_tree import LAM, tree
from collwise.algorithms.registry import Settings
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Blocks, Deliveries, Delivery
from collwise.schedule.problem import Problem
from collwise.schedule.trees import Tree


def down_trees(
    tree: Tree, contributions: Iterable[tuple[int, Blocks]], rank: int | None
) -> Iterator[Delivery]:
    """Broadcast each root's blocks down the tree, rotated to the root; parents before children.

    contributions: (root, blocks) pairs.
    """
    ranks = tree.size
    edges = tree_edges(tree) if rank is None else []
    for root, blocks in contributions:
        if rank is not None:
            node = (rank - root) % ranks
            family = tree.family(node)
            edges = [(family.parent, node)] if node else []
            edges += [(node, child) for child in family.children]
        for parent, child in edges:
            yield Delivery((parent + root) % ranks, (child + root) % ranks, blocks)


def tree_edges(tree: Tree) -> list[tuple[int, int]]:
    """All edges of a tree as (parent, child); a rank receives before it sends."""
    edges, todo = [], [0]
    for node in todo:  # the loop appends to the list
        children = tree.family(node).children
        edges += [(node, child) for child in children]
        todo += children
    return edges


@dataclass(frozen=True)
class Broadcasts(Deliveries):
    """One tree for every source, rotated so that the source is its root."""

    tree: Tree

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        yield from down_trees(self.tree, ((block.owner, (block,)) for block in contributions), rank)


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The machine's λ for messages of the mean contribution's size."""
    lam = machine.planning_lam(problem.nbytes // max(1, len(problem.sources)))
    return [{"lam": lam, **settings} for settings in simulable(problem, machine)]


register_allgatherv(
    "broadcasts",
    "one λ-tree broadcast for every source, without interaction",
    ("Hambrusch1998 §2", "BarNoyKipnis1994"),
    "from T_λ(p) to s·T_λ(p) in t0",
    lambda problem, settings: Broadcasts(problem, tree(problem.ranks, settings["lam"])),
    parameters={"lam": LAM},
    choices=_choices,
    searched=False,
)
