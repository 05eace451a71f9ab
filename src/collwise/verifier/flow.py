"""The flow of the data, told from the lists alone: operations, their partners, what is held."""

from collections.abc import Sequence
from typing import NoReturn

from collwise.errors import InvalidSchedule
from collwise.schedule.data import Combine, Recv, Send, Slot, reads, spoils, writes
from collwise.verifier.atlas import Atlas
from collwise.verifier.promises import Promise
from collwise.verifier.words import Lists, told_blocks, told_slot, wrong


def check_operations(lists: Lists, item: int = 1) -> None:
    """Each operation makes sense by itself.

    item: bytes of an element, none of which may be cut.
    """
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, Send | Recv):
                _check_peer(lists, rank, step, op.peer)
            if negative := [b for b in op.blocks if b.length < 0]:
                seen, remedy = "a length is negative", "give blocks a length of 0 or more"
                wrong(lists, rank, step, seen, remedy, negative[0])
            if not any(b.length for b in op.blocks):
                wrong(lists, rank, step, "it is about 0 bytes", "leave out empty operations")
            if cut := [b for b in op.blocks if b.offset % item or b.length % item]:
                seen = f"it cuts inside an element of {item} bytes"
                wrong(lists, rank, step, seen, "move and combine whole elements", cut[0])
            if Slot.INPUT in spoils(op):
                seen = "it would overwrite the user's input"
                wrong(lists, rank, step, seen, "name the output or scratch", op.blocks[0])
            if isinstance(op, Combine) and (
                op.left == op.right or (op.into == op.left and op.right < Slot.SCRATCH)
            ):
                seen = "its operands lie where they cannot be combined"
                remedy = "take two slots; combine into the left one only if the right is scratch"
                wrong(lists, rank, step, seen, remedy, op.blocks[0])


def _check_peer(lists: Lists, rank: int, step: int, peer: int) -> None:
    if not 0 <= peer < len(lists):
        seen, remedy = f"there are {len(lists)} ranks", f"name a peer from 0 to {len(lists) - 1}"
        wrong(lists, rank, step, seen, remedy)
    if peer == rank:
        wrong(lists, rank, step, "this is the rank itself", "leave the message out")


def check_partners(lists: Lists) -> None:
    """The k-th send from a to b is the k-th receive at b from a, block by block."""
    pairs: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for rank, operations in enumerate(lists):
        for step, op in enumerate(operations):
            if isinstance(op, Send):
                pairs.setdefault((rank, op.peer), ([], []))[0].append(step)
            elif isinstance(op, Recv):
                pairs.setdefault((op.peer, rank), ([], []))[1].append(step)
    for (a, b), (sends, receives) in sorted(pairs.items()):
        both = list(zip(sends, receives, strict=False))
        same = (lists[a][s].blocks == lists[b][r].blocks for s, r in both)
        k = next((k for k, equal in enumerate(same) if not equal), len(both))
        counts = (
            f"rank {a} sends {len(sends)} message(s) to rank {b}, which receives {len(receives)}"
        )
        if len(sends) > len(receives):
            seen, remedy = f"no receive matches: {counts}", f"let rank {b} receive it, or drop it"
            wrong(lists, a, sends[k], seen, remedy, lists[a][sends[k]].blocks[0])
        if len(receives) > len(sends):
            seen, remedy = f"no send matches: {counts}", f"let rank {a} send it, or drop it"
            wrong(lists, b, receives[k], seen, remedy, lists[b][receives[k]].blocks[0])
        if k < len(both):
            step, (there, blocks) = receives[k], (sends[k], lists[a][sends[k]].blocks)
            seen = f"message {k + 1} from rank {a}, its step {there}, carries {told_blocks(blocks)}"
            remedy = "name the same blocks in the same order on both sides"
            wrong(lists, b, step, seen, remedy, lists[b][step].blocks[0])


def check_holdings(lists: Lists, promises: Sequence[Promise], atlas: Atlas) -> None:
    """In list order: what is read is held, what is received is new; in the end all is there."""
    for rank, (operations, promise) in enumerate(zip(lists, promises, strict=True)):
        held, owed = atlas.holding(promise.given), atlas.holding(promise.owed)
        touched = dict(held)  # including what was used up
        for step, op in enumerate(operations):
            pieces = atlas.pieces(op.blocks)
            if beyond := pieces & ~atlas.exists:
                block = atlas.first(beyond)
                seen = f"there is no such data as {told_blocks([block])}"
                wrong(lists, rank, step, seen, "stay within the data that a rank is given", block)
            for slot in reads(op):
                if missing := pieces & ~held.get(slot, 0):
                    _not_held(lists, rank, step, atlas, slot, missing)
            if isinstance(op, Recv):
                has = touched.get(op.slot, 0)
                for block in op.blocks:
                    if again := atlas.pieces([block]) & has:
                        first = not again & touched.get(op.slot, 0)
                        _held_already(lists, rank, step, atlas, again, first)
                    has |= atlas.pieces([block])
            if Slot.OUTPUT in spoils(op) and (beyond := pieces & ~owed.get(Slot.OUTPUT, 0)):
                seen, block = "it is owed nothing there: it has no output", atlas.first(beyond)
                wrong(lists, rank, step, seen, "keep it in scratch", block)
            for slot in spoils(op):
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


def _touching(lists: Lists, rank: int, slot: int, atlas: Atlas, pieces: int) -> list[int]:
    """The steps at which any of the pieces are written, or used up."""
    return [
        step
        for step, op in enumerate(lists[rank])
        if slot in spoils(op) and atlas.pieces(op.blocks) & pieces
    ]


def _not_held(
    lists: Lists, rank: int, step: int, atlas: Atlas, slot: int, missing: int
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


def _held_already(
    lists: Lists, rank: int, step: int, atlas: Atlas, again: int, first: bool
) -> NoReturn:
    """first: the rank did not hold the pieces before this message."""
    op = lists[rank][step]
    assert isinstance(op, Recv)
    block, before = atlas.first(again), _touching(lists, rank, op.slot, atlas, again)[0]
    if first:
        since = "from this very message"
    else:
        since = f"since step {before}" if before < step else "from the start"
    seen = f"it holds {told_blocks([block])} {since}, and sends that read them may be under way"
    remedy = "leave them out here: every byte of a slot is received once"
    wrong(lists, rank, step, seen, remedy, block)
