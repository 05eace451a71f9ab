"""Data dependencies: which earlier operations last wrote the bytes that an operation reads."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from collwise.errors import BeyondLimits
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    blocks_in,
    clobbers,
    reads,
    size_of,
    writes,
)
from collwise.system.integers import Ints

try:
    from collwise.schedule import _dependencies
except ImportError:  # there was no compiler
    _dependencies = None  # type: ignore[assignment]


class Writers:
    """A map from a rank's bytes, by (slot, owner, offset), to the operation that last wrote each.

    Operations are called writers, and have numbers that the caller chooses.
    """

    def __init__(self) -> None:
        self._maps: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = {}

    def write(self, slot: int, block: Block, writer: int) -> None:
        """Make `writer` the latest writer of the block."""
        if not block.length:
            return
        owner, begin, length = block
        end = begin + length
        if (written := self._maps.get((slot, owner))) is None:  # most slots are written once
            self._maps[slot, owner] = ([begin], [end], [writer])
            return
        starts, ends, writers = written
        first = bisect_right(ends, begin)
        last = bisect_left(starts, end)
        if last - first == 1 and starts[first] == begin and ends[first] == end:
            writers[first] = writer
            return
        pieces = [(begin, end, writer)]
        if first < last:  # keep the bytes outside the block
            if starts[first] < begin:
                pieces.insert(0, (starts[first], begin, writers[first]))
            if ends[last - 1] > end:
                pieces.append((end, ends[last - 1], writers[last - 1]))
        starts[first:last] = [piece[0] for piece in pieces]
        ends[first:last] = [piece[1] for piece in pieces]
        writers[first:last] = [piece[2] for piece in pieces]

    def pieces(self, slot: int, block: Block) -> list[tuple[int, int, int]]:
        """The parts of the block that have been written, as (begin, end, writer), by offset."""
        starts, ends, writers = self._maps.get((slot, block.owner), ([], [], []))
        begin, end = block.offset, block.offset + block.length
        touched = range(bisect_right(ends, begin), bisect_left(starts, end) if block.length else 0)
        return [(max(starts[i], begin), min(ends[i], end), writers[i]) for i in touched]

    def of(self, slot: int, block: Block) -> Iterable[int]:
        """The latest writers of the block's bytes; a writer may occur several times."""
        owner, begin, length = block
        if not length or (written := self._maps.get((slot, owner))) is None:
            return ()
        starts, ends, writers = written
        return writers[bisect_right(ends, begin) : bisect_left(starts, begin + length)]


def dependencies(operations: Sequence[Operation]) -> list[tuple[int, ...]]:
    """For every operation of one rank, the positions of the earlier operations whose data it reads.

    They are the receives, combines and copies that last wrote this data.  A receive reads no data.
    """
    listed = rows_of_lists([operations], combines=True, copies=True)
    needs, begins = listed.needs.tolist(), listed.begins.tolist()
    return [tuple(needs[begin:end]) for begin, end in pairwise(begins)]


def written_before(operations: Sequence[Operation]) -> list[tuple[int, ...]]:
    """The result of `dependencies`, in plain Python: the positions of the last writers."""
    writers = Writers()
    waits: list[tuple[int, ...]] = []
    for place, op in enumerate(operations):
        read_from: set[int] = set()
        for slot in reads(op):
            for block in op.blocks:
                read_from.update(writers.of(slot, block))
        waits.append(tuple(sorted(read_from)) if read_from else ())
        if (slot_written := writes(op)) is not None:
            for block in blocks_in(op, slot_written):
                writers.write(slot_written, block, place)
    return waits


class Listed(NamedTuple):
    """Operations of several ranks as int64 columns, rank by rank in list order.

    rank, place: the operation's rank and its position in that rank's list.   kind: 0 for a send, 1
    for a receive, 2 for a combine, 3 for a copy.   peer: the other rank of a message; else the rank
    itself.   nbytes: bytes that the operation sends, receives, combines or copies.   begins, needs:
    operation n waits for the operations needs[begins[n]:begins[n + 1]].
    """

    rank: Ints
    place: Ints
    kind: Ints
    peer: Ints
    nbytes: Ints
    begins: Ints
    needs: Ints


