"""Reduce, Allreduce and Reduce_scatter_block: everybody's vectors, combined by an operator."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers.buffer import check_apart, is_in_place
from collwise.mpi.buffers.memory import (
    IN_SCRATCH,
    USER,
    USER_INPUT,
    ElementType,
    Memory,
)
from collwise.mpi.buffers.mpi_operators import BoundOperator
from collwise.mpi.engine.own_loops import has_loop
from collwise.mpi.execution.executor import CallBuffers, Executor
from collwise.mpi.execution.instructions import RankPlan, in_place, rank_plan, reduce_local_form
from collwise.mpi.runtime.private_communicator import PrivateCommunicator
from collwise.schedule.operations import Block, Copy, Slot
from collwise.schedule.program import Schedule

_OUTSIDE: Mapping[int, int] = {slot: outside for outside, slot in IN_SCRATCH.items()}
"""For INPUT and OUTPUT, the slot of the user's buffer where the host cannot access its memory."""


class _Variant(NamedTuple):
    """What a rank's plan depends on besides the schedule.

    in_place: the input is in the receive buffer, on the host.   separate_output: a combine may
    write to a third place, unlike `MPI_Reduce_local`.   on_host: the host combines in the user's
    memory; otherwise MPI copies vectors from there to scratch, and results back.
    """

    in_place: bool
    separate_output: bool
    on_host: bool


class CombineExecutor(Executor):
    """Executes one rank's part of a collective that combines.

    op: an operator that fits the elements; it must not be freed before executor and requests.
    """

    def __init__(self, schedule: Schedule, private: PrivateCommunicator, op: MPI.Op) -> None:
        super().__init__(schedule, private)
        self._op = op
        outputs = self.problem.output_of(private.rank)
        self._owed = bool(outputs)
        self._result = outputs[0] if outputs else Block(self.problem.root, 0, 0)
        self._is_part = self._owed and self._result != self.problem.whole
        # The operations for an input in the output's place, if that is possible.
        self._in_place = None if self._is_part else in_place(self._operations)

    def _read_buffers(self, *buffers: Any) -> CallBuffers:
        sendbuf, recvbuf = buffers
        nbytes, start = self.problem.nbytes, self._result.offset
        parts = self.problem.kind.unit(self.problem.ranks, 1)
        shared = self._owed and is_in_place(sendbuf)
        slots: dict[int, Memory] = {}
        keep = []
        if self._owed:
            length = nbytes if shared else self._result.length
            received = self._fitting(recvbuf, length, writable=True, parts=parts if shared else 1)
            keep.append(received.keep)
            # The result's first byte goes to the beginning of the receive buffer.
            address = received.address - (received.unit.span(start) if start else 0)
            slots[Slot.OUTPUT] = Memory(address, received.unit)
        sent = received if shared else self._fitting(sendbuf, nbytes, writable=False, parts=parts)
        keep.append(sent.keep)
        if self._owed and not shared:
            check_apart(sent.span, received.span)
        slots[Slot.INPUT] = sent.memory
        on_host = all(memory.unit.on_host for memory in slots.values())
        if not on_host:
            slots = {_OUTSIDE[slot]: memory for slot, memory in slots.items()}
        elif shared and self._in_place is None:
            slots[USER] = slots.pop(Slot.OUTPUT)
        unit = ElementType.of(sent.unit.datatype)
        if self.problem.itemsize % (unit.size or 1):
            raise InvalidArgument(
                f"a schedule for elements of {self.problem.itemsize} bytes",
                f"the elements of rank {self.private.rank} have {unit.size}",
                "plan with the size of the elements",
            )
        operator = BoundOperator.of(self._op, unit, has_loop)
        variant = _Variant(shared and on_host, operator.separate_output, on_host)
        layout = unit.datatype.handle if on_host and unit.datatype.is_predefined else None
        displacements: dict[int, tuple[bool, int]] = {Slot.INPUT: (shared, 0)}
        if self._owed:
            result = USER if USER in slots else Slot.OUTPUT
            displacements[result] = True, address - received.address
        return CallBuffers(
            slots, variant, layout, keep, unit, operator, displacements=displacements
        )

    def _plan(self, variant: _Variant) -> RankPlan:
        operations, after = self._operations, []
        if variant.in_place and self._in_place is not None:
            operations = self._in_place
        elif self._owed and (variant.in_place or not variant.on_host):
            # The output is kept apart until nobody reads the input any more.
            after = [Copy(Slot.OUTPUT, USER, (self._result,))]
        if not variant.on_host:
            operations = (Copy(USER_INPUT, Slot.INPUT, (self.problem.whole,)), *operations)
        if not variant.separate_output:
            operations = tuple(reduce_local_form(operations))
        return rank_plan(operations, after)
