"""Bcast: one buffer, whose bytes move as they are."""

from collections.abc import Hashable
from typing import Any

from collwise.mpi.buffers.memory import PACKED, USER, Memory
from collwise.mpi.execution.executor import CallBuffers, Executor
from collwise.mpi.execution.instructions import RankPlan, rank_plan
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.progress import may_call_mpi
from collwise.schedule.operations import Copy, Slot
from collwise.schedule.program import Schedule


class BroadcastExecutor(Executor):
    """Executes one rank's part of a broadcast.

    Segments are bytes of the buffer, or of a packed copy if the buffer's bytes are not in the order
    of sending.  If all messages are the whole buffer and `may_call_mpi()`, MPI packs them itself.
    """

    def __init__(self, schedule: Schedule, private: PrivateCommunicator) -> None:
        super().__init__(schedule, private)
        self._is_root = private.rank == self.problem.root
        self._unsegmented = all(op.blocks == (self.problem.whole,) for op in self._operations)

    def _read_buffers(self, *buffers: Any) -> CallBuffers:
        (spec,) = buffers
        buffer = self._fitting(spec, self.problem.nbytes, writable=not self._is_root)
        unit = buffer.unit
        displacements: dict[int, tuple[bool, int]] = {Slot.OUTPUT: (False, 0)}
        layout: Hashable = "bytes"
        slots: dict[int, Memory] = {Slot.OUTPUT: Memory(buffer.address)}
        direct = self._unsegmented and (unit.contiguous or may_call_mpi())
        if direct:
            layout = unit.datatype.handle if unit.datatype.is_predefined else None
            slots = {Slot.OUTPUT: buffer.memory}
        if direct or unit.contiguous:
            return CallBuffers(slots, "direct", layout, buffer.keep, displacements=displacements)
        return CallBuffers({USER: buffer.memory}, "packed", keep=buffer.keep, unit=PACKED)

    def _plan(self, variant: Any) -> RankPlan:
        everything = (self.problem.whole,)
        operations = self._operations
        if variant == "packed" and self._is_root:
            operations = (Copy(USER, Slot.OUTPUT, everything), *operations)
        elif variant == "packed":
            operations = (*operations, Copy(Slot.OUTPUT, USER, everything))
        return rank_plan(operations)
