"""What one rank does: send, receive, combine and copy blocks in slots, as plain data."""

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias


class Slot(IntEnum):
    """A buffer of a rank: the user's input or output, or scratch (2 and up)."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


def scratch(number: int) -> int:
    """The slot of scratch space number `number` >= 0 of a rank."""
    return Slot.SCRATCH + number


class Block(NamedTuple):
    """Bytes [offset, offset + length) of the data of rank `owner`.

    In a collective that combines, all ranks have vectors of one length: `owner` is then the root,
    and the block stands for these bytes of every rank's vector.
    """

    owner: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset one past the last byte."""
        return self.offset + self.length


class Send(NamedTuple):
    """Send the blocks, in this order, as one message to rank `peer`.

    slot: the buffer (`Slot`) that has the blocks.
    """

    peer: int
    blocks: tuple[Block, ...]
    slot: int = Slot.OUTPUT


class Recv(NamedTuple):
    """Receive the blocks, in this order, as one message from rank `peer`.

    slot: the buffer (`Slot`) that gets the blocks; it must not have any of their bytes before.
    """

    peer: int
    blocks: tuple[Block, ...]
    slot: int = Slot.OUTPUT


class Combine(NamedTuple):
    """Combine the blocks of the slots `left` and `right`, in this order; write them to slot `into`.

    A right operand in scratch is destroyed, as by `MPI_Reduce_local`.  `into` is never the input
    slot, and it equals `left` only if `right` is scratch.
    """

    left: int
    right: int
    into: int
    blocks: tuple[Block, ...]


class Copy(NamedTuple):
    """Copy the blocks from the slot `source` into the slot `into`.

    shift: bytes added to the offsets in `into`, so that scratch can hold several vectors one after
    another.  If it is not 0, the copy has a single block.
    """

    source: int
    into: int
    blocks: tuple[Block, ...]
    shift: int = 0


Message: TypeAlias = Send | Recv
Local: TypeAlias = Combine | Copy
Operation: TypeAlias = Message | Local


def size_of(operation: Operation) -> int:
    """Bytes that an operation sends, receives, combines or copies."""
    return sum([block.length for block in operation.blocks])


def blocks_in(operation: Operation, slot: int) -> tuple[Block, ...]:
    """The blocks that an operation reads or writes in a slot, with their offsets in this slot."""
    if isinstance(operation, Copy) and operation.shift and slot == operation.into:
        return tuple(b._replace(offset=b.offset + operation.shift) for b in operation.blocks)
    return operation.blocks


def in_other_slot(operation: Operation, slot: int, other: int) -> Operation:
    """The operation with the slot `other` wherever it used the slot `slot`."""
    names = ("slot", "left", "right", "source", "into")
    named: dict[str, Any] = {n: other for n in names if getattr(operation, n, None) == slot}
    return operation._replace(**named)


def reads(operation: Operation) -> tuple[int, ...]:
    """The slots whose blocks an operation reads."""
    if isinstance(operation, Send):
        return (operation.slot,)
    if isinstance(operation, Recv):
        return ()
    if isinstance(operation, Combine):
        return (operation.left, operation.right)
    return (operation.source,)


def writes(operation: Operation) -> int | None:
    """The slot whose blocks an operation writes, None for a send."""
    if isinstance(operation, Send):
        return None
    return operation.slot if isinstance(operation, Recv) else operation.into


def clobbers(operation: Operation) -> tuple[int, ...]:
    """The slots whose contents an operation changes, including a destroyed right operand."""
    if isinstance(operation, Send):
        return ()
    if isinstance(operation, Recv):
        return (operation.slot,)
    if isinstance(operation, Combine) and operation.into != operation.right >= Slot.SCRATCH:
        return (operation.into, operation.right)
    return (operation.into,)
