"""The flow of the data, told from the lists alone: operations, their partners, what is held."""

from collections.abc import Sequence
from typing import NoReturn

from collwise.errors import InvalidSchedule
from collwise.schedule.operations import (
    Block,
    Combine,
    Operation,
    Recv,
    Send,
    Slot,
    clobbers,
    reads,
    writes,
)
from collwise.verifier.partition import Partition
from collwise.verifier.postconditions import Postcondition
from collwise.verifier.wording import Lists, told_blocks, told_slot, wrong

MESSAGES = (Send, Recv)


def check_operations(lists: Lists, item: int = 1) -> None:
    """Each operation makes sense by itself.

    item: bytes of an element, none of which may be cut.
    """
    sound: set[int] = set()  # tuples of blocks, by identity: many operations have the same
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, MESSAGES) and not (0 <= op.peer < len(lists) and op.peer != rank):
                _no_peer(lists, rank, step, op.peer)
            if id(op.blocks) not in sound:
                _check_blocks(lists, rank, step, item)
                sound.add(id(op.blocks))
            if isinstance(op, Send):
                continue
            if Slot.INPUT in clobbers(op):
                seen = "it would overwrite the user's input"
                wrong(lists, rank, step, seen, "name the output or scratch", op.blocks[0])
            if isinstance(op, Combine) and (
                op.left == op.right or (op.into == op.left and op.right < Slot.SCRATCH)
            ):
                seen = "its operands lie where they cannot be combined"
                remedy = "take two slots; combine into the left one only if the right is scratch"
                wrong(lists, rank, step, seen, remedy, op.blocks[0])


def _check_blocks(lists: Lists, rank: int, step: int, item: int) -> None:
    blocks = lists[rank][step].blocks
    lengths = [block.length for block in blocks]
    if min(lengths, default=0) < 0:
        seen, remedy = "a length is negative", "give blocks a length of 0 or more"
        wrong(lists, rank, step, seen, remedy, next(b for b in blocks if b.length < 0))
    if not any(lengths):
        wrong(lists, rank, step, "it is about 0 bytes", "leave out empty operations")
    if cut := [b for b in blocks if b.offset % item or b.length % item]:
        seen = f"it cuts inside an element of {item} bytes"
        wrong(lists, rank, step, seen, "move and combine whole elements", cut[0])


def _no_peer(lists: Lists, rank: int, step: int, peer: int) -> NoReturn:
    if peer == rank:
        wrong(lists, rank, step, "this is the rank itself", "leave the message out")
    seen, remedy = f"there are {len(lists)} ranks", f"name a peer from 0 to {len(lists) - 1}"
    wrong(lists, rank, step, seen, remedy)


def check_partners(lists: Lists) -> None:
    """The k-th send from a to b is the k-th receive at b from a, block by block."""
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
        _explain_partners(lists, *min(unequal))


def _by_peer(
    operations: Sequence[Operation], kind: type[Send] | type[Recv]
) -> dict[int, list[tuple[Block, ...]]]:
    """The blocks of every message of that kind, in list order."""
    found: dict[int, list[tuple[Block, ...]]] = {}
    for op in operations:
        if isinstance(op, kind):
            found.setdefault(op.peer, []).append(op.blocks)
    return found


def _explain_partners(lists: Lists, a: int, b: int) -> NoReturn:
    sends = [i for i, op in enumerate(lists[a]) if isinstance(op, Send) and op.peer == b]
    receives = [i for i, op in enumerate(lists[b]) if isinstance(op, Recv) and op.peer == a]
    both = list(zip(sends, receives, strict=False))
    same = (lists[a][s].blocks == lists[b][r].blocks for s, r in both)
    k = next((k for k, equal in enumerate(same) if not equal), len(both))
    counts = f"rank {a} sends {len(sends)} message(s) to rank {b}, which receives {len(receives)}"
    if len(sends) > len(receives):
        seen, remedy = f"no receive matches: {counts}", f"let rank {b} receive it, or drop it"
        wrong(lists, a, sends[k], seen, remedy, lists[a][sends[k]].blocks[0])
    if len(receives) > len(sends):
        seen, remedy = f"no send matches: {counts}", f"let rank {a} send it, or drop it"
        wrong(lists, b, receives[k], seen, remedy, lists[b][receives[k]].blocks[0])
    step, (there, blocks) = receives[k], (sends[k], lists[a][sends[k]].blocks)
    seen = f"message {k + 1} from rank {a}, its step {there}, carries {told_blocks(blocks)}"
    remedy = "name the same blocks in the same order on both sides"
    wrong(lists, b, step, seen, remedy, lists[b][step].blocks[0])