_KINDS = (Send, Recv, Combine, Copy)
LARGEST_OFFSET = 2**61 - 1
"""Largest offset in bytes; beyond it, sums might not fit into int64."""


def rows_of_lists(
    lists: Sequence[Sequence[Operation]],
    *,
    combines: bool,
    copies: bool = False,
    last_only: bool = False,
) -> Listed:
    """The operations in these lists as columns, with what each of them waits for.

    combines, copies: whether to include combines, and copies.  An operation that reads the
    result of an omitted operation waits for what the omitted one waits for.   last_only: of all
    operations that an operation waits for, keep only the last in the list.
    Raises BeyondLimits for offsets or lengths of more than LARGEST_OFFSET bytes.
    """
    flags = combines + 2 * copies + 4 * last_only
    try:
        if _dependencies is not None:
            columns = _dependencies.rows_of_lists(lists, _KINDS, flags)
            return Listed(*(np.frombuffer(column, np.int64) for column in columns))
        return _listed(lists, combines, copies, last_only)
    except OverflowError:
        raise BeyondLimits(
            "a schedule's dependencies", "it has offsets beyond 2^61", "plan for fewer bytes"
        ) from None


def _listed(
    lists: Sequence[Sequence[Operation]], combines: bool, copies: bool, last_only: bool
) -> Listed:
    """Python version of the C function `rows_of_lists`."""
    rows, needs, begins = list[tuple[int, ...]](), list[int](), [0]
    as_rows = (Send, Recv, *(Combine,) * combines, *(Copy,) * copies)
    for rank, operations in enumerate(lists):
        sets: list[list[int]] = []
        for place, (op, writers) in enumerate(
            zip(operations, written_before(operations), strict=True)
        ):
            if any(max(block[1:]) > LARGEST_OFFSET for block in op.blocks):
                raise OverflowError
            needed = sorted({row for writer in writers for row in sets[writer]})
            needed = needed[-1:] if last_only else needed
            if isinstance(op, as_rows):
                needs += needed
                begins.append(len(needs))
                needed = [len(rows)]
                peer = op.peer if isinstance(op, Send | Recv) else rank
                rows.append((rank, place, _KINDS.index(type(op)), peer, size_of(op)))
            sets.append(needed)
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns = [*table.T.copy(), np.array(begins, np.int64), np.array(needs, np.int64)]
    return Listed(*columns)


def awaited_receives(
    operations: Sequence[Operation], dependencies: Sequence[Sequence[int]]
) -> list[int]:
    """For every operation of a rank, a number n: it waits for the first n receives in the list.

    A receive counts itself.  To wait for a combine or copy is to wait for its receives.  A port
    receives in list order, so waiting for several receives means waiting for the last one.
    dependencies: the result of the function `dependencies` for these operations.
    """
    awaited: list[int] = []
    received = 0
    for op, writers in zip(operations, dependencies, strict=True):
        received += isinstance(op, Recv)
        of_writers = max((awaited[writer] for writer in writers), default=0)
        awaited.append(received if isinstance(op, Recv) else of_writers)
    return awaited


def overwritten(operations: Sequence[Operation]) -> list[tuple[int, ...]]:
    """For every operation of one rank, the positions of the earlier sends whose data it overwrites.

    Earlier sends that share bytes with these are included.  A simulation does not wait for them: it
    takes their data to have left the buffer.  An executor with real buffers has to wait.
    """
    readers = Writers()
    before: dict[int, set[int]] = {}  # maps a send to earlier sends of any of its bytes
    waits: list[tuple[int, ...]] = []
    for place, op in enumerate(operations):
        overwritten_sends: set[int] = set()
        for slot in reads(op) if isinstance(op, Send) else clobbers(op):
            for block in blocks_in(op, slot):
                overwritten_sends.update(readers.of(slot, block))
        for send in tuple(overwritten_sends):
            overwritten_sends |= before[send]
        if isinstance(op, Send):
            before[place] = overwritten_sends
            for block in op.blocks:
                readers.write(op.slot, block, place)
            overwritten_sends = set()
        waits.append(tuple(sorted(overwritten_sends)))
    return waits


