"""Which receives a send has to wait for: those that last wrote the bytes it sends."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from collwise.schedule.data import Block, Operation, Recv, Slot


class Writers:
    """For every byte of a slot, the latest writer: an interval map over (slot, owner, offset)."""

    def __init__(self) -> None:
        self._maps: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = {}

    def write(self, slot: Slot, block: Block, writer: int) -> None:
        """From now on `writer` is the latest writer of the block."""
        if not block.length:
            return
        starts, ends, writers = self._maps.setdefault((slot, block.owner), ([], [], []))
        first = bisect_right(ends, block.offset)
        last = bisect_left(starts, block.end)
        pieces = [(block.offset, block.end, writer)]
        if first < last:  # keep what sticks out on either side
            if starts[first] < block.offset:
                pieces.insert(0, (starts[first], block.offset, writers[first]))
            if ends[last - 1] > block.end:
                pieces.append((block.end, ends[last - 1], writers[last - 1]))
        starts[first:last] = [piece[0] for piece in pieces]
        ends[first:last] = [piece[1] for piece in pieces]
        writers[first:last] = [piece[2] for piece in pieces]

    def of(self, slot: Slot, block: Block) -> set[int]:
        """The latest writers of the block's bytes (bytes that nobody wrote have none)."""
        found = self._maps.get((slot, block.owner))
        if found is None or not block.length:
            return set()
        starts, ends, writers = found
        return set(writers[bisect_right(ends, block.offset) : bisect_left(starts, block.end)])


def dependencies(operations: Sequence[Operation]) -> list[tuple[int, ...]]:
    """For every operation of one rank, the places of the earlier receives it has to wait for.

    A receive waits for nothing but its port; a send waits for the data it sends.
    """
    writers = Writers()
    waits: list[tuple[int, ...]] = []
    for place, op in enumerate(operations):
        if isinstance(op, Recv):
            waits.append(())
            for block in op.blocks:
                writers.write(op.slot, block, place)
        else:
            found: set[int] = set()
            for block in op.blocks:
                found |= writers.of(op.slot, block)
            waits.append(tuple(sorted(found)))
    return waits
