"""How a violation is told: what the operation is, what is seen, what to do."""

from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeAlias

from collwise.errors import InvalidSchedule
from collwise.schedule.data import Block, Operation, Send

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


def told(operation: Operation) -> str:
    """An operation in words."""
    verb, to = ("send", "to") if isinstance(operation, Send) else ("receive", "from")
    return f"{verb} {told_blocks(operation.blocks)} {to} rank {operation.peer}"


def wrong(
    lists: Lists, rank: int, step: int, seen: str, remedy: str, block: Block | None = None
) -> NoReturn:
    """Raise InvalidSchedule for the operation of `rank` at `step`."""
    asked = f"rank {rank}, step {step}: {told(lists[rank][step])}"
    raise InvalidSchedule(asked, seen, remedy, rank=rank, step=step, block=block)
