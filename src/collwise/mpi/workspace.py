"""What one rank's list works on: the memory of its slots, and each operation made ready to do."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from collwise.mpi.buffers import Buffer
from collwise.mpi.combining import Operator
from collwise.mpi.memory import KEPT, Act, Allocate, Memory, Message, allocate, copying
from collwise.mpi.operands import Way
from collwise.schedule.operations import Block, Combine, Copy, Operation, Recv, Send, Slot


class Workspace:
    """The slots of one rank in memory.

    operations: the rank's list, as it is run here.   before, after: what is done at the start and
    after completion, such as packing and unpacking.   types: derived types to free in the end.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        slots: Mapping[int, Memory],
        comm: MPI.Intracomm,
        tag: int,
        operator: Operator | None = None,
        *,
        keep: Sequence[Any] = (),
        whole: tuple[Any, int] | None = None,
        before: Sequence[Act] = (),
        after: Sequence[Act] = (),
        types: Sequence[MPI.Datatype] = (),
    ) -> None:
        self.operations = tuple(operations)
        self.slots, self.operator = slots, operator
        self.comm, self.tag = comm, tag
        self.before, self.after = tuple(before), tuple(after)
        self._keep = keep  # what the memory belongs to
        self._whole = whole  # the user's own spec, for messages of so many bytes
        self._derived = [*types]

    def message(self, op: Send | Recv) -> Any:
        """What a message sends or receives, as mpi4py takes it."""
        if self._whole is not None and _is_whole(op, self._whole[1]):
            return self._whole[0]
        made: Message = self.slots[op.slot].message(op.blocks)
        if made.derived is not None:
            self._derived.append(made.derived)
        return made.spec

    def acts(self, op: Combine | Copy) -> list[Act]:
        """What a combine or a copy does, one call after another."""
        if isinstance(op, Copy):
            source, into = self.slots[op.source], self.slots[op.into]
            return copying(source, into, op.blocks, self.comm, self.tag)
        assert self.operator is not None, "a broadcast combines nothing"
        return self.operator.combining(op, self.slots, self.comm, self.tag)

    def free(self) -> None:
        """Free the derived types."""
        while self._derived:
            self._derived.pop().Free()
        self._keep = ()


def _is_whole(op: Send | Recv, nbytes: int) -> bool:
    return len(op.blocks) == 1 and op.blocks[0].length == nbytes


def whole_only(operations: Sequence[Operation], nbytes: int) -> bool:
    """Whether every operation is about everything, in one block."""
    return all(len(op.blocks) == 1 and op.blocks[0].length == nbytes for op in operations)


def for_moving(
    operations: Sequence[Operation], buffer: Buffer, root: bool, comm: MPI.Intracomm, tag: int
) -> Workspace:
    """A workspace for data that moves as it is, in one buffer (broadcast).

    Pieces are bytes: of the buffer, or of a packed copy where its bytes are not in order.
    """
    nbytes = buffer.nbytes
    if buffer.contiguous or whole_only(operations, nbytes):
        whole = (buffer.spec, nbytes)
        slots: dict[int, Memory] = {Slot.OUTPUT: buffer.bytes}
        return Workspace(operations, slots, comm, tag, keep=[buffer], whole=whole)
    packed = buffer.packed()
    me = comm.Get_rank()
    theirs, ours = buffer.spec, [packed.spec, nbytes, MPI.PACKED]
    pack = partial(comm.Sendrecv, theirs, me, tag, ours, me, tag)
    unpack = partial(comm.Sendrecv, ours, me, tag, theirs, me, tag)
    slots = {Slot.OUTPUT: packed.bytes}
    before, after = ([pack], []) if root else ([], [unpack])
    return Workspace(
        operations, slots, comm, tag, keep=[buffer, packed], before=before, after=after
    )


def for_combining(
    way: Way,
    operator: Operator,
    nbytes: int,
    memory: Mapping[int, Memory],
    comm: MPI.Intracomm,
    tag: int,
    *,
    keep: Sequence[Any] = (),
    types: Sequence[MPI.Datatype] = (),
    allocate: Allocate = allocate,
) -> Workspace:
    """A workspace for vectors that are combined.

    memory: that of the input and the output (the same for MPI.IN_PLACE).   types: as `Workspace`.
    """
    slots, memory_of_ours = way.scratch.place(operator.unit, allocate)
    slots.update(memory)
    before: list[Act] = []
    if way.kept:
        everything = Block(0, 0, nbytes)
        before = copying(memory[Slot.OUTPUT], slots[KEPT], [everything], comm, tag)
        slots[Slot.INPUT] = slots[KEPT]
    return Workspace(
        way.route.operations,
        slots,
        comm,
        tag,
        operator,
        keep=[*keep, memory_of_ours],
        before=before,
        types=types,
    )
