"""An allreduce on a hypercube of 2^d ranks, in which every rank uses all of its d ports at once.

The vector has d parts, each of which crosses the cube's directions in an order of its own.  §7 of
[vandeGeijn1991] only says that this can be done.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from collwise.algorithms.exchanges import STRATEGY, by_strategy, cube_dimension
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Settings
from collwise.model import hybrid
from collwise.model.machine import Machine, Wormhole
from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import equal_parts


@dataclass(frozen=True)
class AllPorts(Program):
    """The program: part k is exchanged in direction k first, then in direction k + 1, ….

    If there are e ranks more than 2^d, ranks 1, 3, …, 2e − 1 first send their vectors to ranks
    0, 2, …, 2e − 2, which send them the result at the end.
    """

    problem: Problem
    stages: tuple[Stage, ...]

    @cached_property
    def extra(self) -> int:
        """Number of ranks beyond the 2^d ranks of the cube."""
        return self.problem.ranks - (1 << len(self.stages))

    @cached_property
    def parts(self) -> dict[int, Block]:
        """Each part's byte range, by its first direction; one part if halves would be empty."""
        d, whole = len(self.stages), Block(0, 0, self.problem.nbytes)
        least = d << sum(stage.divided for stage in self.stages)
        if self.problem.nbytes < least * self.problem.itemsize:
            return {d - 1: whole}
        parts = equal_parts(whole, d, self.problem.itemsize)
        return {k: part for k, (part,) in enumerate(parts)}

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        vector, partner = self.problem.vector, rank ^ 1
        if not vector:
            return []
        if rank >= 2 * self.extra:
            return self._together(rank - self.extra, Slot.INPUT)
        if rank % 2:
            return [Send(partner, vector, Slot.INPUT), Recv(partner, vector)]
        both = scratch(0)
        return [
            Recv(partner, vector, both),
            Combine(Slot.INPUT, both, both, vector),
            *self._together(rank // 2, both),
            Send(partner, vector, Slot.OUTPUT),
        ]

    def _together(self, number: int, value: int) -> list[Operation]:
        """The operations of one node of the cube, taken from all parts in turn.

        number: the node's number in the cube.   value: the slot with the vector to combine.
        """
        lists = (self._part(number, k, part, value) for k, part in self.parts.items())
        return list(chain.from_iterable(zip(*lists, strict=True)))  # all lists are equally long

    def _part(self, number: int, k: int, part: Block, value: int) -> list[Operation]:
        """The operations of node `number` for part k; node numbers are rotated by k bits."""
        d = len(self.stages)

        def rotated(number: int, by: int) -> int:
            return (number >> by | number << (d - by)) % (1 << d)

        def moved(op: Operation) -> Operation:
            blocks = tuple(b._replace(offset=b.offset + part.offset) for b in op.blocks)
            match op:
                case Send() | Recv():
                    peer = rotated(op.peer, d - k)
                    peer += min(peer, self.extra)
                    return op._replace(peer=peer, blocks=blocks, slot=slot(op.slot))
                case Combine():
                    left, right, into = map(slot, op[:3])
                    return Combine(left, right, into, blocks)
            raise AssertionError(op)  # an allreduce in groups copies nothing

        def slot(name: int) -> int:
            """The program's slot for slot `name` of part k; parts have their own scratch slots."""
            if name == Slot.INPUT:
                return value
            return name if name < Slot.SCRATCH else scratch(1 + (name - Slot.SCRATCH) * d + k)

        inner = Problem("allreduce", 1 << d, part.length, itemsize=self.problem.itemsize)
        return [moved(op) for op in Exchange(inner, self.stages).operations(rotated(number, k))]


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The best `strategy` for one part; empty for p < 4, or without a port for each direction.

    Combining counts d-fold, since a processor combines all d parts, one after another.
    """
    d = cube_dimension(problem.ranks)
    if d < 2 or not isinstance(machine, Wormhole) or not machine.all_port:
        return []
    strategy = hybrid.best_for(
        lambda items: machine.message(items * problem.itemsize).latency,
        lambda items: d * (machine.combine(items * problem.itemsize) or 0),
        -(-problem.nbytes // problem.itemsize // d),
        d,
    )
    return [{"strategy": strategy}]


register_combining(
    "allreduce/all_ports",
    "d parts of the vector travel at once along a cube's directions, each in another order",
    "T(S, n/d, d) with dγ in place of γ, for p = 2^d and a port for each direction",
    lambda problem, settings: AllPorts(problem, by_strategy(problem, settings)),
    source=("vandeGeijn1991 §7",),
    choices=_choices,
    parameters={"strategy": STRATEGY},
    order=lambda problem: "rank" if cube_dimension(problem.ranks) < 2 else "same",
    segmented=True,
    searched=False,
)
