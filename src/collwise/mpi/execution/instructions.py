"""The plan of one rank: a list of instructions, plain data, to be bound to buffers and executed.

The schedule has the order of a rank's operations; the plan adds what each of them waits for.  All
receives are posted at once.  Sends keep their order.  A combine or a copy is done when the next
send needs its result, or else after the last send.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from collwise.schedule.dependencies import Writers, dependencies, hazards_of, overwritten
from collwise.schedule.dependencies import publications as publications_in
from collwise.schedule.operations import (
    Combine,
    Copy,
    Local,
    Message,
    Operation,
    Recv,
    Send,
    Slot,
    blocks_in,
    in_other_slot,
    reads,
    writes,
)


class Start(NamedTuple):
    """An instruction that starts messages, in this order; numbers index `RankPlan.messages`."""

    messages: tuple[int, ...]


class Await(NamedTuple):
    """An instruction that waits until messages, which were started before, are complete."""

    messages: tuple[int, ...]


Instruction: TypeAlias = Start | Await | Combine | Copy


class RankPlan(NamedTuple):
    """The instructions of one rank, in order.

    messages: its sends and receives.   instructions: executed one after the other.
    forwarding: the number of instructions up to the last send.  Other ranks wait for these, so they
    are executed promptly, even while the program is elsewhere; nobody waits for the rest.
    """

    messages: tuple[Message, ...]
    instructions: tuple[Instruction, ...]
    forwarding: int

    @property
    def operations(self) -> list[Operation]:
        """All messages, combines and copies, in no particular order."""
        local = [one for one in self.instructions if isinstance(one, Combine | Copy)]
        return [*self.messages, *local]


def rank_plan(operations: Sequence[Operation], after: Sequence[Local] = ()) -> RankPlan:
    """The plan of one rank.

    operations: the rank's operations in the schedule.   after: what to execute after them.
    """
    messages = [(place, op) for place, op in enumerate(operations) if isinstance(op, Send | Recv)]
    number = {place: n for n, (place, _) in enumerate(messages)}
    receives = tuple(number[place] for place, op in messages if isinstance(op, Recv))
    instructions: list[Instruction] = [Start(receives)] if receives else []
    awaited: set[int] = set()
    forwarding = 0
    for place, needed in _in_order(operations):
        op = operations[place]
        if missing := sorted(number[p] for p in needed if number[p] not in awaited):
            awaited.update(missing)
            instructions.append(Await(tuple(missing)))
        if isinstance(op, Combine | Copy):
            instructions.append(op)
            continue
        if instructions and isinstance(last := instructions[-1], Start):
            instructions[-1] = Start((*last.messages, number[place]))
        else:
            instructions.append(Start((number[place],)))
        forwarding = len(instructions)
    if left := tuple(n for n in range(len(messages)) if n not in awaited):
        instructions.append(Await(left))
    return RankPlan(tuple(op for _, op in messages), (*instructions, *after), forwarding)


def publications(plan: RankPlan, readers: Collection[int]) -> list[int]:
    """For each message, the number of the first message that sends the same bytes, or its own.

    Messages with equal numbers are written to shared memory once.
    readers: the peers with which this rank shares memory.
    """
    executed, numbers, _ = _executed(plan)
    first = list(range(len(plan.messages)))
    for number, same in zip(numbers, publications_in(executed, readers), strict=True):
        if number >= 0:
            first[number] = numbers[same]
    return first


def read_once(plan: RankPlan) -> list[int]:
    """For each message, the number of the combine that may read it in shared memory; -1 if none.

    Such a message goes to scratch, and one operand of the combine is exactly this message.  Nothing
    else reads, sends or copies its bytes, so they need not be copied to the plan's memory.
    """
    executed, numbers, places = _executed(plan)
    readers: list[list[int]] = [[] for _ in executed]
    for place, written in enumerate(dependencies(executed)):
        for writer in written:
            readers[writer].append(place)
    once = [-1] * len(plan.messages)
    for op, number, places_of in zip(executed, numbers, readers, strict=True):
        if not isinstance(op, Recv) or op.slot < Slot.SCRATCH or len(places_of) != 1:
            continue
        reader = executed[places_of[0]]
        if isinstance(reader, Combine) and reader.blocks == op.blocks:
            once[number] = places[places_of[0]] if reader.left != reader.right else -1
    return once


def _executed(plan: RankPlan) -> tuple[list[Operation], list[int], list[int]]:
    """The operations in the order of execution, and two lists of numbers.

    The first list has each operation's message number, -1 for a combine or copy; the second list
    has the number of the instruction that executes or starts it.
    """
    executed: list[Operation] = []
    numbers: list[int] = []
    places: list[int] = []
    for place, one in enumerate(plan.instructions):
        started = one.messages if isinstance(one, Start) else ()
        local = [one] if isinstance(one, Combine | Copy) else []
        executed += [*(plan.messages[number] for number in started), *local]
        numbers += [*started, *(-1 for _ in local)]
        places += [place] * (len(started) + len(local))
    return executed, numbers, places


def _in_order(operations: Sequence[Operation]) -> Iterable[tuple[int, set[int]]]:
    """Yield (place of a send, combine or copy; places of messages it awaits), as executed."""
    data = dependencies(operations)
    local = any(isinstance(op, Combine | Copy) for op in operations)
    hazards = hazards_of(operations) if local else [set()] * len(operations)
    sent = overwritten(operations) if local else [()] * len(operations)
    done: set[int] = set()

    def with_prerequisites(place: int) -> Iterable[tuple[int, set[int]]]:
        """The combines and copies that have to come before an operation, and the operation."""
        needed, todo = {place}, [place]
        while todo:
            for before in (*data[at := todo.pop()], *hazards[at]):
                new = before not in needed and before not in done
                if new and isinstance(operations[before], Combine | Copy):
                    needed.add(before)
                    todo.append(before)
        done.update(needed)
        for at in sorted(needed):
            waits = {w for w in (*data[at], *hazards[at]) if isinstance(operations[w], Recv)}
            yield at, waits.union(sent[at])

    for place, op in enumerate(operations):
        if isinstance(op, Send):
            yield from with_prerequisites(place)
    for place, op in enumerate(operations):
        if isinstance(op, Combine | Copy) and place not in done:
            yield from with_prerequisites(place)


def in_place(operations: Sequence[Operation]) -> tuple[Operation, ...] | None:
    """A rank's operations, changed to read the rank's input from OUTPUT.

    None if an operation might read bytes of the input after output was written over them.
    Receives may write from the start, since they are all posted at once.
    """
    inputs, outputs = Writers(), Writers()
    renamed: list[Operation] = []
    for place, op in enumerate(operations):
        if isinstance(op, Copy) and op[:2] == (Slot.INPUT, Slot.OUTPUT) and not op.shift:
            continue  # the input is in OUTPUT already
        renamed.append(in_other_slot(op, Slot.INPUT, Slot.OUTPUT))
        if Slot.INPUT in reads(op):
            for block in op.blocks:
                if outputs.of(Slot.OUTPUT, block):
                    return None
                inputs.write(Slot.INPUT, block, place)
        if writes(op) == Slot.OUTPUT:
            for block in blocks_in(op, Slot.OUTPUT):
                outputs.write(Slot.OUTPUT, block, place)
    arriving = [op for op in operations if isinstance(op, Recv) and op.slot == Slot.OUTPUT]
    if any(inputs.of(Slot.INPUT, block) for op in arriving for block in op.blocks):
        return None
    return tuple(renamed)


def reduce_local_form(operations: Iterable[Operation]) -> Iterable[Operation]:
    """The operations for `MPI_Reduce_local`, which overwrites its right operand.

    A right operand in scratch is not needed any more, so it is overwritten and the result copied.
    A right operand in the user's buffer is first copied to where the result will be.  That copy
    waits for no message, so it is done while messages are on their way.
    """
    for op in operations:
        if not isinstance(op, Combine) or op.right == op.into:
            yield op
        elif op.right >= Slot.SCRATCH:
            yield op._replace(into=op.right)
            yield Copy(op.right, op.into, op.blocks)
        else:
            yield Copy(op.right, op.into, op.blocks)
            yield op._replace(right=op.into)
