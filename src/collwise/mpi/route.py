"""One rank's list as the executor walks it: what starts at once, what waits for what.

Sends keep their order; what is combined or copied is done when the next send needs it, or else at
the end.  So a rank waits exactly where the laws of schedules say that it may.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from collwise.schedule.dependencies import Writers, dependencies, overwritten
from collwise.schedule.operations import (
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    clobbers,
    reads,
    writes,
)
from collwise.schedule.program import Schedule


class Stage(NamedTuple):
    """When these messages (and those of earlier stages) are complete, the acts can be done."""

    awaited: tuple[int, ...]
    """Receives whose data is needed, and sends whose data is about to be overwritten."""
    acts: tuple[int, ...]
    """Sends to start, combines and copies to do, in this order."""


class Route(NamedTuple):
    """Operations of one rank by place.

    first: receives (all of them) and sends that start at once.   opening: what follows them without
    waiting for anything.   stages: what waits, up to the last send.   tail: what is left to do when
    all sends have started: this rank's own business, nobody waits for it.
    """

    operations: tuple[Operation, ...]
    first: tuple[int, ...]
    opening: tuple[int, ...]
    stages: tuple[Stage, ...]
    tail: tuple[Stage, ...]

    @property
    def forwards(self) -> bool:
        """Whether this rank has to act between start and completion."""
        return bool(self.stages)


def route(operations: Sequence[Operation]) -> Route:
    """Work out the order in which one rank's operations are started."""
    awaited: set[int] = set()
    stages = [Stage((), ())]
    last_send = 0
    for place, needed in _in_order(operations):
        if missing := tuple(sorted(needed - awaited)):
            awaited.update(missing)
            stages.append(Stage(missing, (place,)))
        else:
            stages[-1] = stages[-1]._replace(acts=(*stages[-1].acts, place))
        if isinstance(operations[place], Send):
            last_send = len(stages) - 1
    receives = [place for place, op in enumerate(operations) if isinstance(op, Recv)]
    opening = list(stages[0].acts)
    at_once = []
    while opening and isinstance(operations[opening[0]], Send):
        at_once.append(opening.pop(0))
    return Route(
        tuple(operations),
        (*receives, *at_once),
        tuple(opening),
        tuple(stages[1 : last_send + 1]),
        tuple(stages[last_send + 1 :]),
    )


def route_of(schedule: Schedule, rank: int) -> Route:
    """The route of one rank of a schedule."""
    return route(schedule.rank(rank))


def _in_order(operations: Sequence[Operation]) -> Iterable[tuple[int, set[int]]]:
    """All sends, combines and copies in the order of execution, with the messages they await."""
    data = dependencies(operations)
    local = any(isinstance(op, Combine | Copy) for op in operations)
    hazards = _hazards(operations) if local else [set()] * len(operations)
    sent = overwritten(operations) if local else [()] * len(operations)
    done: set[int] = set()

    def catch_up(place: int) -> Iterable[tuple[int, set[int]]]:
        """What has to be done for an operation that has not been, and itself."""
        needed, todo = {place}, [place]
        while todo:
            for before in (*data[at := todo.pop()], *hazards[at]):
                known = before in needed or before in done
                if not known and isinstance(operations[before], Combine | Copy):
                    needed.add(before)
                    todo.append(before)
        done.update(needed)
        for at in sorted(needed):
            waits = {w for w in (*data[at], *hazards[at]) if isinstance(operations[w], Recv)}
            yield at, waits.union(sent[at])

    for place, op in enumerate(operations):
        if isinstance(op, Send):
            yield from catch_up(place)
    for place, op in enumerate(operations):
        if isinstance(op, Combine | Copy) and place not in done:
            yield from catch_up(place)


def _hazards(operations: Sequence[Operation]) -> list[set[int]]:
    """For every combine and copy, earlier ones and receives on bytes whose values it changes."""
    users = Writers()  # for every byte its latest user; `before` leads on to the earlier ones
    before: list[set[int]] = []
    hazards: list[set[int]] = []
    for place, op in enumerate(operations):
        changed = () if isinstance(op, Send) else clobbers(op)
        used = () if isinstance(op, Send) else {*reads(op), *changed}
        earlier: set[int] = set()
        for slot in used:
            for block in op.blocks:
                earlier |= users.of(slot, block)
        for user in tuple(earlier):
            earlier |= before[user]
        before.append(earlier)
        hazards.append({user for user in earlier if _meet(operations[user], op, changed)})
        for slot in used:
            for block in op.blocks:
                users.write(slot, block, place)
    return hazards


def _meet(earlier: Operation, op: Operation, changed: Iterable[int]) -> bool:
    """Whether an operation changes bytes that an earlier one has to do with."""
    slots = {*reads(earlier), *clobbers(earlier)}.intersection(changed)
    return bool(slots) and any(
        a.owner == b.owner and a.offset < b.end and b.offset < a.end
        for a in earlier.blocks
        for b in op.blocks
    )


def in_place(operations: Sequence[Operation]) -> tuple[Operation, ...] | None:
    """The list for a rank whose input lies where its output will be; None if it has to be kept.

    It has to where bytes of the input would still be read after the output has come there.
    """
    renamed = tuple(_renamed(op) for op in operations if not _moves_nothing(op))
    read, written = Writers(), Writers()
    for place, op in enumerate(operations):
        if _moves_nothing(op):
            continue
        if Slot.INPUT in reads(op):
            for block in op.blocks:
                if written.of(Slot.OUTPUT, block):
                    return None
                read.write(Slot.INPUT, block, place)
        if writes(op) == Slot.OUTPUT:
            for block in op.blocks:
                written.write(Slot.OUTPUT, block, place)
    arriving = (op for op in operations if isinstance(op, Recv) and op.slot == Slot.OUTPUT)
    for op in arriving:  # posted at once, before anything is read
        if any(read.of(Slot.INPUT, block) for block in op.blocks):
            return None
    return renamed


def _moves_nothing(op: Operation) -> bool:
    return isinstance(op, Copy) and op.source == Slot.INPUT and op.into == Slot.OUTPUT


def _renamed(op: Operation) -> Operation:
    def output(slot: int) -> int:
        return Slot.OUTPUT if slot == Slot.INPUT else slot

    match op:
        case Combine():
            return op._replace(left=output(op.left), right=output(op.right))
        case Copy():
            return op._replace(source=output(op.source))
        case _:
            return op._replace(slot=output(op.slot))
