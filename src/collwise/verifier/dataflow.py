"""Checks data flow by lists of operations: matching messages, and the data that ranks hold."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NoReturn

from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    blocks_in,
    clobbers,
    reads,
    writes,
)
from collwise.schedule.problem import Problem
from collwise.verifier.partition import Partition
from collwise.verifier.violations import (
    Lists,
    describe_blocks,
    describe_slot,
    reject,
    reject_output,
)


def check_operations(lists: Lists, itemsize: int = 1) -> None:
    """Check the peer, the blocks and the slots of each operation.

    itemsize: bytes of an element; no element may be cut.   Raises InvalidSchedule.
    """
    sound: set[int] = set()  # identities of checked tuples of blocks: many operations share one
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, Send | Recv) and not (0 <= op.peer < len(lists) and op.peer != rank):
                _reject_peer(lists, rank, step, op.peer)
            if id(op.blocks) not in sound:
                _check_blocks(lists, rank, step, itemsize)
                sound.add(id(op.blocks))
            if isinstance(op, Send):
                continue
            if Slot.INPUT in clobbers(op):
                seen = "it would overwrite the user's input"
                reject(lists, rank, step, seen, "name the output or scratch")
            if isinstance(op, Combine) and (
                op.left == op.right or (op.into == op.left and op.right < Slot.SCRATCH)
            ):
                seen = "its operands lie where they cannot be combined"
                remedy = "take two slots; combine into the left one only if the right is scratch"
                reject(lists, rank, step, seen, remedy)
            if isinstance(op, Copy) and op.shift:
                _check_shift(lists, rank, step, op, itemsize)


def _check_shift(lists: Lists, rank: int, step: int, op: Copy, itemsize: int) -> None:
    if op.shift % itemsize or op.blocks[0].offset + op.shift < 0:
        seen = f"its shift of {op.shift} leads to no element of {itemsize} bytes"
        reject(lists, rank, step, seen, "shift by whole elements, to offsets of 0 or more")
    if len(op.blocks) > 1 or op.source == op.into:
        seen = "it shifts several blocks, or within a slot"
        reject(lists, rank, step, seen, "copy one block at a time, into another slot")


def _check_blocks(lists: Lists, rank: int, step: int, itemsize: int) -> None:
    blocks = lists[rank][step].blocks
    lengths = [block.length for block in blocks]
    if min(lengths, default=0) < 0:
        seen, remedy = "a length is negative", "give blocks a length of 0 or more"
        reject(lists, rank, step, seen, remedy, next(b for b in blocks if b.length < 0))
    if not any(lengths):
        reject(lists, rank, step, "it is about 0 bytes", "leave out empty operations")
    if cut := [b for b in blocks if b.offset % itemsize or b.length % itemsize]:
        seen = f"it cuts inside an element of {itemsize} bytes"
        reject(lists, rank, step, seen, "move and combine whole elements", cut[0])


def _reject_peer(lists: Lists, rank: int, step: int, peer: int) -> NoReturn:
    if peer == rank:
        reject(lists, rank, step, "this is the rank itself", "leave the message out")
    seen, remedy = f"there are {len(lists)} ranks", f"name a peer from 0 to {len(lists) - 1}"
    reject(lists, rank, step, seen, remedy)


def check_partners(lists: Lists) -> None:
    """Check that the k-th send from a to b has the same blocks as the k-th receive at b from a.

    Raises InvalidSchedule.
    """
    sent = [_by_peer(operations, Send) for operations in lists]
    received = [_by_peer(operations, Recv) for operations in lists]
    unequal = [
        (a, b)
        for a, messages in enumerate(sent)
        for b, blocks in messages.items()
        if received[b].get(a) != blocks
    ]
    unequal += [(a, b) for b, messages in enumerate(received) for a in messages if b not in sent[a]]
    if unequal:
        _reject_partners(lists, *min(unequal))


def _by_peer(
    operations: Sequence[Operation], kind: type[Send] | type[Recv]
) -> dict[int, list[tuple[Block, ...]]]:
    """Maps each peer to the blocks of each message sent to it (or, by `kind`, received from it)."""
    messages: dict[int, list[tuple[Block, ...]]] = {}
    for op in operations:
        if isinstance(op, kind):
            messages.setdefault(op.peer, []).append(op.blocks)
    return messages


def _reject_partners(lists: Lists, a: int, b: int) -> NoReturn:
    sends = [i for i, op in enumerate(lists[a]) if isinstance(op, Send) and op.peer == b]
    receives = [i for i, op in enumerate(lists[b]) if isinstance(op, Recv) and op.peer == a]
    both = list(zip(sends, receives, strict=False))
    same = (lists[a][s].blocks == lists[b][r].blocks for s, r in both)
    k = next((k for k, equal in enumerate(same) if not equal), len(both))
    counts = f"rank {a} sends {len(sends)} message(s) to rank {b}, which receives {len(receives)}"
    if len(sends) > len(receives):
        seen, remedy = f"no receive matches: {counts}", f"let rank {b} receive it, or drop it"
        reject(lists, a, sends[k], seen, remedy)
    if len(receives) > len(sends):
        seen, remedy = f"no send matches: {counts}", f"let rank {a} send it, or drop it"
        reject(lists, b, receives[k], seen, remedy)
    blocks = describe_blocks(lists[a][sends[k]].blocks)
    seen = f"message {k + 1} from rank {a}, its step {sends[k]}, carries {blocks}"
    remedy = "name the same blocks in the same order on both sides"
    reject(lists, b, receives[k], seen, remedy)


def check_holdings(lists: Lists, problem: Problem, partition: Partition) -> None:
    """Check that ranks read only data that they hold, and that each output is complete at the end.

    A receive must bring data that its slot has never held.  An output slot takes only the blocks
    of the rank's output.  Operations are checked in list order.   Raises InvalidSchedule.
    """
    strange = ~reduce(or_, partition.inputs)
    for rank, (operations, output) in enumerate(zip(lists, partition.outputs, strict=True)):
        held = {int(problem.input_slot): partition.inputs[rank]}
        touched = dict(held)  # all that a slot ever held, including pieces that were used up
        for step, (op, pieces) in enumerate(zip(operations, partition.moved[rank], strict=True)):
            slots = reads(op) if getattr(op, "shift", 0) else (*reads(op), *clobbers(op))
            if (beyond := pieces & strange) and min(slots) < Slot.SCRATCH:
                block = partition.first(beyond)
                seen = f"there is no such data as {describe_blocks([block])}"
                remedy = "stay within the data that a rank is given"
                reject(lists, rank, step, seen, remedy, block)
            if isinstance(op, Send):  # the same as below, for the most frequent operation
                if missing := pieces & ~held.get(op.slot, 0):
                    _reject_not_held(lists, rank, step, partition, op.slot, missing)
                continue
            for slot in reads(op):
                if missing := pieces & ~held.get(slot, 0):
                    _reject_not_held(lists, rank, step, partition, slot, missing)
            if isinstance(op, Recv):
                before = touched.get(op.slot, 0)
                if pieces & before or (len(op.blocks) > 1 and partition.overlap(op.blocks)):
                    _reject_held_already(lists, rank, step, partition, before)
            for slot in clobbers(op):
                if isinstance(op, Copy) and op.shift:
                    pieces = partition.pieces(blocks_in(op, slot))
                if slot == Slot.OUTPUT and (beyond := pieces & ~output):
                    seen = "its output has no such bytes"
                    block = partition.first(beyond)
                    reject(lists, rank, step, seen, "keep it in scratch", block)
                touched[slot] = touched.get(slot, 0) | pieces
                held[slot] = held.get(slot, 0) & ~pieces
            if (into := writes(op)) is not None:
                held[into] |= pieces
        if missing := output & ~held.get(Slot.OUTPUT, 0):
            seen = f"none of its {len(operations)} operations brings them"
            remedy = "send them to this rank, from one that has them"
            block, place = partition.first(missing), f" in {describe_slot(Slot.OUTPUT)}"
            reject_output(rank, block, place, seen, remedy)


def _touching(lists: Lists, rank: int, slot: int, partition: Partition, pieces: int) -> list[int]:
    """The steps at which a rank writes any of `pieces` into a slot, or consumes it there."""
    return [
        step
        for step, op in enumerate(lists[rank])
        if slot in clobbers(op) and partition.pieces(blocks_in(op, slot)) & pieces
    ]


def _reject_not_held(
    lists: Lists, rank: int, step: int, partition: Partition, slot: int, missing: int
) -> NoReturn:
    block = partition.first(missing)
    seen = f"it does not hold {describe_blocks([block])} in {describe_slot(slot)} by then, "
    steps = _touching(lists, rank, slot, partition, missing)
    if used := [s for s in steps if s < step and writes(lists[rank][s]) != slot]:
        remedy = "combine first what is used once only"
        reject(lists, rank, step, seen + f"for it was used up at step {used[-1]}", remedy, block)
    writer = next((s for s in steps if writes(lists[rank][s]) == slot and s != step), None)
    if writer is None:
        reject(lists, rank, step, seen + "nor ever", "receive the data first", block)
    remedy = f"put this after step {writer}"
    reject(lists, rank, step, seen + f"but gets data for it only at step {writer}", remedy, block)


def _reject_held_already(
    lists: Lists, rank: int, step: int, partition: Partition, before: int
) -> NoReturn:
    """Raise InvalidSchedule for a receive whose blocks overlap earlier ones, or each other.

    before: the set of pieces that the slot had at any time before this receive.
    """
    op = lists[rank][step]
    assert isinstance(op, Recv)
    held = before
    for block in op.blocks:
        if again := partition.pieces([block]) & held:
            break
        held |= partition.pieces([block])
    first, since = partition.first(again), "from this very message"
    if again & before:
        writer = _touching(lists, rank, op.slot, partition, again)[0]
        since = f"since step {writer}" if writer < step else "from the start"
    seen = f"it holds {describe_blocks([first])} {since}, and sends that read them may be under way"
    remedy = "leave them out here: every byte of a slot is received once"
    reject(lists, rank, step, seen, remedy, first)
