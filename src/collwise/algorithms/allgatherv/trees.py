"""An allgatherv: one broadcast for every source, down a λ-tree (optimal for the latency λ).

Contributions of different sources are not merged, so no message waits for a second contribution.
But messages share ports, and every rank handles the sources in the same order. Each contribution
takes p − 1 messages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from collwise.algorithms.allgatherv.spreading import register_allgatherv, simulable
from collwise.algorithms.broadcast.postal_tree import LAM, tree
from collwise.algorithms.registry import Settings
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Blocks, Delivery, SeparateMessages
from collwise.schedule.problem import Problem
from collwise.schedule.trees import Tree
from collwise.system.integers import Ints


def down_trees(
    tree: Tree, contributions: Iterable[tuple[int, Blocks]], rank: int | None
) -> Iterator[Delivery]:
    """Deliveries that broadcast the blocks of several roots, one root after another.

    tree: the tree for root 0, which is rotated to each root; a rank receives before it sends.
    contributions: (root, the root's blocks) pairs.   rank: yield only this rank's deliveries; None
    for all.
    """
    ranks = tree.size
    everywhere = tree_edges(tree) if rank is None else []
    for root, blocks in contributions:
        edges = everywhere if rank is None else tree_edges(tree, (rank - root) % ranks)
        for parent, child in edges:
            yield Delivery((parent + root) % ranks, (child + root) % ranks, blocks)


def tree_edges(tree: Tree, rank: int | None = None) -> list[tuple[int, int]]:
    """The edges of a tree as (parent, child) pairs, edges nearer to the root first.

    rank: return only edges from or to this rank; None for all edges.
    """
    if rank is not None:
        family = tree.family(rank)
        above = [(family.parent, rank)] if rank else []
        return [*above, *((rank, child) for child in family.children)]
    edges, todo = [], [0]
    for node in todo:  # the loop appends to the list
        children = tree.family(node).children
        edges += [(node, child) for child in children]
        todo += children
    return edges


@dataclass(frozen=True)
class Broadcasts(SeparateMessages):
    """One broadcast for every source.   tree: the tree for root 0; rotated for other sources."""

    tree: Tree

    def messages(self) -> tuple[Ints, Ints, Ints]:  # noqa: D102
        ranks, source_ranks = self.tree.size, self.source_ranks
        edges = np.array(tree_edges(self.tree), dtype=np.int64).reshape(-1, 2)
        source, target = (np.add.outer(source_ranks, end).ravel() % ranks for end in edges.T)
        return source, target, np.repeat(np.arange(len(source_ranks)), len(edges))

    def messages_of(self, rank: int) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        yield from down_trees(self.tree, ((block.owner, (block,)) for block in contributions), rank)


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `lam`: the machine's λ for a message as long as the mean contribution.

    Empty if the problem is too large to simulate.
    """
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
