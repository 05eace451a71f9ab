"""All ports of a cube at once: the vector in d parts, each through the directions in another order.

The paper's §7 only says that it can be done.
"""

from dataclasses import dataclass
from itertools import chain

from collwise.schedule.exchange import Exchange, Stage
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program


@dataclass(frozen=True)
class AllPorts(Program):
    """An allreduce on 2^d ranks: part k goes first through direction k, then k + 1, and so on.

    divided: by stage, whether halves are exchanged.   The vector divides into d·2^d whole items.
    """

    problem: Problem
    divided: tuple[bool, ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        d = len(self.divided)
        lists = (self._part(rank, k, d) for k in range(d))
        return list(chain.from_iterable(zip(*lists, strict=True)))  # all are alike

    def _part(self, rank: int, k: int, d: int) -> list[Operation]:
        """What a rank does with part k: the exchange of ranks whose bits are rotated by k."""

        def rotated(number: int, by: int) -> int:
            return (number >> by | number << (d - by)) % (1 << d)

        length = self.problem.nbytes // d
        exchange = Exchange(
            Problem("allreduce", 1 << d, length, itemsize=self.problem.itemsize),
            tuple(Stage(2, halves) for halves in self.divided),
        )

        def moved(op: Operation) -> Operation:
            blocks = tuple(Block(b.owner, b.offset + k * length, b.length) for b in op.blocks)
            match op:
                case Send() | Recv():
                    return op._replace(
                        peer=rotated(op.peer, d - k), blocks=blocks, slot=slot(op.slot)
                    )
                case Combine():
                    left, right, into = map(slot, op[:3])
                    return Combine(left, right, into, blocks)
            return op._replace(blocks=blocks)

        def slot(number: int) -> int:
            """Scratch of its own for every part."""
            own = number - Slot.SCRATCH
            return number if own < 0 else Slot.SCRATCH + own * d + k

        return [moved(op) for op in exchange.operations(rotated(rank, k))]
