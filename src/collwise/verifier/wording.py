"""How a violation is told: what the operation is, what is seen, what to do."""

from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeAlias

from collwise.errors import InvalidSchedule
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot

Lists: TypeAlias = Sequence[Sequence[Operation]]
"""The operations of every rank."""


def told_blocks(blocks: Iterable[Block]) -> str:
    """Blocks in words, the first three of many."""

    def one(block: Block) -> str:
        if block.length < 1:
            return f"{block.length} bytes at {block.offset} of rank {block.owner}'s data"
        return f"bytes {block.offset}…{block.end - 1} of rank {block.owner}'s data"

    shown = [one(block) for block in blocks]
    more = f" and {len(shown) - 3} more blocks" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more or "nothing"


def told_slot(slot: int) -> str:
    """A slot in words."""
    if slot < Slot.SCRATCH:
        return f"its {Slot(slot).name.lower()}"
    return f"its scratch {slot - Slot.SCRATCH}"


def told(operation: Operation) -> str:
    """An operation in words."""
    blocks = told_blocks(operation.blocks)
    match operation:
        case Send():
            return f"send {blocks} to rank {operation.peer}"
        case Recv():
            return f"receive {blocks} from rank {operation.peer}"
        case Combine():
            left, right = told_slot(operation.left), told_slot(operation.right)
            return f"combine {left} and {right} into {told_slot(operation.into)}, {blocks}"
    return f"copy {told_slot(operation.source)} into {told_slot(operation.into)}, {blocks}"


def wrong(
    lists: Lists, rank: int, step: int, seen: str, remedy: str, block: Block | None = None
) -> NoReturn:
    """Raise InvalidSchedule for the operation of `rank` at `step`."""
    asked = f"rank {rank}, step {step}: {told(lists[rank][step])}"
    raise InvalidSchedule(asked, seen, remedy, rank=rank, step=step, block=block)
