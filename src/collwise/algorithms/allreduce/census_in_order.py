"""Every rank gathers all vectors by the census, then combines them in the order "fixed".

The allreduce is for short vectors: where t0 does not grow with the message size, the allgather
takes T_λ(p)·t0.  All ranks end with the same bits, and operators need not commute.  The algorithms
of the module `census` do not ensure this, since every rank combines in a different order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from collwise.algorithms.allgatherv.census import LATENCY, census_time, latencies, shifts
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Rough
from collwise.model.limits import GATHERED_RANKS, MAX_GATHERED, RING_RANKS
from collwise.model.machine import Machine
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem, brackets
from collwise.schedule.program import Program
from collwise.schedule.rows import Class, around_a_circle

_ALL = scratch(0)
"""The scratch slot in which a rank gathers all vectors, in the order of the ranks."""


@dataclass(frozen=True)
class CensusInOrder(Program):
    """An allgather of all vectors into scratch memory; then every rank combines them in rank order.

    The allgather is the census of the postal model.   k: the latency λ in units of t0, an integer.
    """

    problem: Problem
    k: int

    def classes(self) -> list[Class]:  # noqa: D102
        return [around_a_circle(self.problem.ranks)]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p, nbytes, vector = self.problem.ranks, self.problem.nbytes, self.problem.vector
        if not vector:
            return []
        operations: list[Operation] = [Copy(Slot.INPUT, _ALL, vector, rank * nbytes)]
        for distance, width in shifts(p, self.k):
            to, source = (rank - distance) % p, (rank + distance) % p
            operations.append(Send(to, self._vectors(rank, width), _ALL))
            operations.append(Recv(source, self._vectors(source, width), _ALL))
        slots = [*map(scratch, range(1, p)), Slot.OUTPUT]
        for other, slot in enumerate(slots):
            block = Block(0, other * nbytes, nbytes)
            operations.append(Copy(_ALL, slot, (block,), -other * nbytes))
        for left, right in brackets(p):
            operations.append(Combine(slots[left], slots[right], slots[right], vector))
        return operations

    def _vectors(self, first: int, number: int) -> tuple[Block, ...]:
        """Byte ranges of the vectors of ranks first … first + number − 1, modulo p.

        The ranges are in the slot _ALL.
        """
        nbytes, ahead = self.problem.nbytes, min(number, self.problem.ranks - first)
        blocks = Block(0, first * nbytes, ahead * nbytes), Block(0, 0, (number - ahead) * nbytes)
        return tuple(block for block in blocks if block.length)


def _choices(problem: Problem, machine: Machine) -> Iterable[Rough]:
    many = problem.ranks > GATHERED_RANKS and problem.ranks * problem.nbytes > MAX_GATHERED
    if many or not 1 < problem.ranks <= RING_RANKS:
        return []
    asked = problem.ranks, problem.nbytes
    return [
        Rough(census_time(*asked, k, machine), {"latency": k}) for k in latencies(*asked, machine)
    ]


register_combining(
    "allreduce/census_in_order",
    "every rank gathers all vectors by a census, and combines them in the order of ranks",
    "T_k(p)·t0 for λ = k, all messages counted as one size, and combining",
    lambda problem, settings: CensusInOrder(problem, settings["latency"]),
    order=lambda problem: "fixed",
    source=("Bruck1996 §3",),
    choices=_choices,
    parameters={"latency": LATENCY},
)
