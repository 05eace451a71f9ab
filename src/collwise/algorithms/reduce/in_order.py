"""Reduce in the order of the ranks to any root, for operators that do not commute.

The ranks from the root to p − 1 combine up a λ-tree to the root.  The ranks below the root combine
up a mirrored λ-tree to rank root − 1, which sends its result to the root at the end.
"""

from dataclasses import dataclass
from fractions import Fraction

from collwise.algorithms.broadcast import postal_tree
from collwise.algorithms.reductions import register_combining
from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import receive_and_combine


@dataclass(frozen=True)
class InOrder(Program):
    """A reduce in rank order.   lam: the λ of both trees, in t0.

    Virtual ranks 0 … p − root − 1 are ranks root … p − 1; the last `root` are ranks 0 … root − 1.
    """

    problem: Problem
    lam: Fraction

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, root = self.problem.ranks, self.problem.root
        if not (vector := self.problem.vector):
            return []
        if below := rank >= p - root:  # the mirrored tree: its root is virtual rank p − 1
            parent, _, children = postal_tree.tree(root, self.lam).family(p - 1 - rank)
            parent, children = p - 1 - parent if rank < p - 1 else 0, [p - 1 - c for c in children]
        else:
            parent, _, children = postal_tree.tree(p - root, self.lam).family(rank)
        result = None if rank or root else Slot.OUTPUT
        operations, value = receive_and_combine(
            reversed(children), vector[0], result, mirrored=below
        )
        if rank:
            return [*operations, Send(parent, vector, value)]
        if root:
            received = scratch(len(children) + 1)
            operations.append(Recv(p - 1, vector, received))
            operations.append(Combine(received, value, Slot.OUTPUT, vector))
        return operations


register_combining(
    "reduce/in_order",
    "two λ-trees, of the ranks before the root and of the others; combines in the order of ranks",
    "max(T_λ(p − r), T_λ(r) + λ)·t0 or one message more, for root r, and combining",
    lambda problem, settings: InOrder(problem, settings["lam"]),
    source=("BarNoyKipnis1994", "MPICH"),
    **postal_tree.BY_LAM,
)
