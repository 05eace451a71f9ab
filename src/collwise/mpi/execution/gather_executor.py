"""Allgatherv and Allgather: contributions of some ranks, into a receive buffer with parts.

A rank sends its own contribution from its send buffer, and copies it into place while messages are
on their way.  What others contributed is sent on out of the receive buffer: nothing is packed.
"""

from collections.abc import Hashable
from typing import Any

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import is_in_place
from collwise.mpi.buffers.memory import Memory
from collwise.mpi.buffers.vector_layout import (
    SPECS,
    VectorBuffer,
    VectorLayout,
    contribution,
    vector_key,
)
from collwise.mpi.execution.executor import LAYOUTS, BoundedCache, Executor, Operands
from collwise.mpi.execution.instructions import RankPlan, rank_plan
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.operations import Copy, Operation, Send, Slot
from collwise.schedule.program import Schedule


class GatherExecutor(Executor):
    """Executes one rank's part of an s-to-p broadcast.

    method: whose receive buffers it takes, "Allgather" or "Allgatherv".  Contributions land where
    displacements say, in elements of the receive buffer's type; gaps stay as they are.
    Raises InvalidArgument also for parts of a receive buffer that overlap or reach beyond it.
    """

    def __init__(
        self, schedule: Schedule, private: PrivateCommunicator, method: str = "Allgatherv"
    ) -> None:
        super().__init__(schedule, private)
        self._method = method
        own = (block for block in self.problem.gathered if block.owner == private.rank)
        self._own = next(own, None)
        lengths = dict(self.problem.sources)
        self._lengths = tuple(lengths.get(rank, 0) for rank in range(private.size))
        self._layouts: BoundedCache[Hashable, VectorLayout] = BoundedCache(LAYOUTS)

    def _operands(self, *buffers: Any) -> Operands:
        sendbuf, recvbuf = buffers
        key = vector_key(self._method, recvbuf)
        received = self._received(recvbuf, key)
        slots: dict[int, Memory] = {Slot.OUTPUT: received.memory}
        keep = [received.keep]
        contiguous = True
        if not (in_place := is_in_place(sendbuf)):
            sent = contribution(sendbuf, self.private.rank, self._lengths)
            contiguous = sent.unit.contiguous
            slots[Slot.INPUT] = Memory(sent.address) if contiguous else sent.memory
            keep.append(sent.keep)
        layout = None if key is None or not contiguous else received.layout
        distances: dict[int, tuple[bool, int]] = {Slot.OUTPUT: (True, 0)}
        if not in_place:
            distances[Slot.INPUT] = False, 0
        return Operands(slots, in_place, layout, keep, distances=distances)

    def _received(self, recvbuf: Any, key: Hashable) -> VectorBuffer:
        """The receive buffer, which must have the schedule's bytes of every rank."""
        layout = None if key is None else self._layouts.get(key)
        data = recvbuf[0] if isinstance(recvbuf, list | tuple) else recvbuf
        if layout is not None and data is not None and data is not MPI.BOTTOM:
            memory = MPI.buffer.frombuffer(data)
            layout.fit(memory.nbytes)
            return VectorBuffer(memory, memory.address, layout)
        ranks = self.private.size
        received = VectorBuffer.read(SPECS[self._method](recvbuf, ranks), ranks)
        lengths = received.layout.lengths
        if lengths != self._lengths:
            rank = next(r for r, ours in enumerate(self._lengths) if lengths[r] != ours)
            raise InvalidArgument(
                f"a schedule for {self._lengths[rank]} bytes from rank {rank}",
                f"the receive buffer of rank {self.private.rank} has {lengths[rank]} for it",
                "plan for the counts that all ranks pass, or correct counts and type",
            )
        if key is not None:
            self._layouts.remember(key, received.layout)
        return received

    def _plan(self, variant: Any) -> RankPlan:
        in_place = variant
        if in_place or self._own is None:
            return rank_plan(self._operations)
        own = (self._own,)
        operations: list[Operation] = [Copy(Slot.INPUT, Slot.OUTPUT, own)]
        for op in self._operations:
            if isinstance(op, Send) and op.blocks == own:
                op = op._replace(slot=Slot.INPUT)
            operations.append(op)
        return rank_plan(operations)

    @property
    def derived_types(self) -> int:
        """How many derived types MPI holds for blocking calls."""
        return sum(len(bound.types) for bound in self._bound.values())

    def Free(self) -> None:  # noqa: N802, D102
        super().Free()
        self._layouts.clear()
