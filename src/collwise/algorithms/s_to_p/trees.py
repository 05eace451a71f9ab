"""λ-trees: a broadcast for every source, or one for all of them from the first source.

`broadcasts`: nobody waits to combine, nothing is combined; p − 1 messages for every source.
`source_tree`: the other sources send straight to the first one, which broadcasts all as one message
down the tree that is optimal in the postal model: for few sources where λ is large.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from collwise.algorithms.broadcast.postal_tree import LAM, tree
from collwise.algorithms.broadcast.segmented_tree import tree_time
from collwise.algorithms.registry import Settings
from collwise.algorithms.s_to_p.spreading import MAX_RECEIVED, register_s_to_p, simulable
from collwise.model.machine import Machine
from collwise.schedule.deliveries import Blocks, Deliveries, Delivery, SeparateMessages
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule
from collwise.schedule.trees import Tree
from collwise.system.integers import Ints
from collwise.timing.trace import fastest_timing


def _down(
    tree: Tree, contributions: Iterable[tuple[int, Blocks]], rank: int | None
) -> Iterator[Delivery]:
    """From each root, who gives blocks, down the tree; parents before their children."""
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
    """Parents and children, parents first."""
    edges, todo = [], [0]
    for node in todo:  # grows while it is walked
        children = tree.family(node).children
        edges += [(node, child) for child in children]
        todo += children
    return edges


@dataclass(frozen=True)
class Broadcasts(SeparateMessages):
    """One tree for every source, rotated so that the source is its root."""

    tree: Tree

    def messages(self) -> tuple[Ints, Ints, Ints]:  # noqa: D102
        ranks, source_ranks = self.tree.size, self.source_ranks
        edges = np.array(tree_edges(self.tree), dtype=np.int64).reshape(-1, 2)
        source, target = (np.add.outer(source_ranks, end).ravel() % ranks for end in edges.T)
        return source, target, np.repeat(np.arange(len(source_ranks)), len(edges))

    def messages_of(self, rank: int) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        yield from _down(self.tree, ((block.owner, (block,)) for block in contributions), rank)


@dataclass(frozen=True)
class SourceTree(Deliveries):
    """One tree, whose root is the first source."""

    tree: Tree

    def deliveries(self, rank: int | None) -> Iterator[Delivery]:  # noqa: D102
        contributions = self.problem.gathered
        for block in contributions:
            yield Delivery(block.owner, contributions[0].owner, (block,))
        if contributions:
            yield from _down(self.tree, [(contributions[0].owner, contributions)], rank)


def _at(
    sizes: Callable[[Problem], int],
) -> Callable[[Problem, Machine], Iterable[Settings]]:
    """The λ that the machine has at the size of the messages."""

    def choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
        lam = machine.planning_lam(sizes(problem))
        return [{"lam": lam, **settings} for settings in simulable(problem, machine)]

    return choices


register_s_to_p(
    "broadcasts",
    "one λ-tree broadcast for every source, without interaction",
    ("Hambrusch1998 §2", "BarNoyKipnis1994"),
    "from T_λ(p) to s·T_λ(p) in t0",
    lambda problem, settings: Broadcasts(problem, tree(problem.ranks, settings["lam"])),
    parameters={"lam": LAM},
    choices=_at(lambda p: p.nbytes // max(1, len(p.sources))),
)


def _too_many(problem: Problem) -> bool:
    return problem.ranks * len(problem.sources) > MAX_RECEIVED


def _source_tree_time(problem: Problem, machine: Machine, settings: Settings) -> Fraction:
    """As simulated, or where that takes too long from above, as if everybody got everything.

    Of one source it is the time of the tree.
    """
    program = SourceTree(problem, tree(problem.ranks, settings["lam"]))
    if not _too_many(problem) and len(problem.sources) > 1:
        return fastest_timing(Schedule(problem, program), machine).completion
    others = [machine.message(source.nbytes) for source in problem.sources[1:]]
    gathered = max((latency for _, latency in others), default=Fraction(0))
    gathered += sum((gap for gap, _ in others), Fraction(0))
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