def publications(operations: Sequence[Operation], readers: Collection[int]) -> list[int]:
    """For every operation of one rank, its own position, or that of the earlier send it repeats.

    In memory that ranks share, a rank publishes bytes once for several sends: a later send has the
    position of the send that published its bytes.   readers: the peers that share memory with the
    rank; sends to others have their own position.
    Two sends have the same bytes if they name the same blocks of the same slot, and these blocks
    are not written between the two.  Messages between two ranks keep their order: a send has its
    own position if the previous message to its peer was not published before these bytes.
    """
    first = list(range(len(operations)))
    if not readers:
        return first
    destroyed = Writers()
    published: dict[tuple[int, tuple[Block, ...], tuple[int, ...], int], int] = {}
    last_to: dict[int, int] = {}
    for place, (op, writers) in enumerate(zip(operations, dependencies(operations), strict=True)):
        if isinstance(op, Combine):
            for slot in clobbers(op)[1:]:
                for block in op.blocks:
                    destroyed.write(slot, block, place)
        elif isinstance(op, Send) and op.peer in readers:
            since = max((n for b in op.blocks for n in destroyed.of(op.slot, b)), default=-1)
            known = published.get(bytes_sent := (op.slot, op.blocks, writers, since))
            if known is not None and last_to.get(op.peer, -1) < known:
                first[place] = known
            else:
                published[bytes_sent] = place
            last_to[op.peer] = first[place]
    return first


def matching(
    lists: Sequence[Sequence[Operation]],
) -> dict[tuple[int, int], tuple[int, int]]:
    """Maps a send to the receive that it matches, both as (rank, position in its list).

    The k-th send from rank a to rank b matches the k-th receive from a at b.  Sends without a
    receive are left out.
    """
    receives: dict[tuple[int, int], deque[int]] = {}
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, Recv):
                receives.setdefault((op.peer, rank), deque()).append(step)
    return {
        (rank, step): (op.peer, queue.popleft())
        for rank, operations in enumerate(lists)
        for step, op in enumerate(operations)
        if isinstance(op, Send) and (queue := receives.get((rank, op.peer)))
    }


def hazards_of(operations: Sequence[Operation]) -> list[set[int]]:
    """For every operation of one rank, the positions of earlier ones that use bytes it changes.

    It must not overtake them.  A send changes no bytes, so its set is empty.  Earlier sends are in
    no set: `overwritten` gives them.
    """
    users = Writers()  # latest user of every byte; `before` has the earlier users
    before: list[set[int]] = []
    hazards: list[set[int]] = []
    for place, op in enumerate(operations):
        changed = () if isinstance(op, Send) else clobbers(op)
        used = () if isinstance(op, Send) else {*reads(op), *changed}
        earlier: set[int] = set()
        for slot in used:
            for block in blocks_in(op, slot):
                earlier.update(users.of(slot, block))
        for user in tuple(earlier):
            earlier |= before[user]
        before.append(earlier)
        hazards.append({user for user in earlier if _overlap(operations[user], op, changed)})
        for slot in used:
            for block in blocks_in(op, slot):
                users.write(slot, block, place)
    return hazards


def _overlap(earlier: Operation, op: Operation, changed: Iterable[int]) -> bool:
    """Whether `op` changes bytes, in the slots `changed`, that `earlier` reads or writes."""
    return any(
        a.owner == b.owner and a.offset < b.end and b.offset < a.end
        for slot in {*reads(earlier), *clobbers(earlier)}.intersection(changed)
        for a in blocks_in(earlier, slot)
        for b in blocks_in(op, slot)
    )