def check_holdings(lists: Lists, promises: Sequence[Postcondition], atlas: Partition) -> None:
    """In list order: what is read is held, what is received is new; in the end all is there."""
    strange = ~atlas.exists
    for rank, (operations, promise) in enumerate(zip(lists, promises, strict=True)):
        held, owed = atlas.holding(promise.given), atlas.holding(promise.owed)
        unowed = ~owed.get(Slot.OUTPUT, 0)
        touched = dict(held)  # including what was used up
        for step, (op, pieces) in enumerate(zip(operations, atlas.moved[rank], strict=True)):
            if beyond := pieces & strange:
                block = atlas.first(beyond)
                seen = f"there is no such data as {told_blocks([block])}"
                wrong(lists, rank, step, seen, "stay within the data that a rank is given", block)
            if isinstance(op, Send):  # the same as below, for what there is most of
                if missing := pieces & ~held.get(op.slot, 0):
                    _not_held(lists, rank, step, atlas, op.slot, missing)
                continue
            for slot in reads(op):
                if missing := pieces & ~held.get(slot, 0):
                    _not_held(lists, rank, step, atlas, slot, missing)
            if isinstance(op, Recv):
                before = touched.get(op.slot, 0)
                if pieces & before or (len(op.blocks) > 1 and atlas.meet(op.blocks)):
                    _held_already(lists, rank, step, atlas, before)
            for slot in clobbers(op):
                if slot == Slot.OUTPUT and (beyond := pieces & unowed):
                    seen, block = "it is owed nothing there: it has no output", atlas.first(beyond)
                    wrong(lists, rank, step, seen, "keep it in scratch", block)
                touched[slot] = touched.get(slot, 0) | pieces
                held[slot] = held.get(slot, 0) & ~pieces
            if (into := writes(op)) is not None:
                held[into] |= pieces
        for slot, pieces in owed.items():
            if missing := pieces & ~held.get(slot, 0):
                block = atlas.first(missing)
                raise InvalidSchedule(
                    f"rank {rank}, at the end: {told_blocks([block])} in {told_slot(slot)}",
                    f"none of its {len(operations)} operations brings them",
                    "send them to this rank, from one that has them",
                    rank=rank,
                    block=block,
                )


def _touching(lists: Lists, rank: int, slot: int, atlas: Partition, pieces: int) -> list[int]:
    """The steps at which any of the pieces are written, or used up."""
    return [
        step
        for step, op in enumerate(lists[rank])
        if slot in clobbers(op) and atlas.pieces(op.blocks) & pieces
    ]


def _not_held(
    lists: Lists, rank: int, step: int, atlas: Partition, slot: int, missing: int
) -> NoReturn:
    block = atlas.first(missing)
    seen = f"it does not hold {told_blocks([block])} in {told_slot(slot)} by then, "
    steps = _touching(lists, rank, slot, atlas, missing)
    if used := [s for s in steps if s < step and writes(lists[rank][s]) != slot]:
        remedy = "combine first what is used once only"
        wrong(lists, rank, step, seen + f"for it was used up at step {used[-1]}", remedy, block)
    when = next((s for s in steps if writes(lists[rank][s]) == slot and s != step), None)
    if when is None:
        wrong(lists, rank, step, seen + "nor ever", "receive the data first", block)
    remedy = f"put this after step {when}"
    wrong(lists, rank, step, seen + f"but gets data for it only at step {when}", remedy, block)


def _held_already(lists: Lists, rank: int, step: int, atlas: Partition, before: int) -> NoReturn:
    """before: what the slot had before this message, in which some of its blocks lie, or meet."""
    op = lists[rank][step]
    assert isinstance(op, Recv)
    has = before
    for block in op.blocks:
        if again := atlas.pieces([block]) & has:
            break
        has |= atlas.pieces([block])
    first, since = atlas.first(again), "from this very message"
    if again & before:
        at = _touching(lists, rank, op.slot, atlas, again)[0]
        since = f"since step {at}" if at < step else "from the start"
    seen = f"it holds {told_blocks([first])} {since}, and sends that read them may be under way"
    remedy = "leave them out here: every byte of a slot is received once"
    wrong(lists, rank, step, seen, remedy, first)
