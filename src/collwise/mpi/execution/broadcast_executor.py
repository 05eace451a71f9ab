"""Bcast: one buffer, whose bytes move as they are."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from collwise.mpi.buffers.memory import PACKED, USER, Memory
from collwise.mpi.engine.compiled_plan import FastCall
from collwise.mpi.engine.loading import COMPILED
from collwise.mpi.execution.executor import CallBuffers, Executor
from collwise.mpi.execution.instructions import RankPlan, rank_plan
from collwise.mpi.execution.interpreter import BoundPlan
from collwise.mpi.runtime.private_communicator import BLOCKING_TAG, PrivateCommunicator
from collwise.schedule.operations import Copy, Slot
from collwise.schedule.program import Schedule


class BroadcastExecutor(Executor):
    """Executes one rank's part of a broadcast.

    Segments are bytes of the buffer, or of a packed copy if its bytes are not in order.  If every
    message is the whole buffer, nothing has to be packed.
    """

    def __init__(self, schedule: Schedule, private: PrivateCommunicator) -> None:
        super().__init__(schedule, private)
        self._is_root = private.rank == self.problem.root
        self._unsegmented = all(op.blocks == (self.problem.whole,) for op in self._operations)
        self._unread: BoundPlan | None = None

    def run(self, *buffers: Any) -> FastCall | None:  # noqa: D102
        array = buffers[0]
        if COMPILED is not None or not self._unsegmented or type(array) is not np.ndarray:
            return super().run(*buffers)
        if array.nbytes != self.problem.nbytes:  # a schedule that is run by hand
            return super().run(*buffers)
        # mpi4py reads the array for every message: faster, and what it took once, it takes again.
        if self.private.broken:
            self.private.check()
        if self._unread is None:
            call_buffers = CallBuffers({Slot.OUTPUT: Memory(0)}, "direct")
            unread = self._bind(call_buffers, BLOCKING_TAG, rebindable=True)
            assert isinstance(unread, BoundPlan)
            self._unread = unread
        self._unread.set_buffer(array)
        try:
            self._unread.run()
        except BaseException as problem:
            self.private.judge(self._unread, problem)
            raise
        finally:
            self._unread.set_buffer(None)
        return None

    def _read_buffers(self, *buffers: Any) -> CallBuffers:
        (spec,) = buffers
        buffer = self._fitting(spec, self.problem.nbytes, writable=not self._is_root)
        unit = buffer.unit
        displacements: dict[int, tuple[bool, int]] = {Slot.OUTPUT: (False, 0)}
        layout: Hashable = "bytes"
        slots: dict[int, Memory] = {Slot.OUTPUT: Memory(buffer.address)}
        if self._unsegmented:
            layout = unit.datatype.handle if unit.datatype.is_predefined else None
            slots = {Slot.OUTPUT: buffer.memory}
        if self._unsegmented or unit.contiguous:
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
