"""Allgatherv and Allgather: contributions of some ranks, into a receive buffer with parts.

A rank sends its own contribution from its send buffer if it can, and copies it into place while
messages are on their way.  Other contributions are forwarded from the receive buffer.  Data is
packed if the bytes of the receive buffer's elements are not in order, and the schedule cuts
contributions or MPI may not be called while messages move (`may_call_mpi`).
"""

from collections.abc import Hashable
from itertools import accumulate
from typing import Any, NamedTuple

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import check_apart, is_in_place
from collwise.mpi.buffers.memory import BYTES, PACKED, USER, Memory
from collwise.mpi.buffers.vector_layout import SPECS, VectorBuffer, contribution
from collwise.mpi.execution.executor import CallBuffers, Executor
from collwise.mpi.execution.instructions import RankPlan, rank_plan
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.mpi.runtime.progress import may_call_mpi
from collwise.schedule.operations import Copy, Operation, Send, Slot
from collwise.schedule.program import Schedule


class _Variant(NamedTuple):
    """What a rank's plan depends on besides the schedule.

    in_place: this rank's contribution is in the receive buffer.   packed: messages use a packed
    copy of the receive buffer.   from_input: the contribution is sent from the send buffer.
    """

    in_place: bool
    packed: bool
    from_input: bool


class GatherExecutor(Executor):
    """Executes one rank's part of an Allgather or Allgatherv, in which some ranks may send nothing.

    method: "Allgather" or "Allgatherv", which says how receive buffers are passed.
    Gaps between the parts of a receive buffer are not written to.
    Calls raise InvalidArgument if parts of a receive buffer overlap.
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
        whole = set(self.problem.gathered)
        whole_ones = all(whole.issuperset(op.blocks) for op in self._operations)
        self._cut = not whole_ones or not may_call_mpi()

    def _read_buffers(self, *buffers: Any) -> CallBuffers:
        sendbuf, recvbuf = buffers
        received = self._received(recvbuf)
        memory, packed = received.memory, False
        if self._cut and not (packed := not memory.unit.contiguous):
            memory.unit = BYTES
        slots: dict[int, Memory] = {USER if packed else Slot.OUTPUT: memory}
        keep = [received.keep]
        contiguous = True
        if not (in_place := is_in_place(sendbuf)):
            sent = contribution(sendbuf, self.private.rank, self._lengths)
            own = sent.span
            for rank, part in received.spans().items():
                if rank != self.private.rank or own != part:
                    check_apart(own, part)
            contiguous = sent.unit.contiguous
            slots[Slot.INPUT] = Memory(sent.address) if contiguous else sent.memory
            keep.append(sent.keep)
        variant = _Variant(in_place, packed, not in_place and (contiguous or not self._cut))
        if packed:
            starts = dict(enumerate(accumulate(self._lengths, initial=0)))
            return CallBuffers(slots, variant, keep=keep, unit=PACKED, starts=starts)
        layout: Hashable = None
        if contiguous and memory.unit.datatype.is_predefined:
            layout = memory.unit.datatype.handle, *received.starts.values()
        displacements: dict[int, tuple[bool, int]] = {Slot.OUTPUT: (True, 0)}
        if not in_place:
            displacements[Slot.INPUT] = False, 0
        return CallBuffers(slots, variant, layout, keep, displacements=displacements)

    def _received(self, recvbuf: Any) -> VectorBuffer:
        """Read the receive buffer; raises unless it has the schedule's bytes of every rank."""
        ranks = self.private.size
        received = VectorBuffer.read(SPECS[self._method](recvbuf, ranks), ranks)
        lengths = received.lengths
        if lengths != self._lengths:
            rank = next(r for r, ours in enumerate(self._lengths) if lengths[r] != ours)
            raise InvalidArgument(
                f"a schedule for {self._lengths[rank]} bytes from rank {rank}",
                f"the receive buffer of rank {self.private.rank} has {lengths[rank]} for it",
                "plan for the counts that all ranks pass, or correct counts and type",
            )
        return received

    def _plan(self, variant: _Variant) -> RankPlan:
        rank, own = self.private.rank, () if self._own is None else (self._own,)
        contributed = USER if variant.in_place else Slot.INPUT
        places: list[int] = [Slot.OUTPUT] if variant.packed or not variant.in_place else []
        if variant.packed and not variant.in_place:
            places.append(USER)
        operations: list[Operation] = [Copy(contributed, place, own) for place in places if own]
        for op in self._operations:
            mine = variant.from_input and {block.owner for block in op.blocks} == {rank}
            if mine and isinstance(op, Send):
                op = op._replace(slot=Slot.INPUT)
            operations.append(op)
        if variant.packed:
            others = (block for block in self.problem.gathered if block not in own)
            operations += [Copy(Slot.OUTPUT, USER, (block,)) for block in others]
        return rank_plan(operations)
