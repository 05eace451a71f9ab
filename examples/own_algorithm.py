"""6. An algorithm of your own: written, proved, predicted, and run on MPI.

    mpiexec -n 4 python examples/own_algorithm.py

Two arms: the root starts two chains that lead around the ring of ranks in opposite directions.
`docs/own-algorithm.md` explains it line by line.
"""

from fractions import Fraction

import numpy as np
from mpi4py import MPI

import collwise as cw
from collwise.schedule.operations import Block, Operation, Recv, Send
from collwise.schedule.program import Program


class TwoArms(Program):
    """What rank r does, where the root is rank 0."""

    def __init__(self, ranks: int, nbytes: int) -> None:
        self.ranks, self.everything = ranks, (Block(0, 0, nbytes),)

    def operations(self, rank: int) -> list[Operation]:
        if self.ranks == 1 or not self.everything[0].length:
            return []
        first = self.ranks // 2  # ranks 1 … first; the others are served backwards
        if rank == 0:
            ends = [1, self.ranks - 1] if self.ranks > 2 else [1]
            return [Send(peer, self.everything) for peer in ends]
        step = 1 if rank <= first else -1
        before, after = rank - step, rank + step
        received = Recv(before % self.ranks, self.everything)
        last = rank in (first, first + 1)
        return [received] if last else [received, Send(after, self.everything)]


def formula(ranks: int, nbytes: int, machine: cw.Machine) -> Fraction:
    """The first arm is as long as the second or longer by one, and starts t0 earlier."""
    if ranks == 1:
        return Fraction(0)
    one = machine.message(nbytes)
    first = ranks // 2
    second = ranks - 1 - first
    return max(first * one.latency, (one.gap if second else 0) + second * one.latency)


TWO_ARMS = cw.register(
    cw.Algorithm(
        name="broadcast/two_arms",
        summary="two chains, in both directions around the ring",
        source=(),
        time="max(⌈(p − 1)/2⌉·λ, 1 + ⌊(p − 1)/2⌋·λ)·t0",
        build=lambda problem, settings: TwoArms(problem.ranks, problem.nbytes),
    )
)

machine = cw.Machine.postal(t0_s="1e-6", lam=3)
comm = cw.Comm(MPI.COMM_WORLD, machine=machine, algorithms={"broadcast": "two_arms"})

x = np.arange(100.0) if comm.rank == 0 else np.zeros(100)
comm.Bcast(x)  # by name
y = np.full(100, float(comm.rank))
schedule = TWO_ARMS.schedule(comm.size, y.nbytes, root=comm.size // 2)
cw.run(schedule, comm, y)  # by hand

right = comm.allreduce(
    bool((x == np.arange(100)).all() and (y == comm.size // 2).all()), op=MPI.LAND
)
if comm.rank == 0:
    cw.verify(schedule)
    exact = TWO_ARMS.predict(machine, comm.size, y.nbytes) == formula(comm.size, y.nbytes, machine)
    print(f"on {comm.size} ranks:", "right on all of them" if right else "wrong")
    print("proved; its time is", "as predicted" if exact else "not as predicted")
    print(comm.explain("broadcast", 800))
    for candidate in cw.plan("broadcast", ranks=64, nbytes=800, machine=machine).candidates:
        if candidate.name in ("broadcast/two_arms", "broadcast/postal_tree", "broadcast/chain"):
            print(f"  64 ranks: {candidate.label}, {candidate.predicted_s * 1e6:g} µs")
