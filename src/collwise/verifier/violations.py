"""Reports violations: the operation in words, what is wrong with it, and what to do about it."""

from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeAlias

from collwise.errors import InvalidSchedule
from collwise.schedule.operations import Block, Combine, Operation, Recv, Send, Slot

Lists: TypeAlias = Sequence[Sequence[Operation]]
"""For each rank, the list of its operations."""
IMPOSSIBLE_TIMING = "mend the timing: it says what the machine or its network cannot do"


def describe_blocks(blocks: Iterable[Block]) -> str:
    """Blocks in words: the first three, and how many more there are."""

    def one(block: Block) -> str:
        if block.length < 1:
            return f"{block.length} bytes at {block.offset} of rank {block.owner}'s data"
        return f"bytes {block.offset}…{block.end - 1} of rank {block.owner}'s data"

    shown = [one(block) for block in blocks]
    more = f" and {len(shown) - 3} more blocks" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more or "nothing"


def describe_slot(slot: int) -> str:
    """A slot of a rank in words, such as "its output"."""
    if slot < Slot.SCRATCH:
        return f"its {Slot(slot).name.lower()}"
    return f"its scratch {slot - Slot.SCRATCH}"


def describe(operation: Operation) -> str:
    """An operation in words."""
    blocks = describe_blocks(operation.blocks)
    match operation:
        case Send():
            return f"send {blocks} to rank {operation.peer}"
        case Recv():
            return f"receive {blocks} from rank {operation.peer}"
        case Combine():
            left, right = describe_slot(operation.left), describe_slot(operation.right)
            return f"combine {left} and {right} into {describe_slot(operation.into)}, {blocks}"
    return f"copy {describe_slot(operation.source)} into {describe_slot(operation.into)}, {blocks}"


def reject(
    lists: Lists, rank: int, step: int, seen: str, remedy: str, block: Block | None = None
) -> NoReturn:
    """Raise InvalidSchedule for the operation at a rank's step.

    seen: what is wrong.   remedy: what to do.   block: the block that is wrong; None for the
    operation's first non-empty block.
    """
    op = lists[rank][step]
    if block is None:
        block = next((block for block in op.blocks if block.length), None)
    asked = f"rank {rank}, step {step}: {describe(op)}"
    raise InvalidSchedule(asked, seen, remedy, rank=rank, step=step, block=block)


def reject_output(rank: int, block: Block, place: str, seen: str, remedy: str) -> NoReturn:
    """Raise InvalidSchedule for a block of an output.   place: words such as " in its output"."""
    asked = f"rank {rank}, at the end: {describe_blocks([block])}{place}"
    raise InvalidSchedule(asked, seen, remedy, rank=rank, block=block)


def reject_timing(lists: Lists, rank: int, step: int, seen: str) -> NoReturn:
    """Raise InvalidSchedule for an operation to which a timing gives an impossible time."""
    reject(lists, rank, step, seen, IMPOSSIBLE_TIMING)
