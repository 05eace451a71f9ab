"""Programs made of programs: one after another (`Then`), side by side on teams of ranks (`On`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collwise.schedule.hierarchy import Hierarchy, Teams
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Message,
    Operation,
    Recv,
    Send,
    Slot,
    clobbers,
    reads,
    scratch,
)
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Class


@dataclass(frozen=True)
class Then(Program):
    """Programs that run one after another on every rank.

    Of the parts that read the input slot, the first reads the user's input, and the last writes the
    output.  Each but the last leaves its result in scratch, and the next one reads it there.
    A part that does not read the input slot changes the current result in place.
    """

    parts: tuple[Program, ...]

    @property
    def needs_posted_receives(self) -> bool:  # type: ignore[override]
        """Whether one of the parts needs posted receives."""
        return any(part.needs_posted_receives for part in self.parts)

    def classes(self) -> list[Class] | None:
        """The classes of all parts but `KeepOwn`, if these share one list of classes; else None."""
        known = [part.classes() for part in self.parts if not isinstance(part, KeepOwn)]
        return known[0] if known and all(classes is known[0] for classes in known) else None

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        lists = [part.operations(rank) for part in self.parts]
        takers = [
            number
            for number, operations in enumerate(lists)
            if any(Slot.INPUT in reads(op) for op in operations)
        ]
        if len(takers) < 2:
            return [op for operations in lists for op in operations]
        threaded: list[Operation] = []
        value, unused = int(Slot.INPUT), 0
        for number, operations in enumerate(lists):
            if number not in takers:
                result = value if takers[0] < number else int(Slot.OUTPUT)
            elif number == takers[-1]:
                result = int(Slot.OUTPUT)
            else:
                result, unused = scratch(unused), unused + 1
            moved, unused = in_slots(operations, value, result, unused)
            threaded += moved
            value = result if number in takers else value  # a part may have nothing to do here
        return threaded


@dataclass(frozen=True)
class KeepOwn(Program):
    """Every rank copies its own result out of the whole vector, which is in its input slot."""

    problem: Problem

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        own = self.problem.output_of(rank)
        return [Copy(Slot.INPUT, Slot.OUTPUT, own)] if self.problem.nbytes else []


class Task(NamedTuple):
    """The program that a team runs, and how many bytes to add to the offsets of its blocks."""

    program: Program
    offset: int = 0


@dataclass(frozen=True)
class On(Program):
    """Teams of ranks run programs side by side.

    task: maps a team's number to its task, None for no task; teams with equal programs share one
    `Program` object.
    level: the machine's level of all messages inside teams; None if they are at several levels.
    crowd: how many teams at this level send at once through a port that they share.
    seats: a hierarchy of teams; ranks with equal places in teams of equal sizes have equal lists up
    to renumbered peers.  None if no such hierarchy is known.
    """

    teams: Teams
    task: Callable[[int], Task | None]
    level: int | None = None
    crowd: int = 1
    seats: Hierarchy | None = None

    def classes(self) -> list[Class] | None:  # noqa: D102
        return None if self.seats is None else self.seats.by_seats

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        number = self.teams.number(rank)
        if number < 0 or (task := self.task(number)) is None:
            return []
        operations = task.program.operations(self.teams.place(rank))
        return on_ranks(operations, self.teams[number], task.offset)

    def tasks(self) -> list[tuple[Task, list[int]]]:
        """The distinct tasks, each with the numbers of all teams that run it."""
        distinct: dict[tuple[int, int], tuple[Task, list[int]]] = {}
        for number in range(len(self.teams)):
            if (task := self.task(number)) is not None:
                distinct.setdefault((id(task.program), task.offset), (task, []))[1].append(number)
        return list(distinct.values())


@dataclass(frozen=True)
class OneVector(Program):
    """An allgatherv whose contributions are consecutive parts of one vector.

    begins: for each rank, the byte offset of its part.   has_all: whether rank 0 has the whole
    vector from the start, so that messages to it are left out.
    """

    program: Program
    begins: tuple[int, ...]
    has_all: bool = False

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations: list[Operation] = []
        for op in self.program.operations(rank):
            assert isinstance(op, Send | Recv)
            if self.has_all and (op.peer == 0 if isinstance(op, Send) else rank == 0):
                continue
            blocks = (Block(0, self.begins[b.owner] + b.offset, b.length) for b in op.blocks)
            operations.append(op._replace(blocks=tuple(blocks)))
        return operations


def on_ranks(
    operations: Sequence[Operation], team: Sequence[int] | None, offset: int = 0
) -> list[Operation]:
    """A team member's operations; peers become ranks, and `offset` is added to blocks' offsets.

    team: peer i in `operations` becomes rank team[i]; None if the team is all ranks, so that peers
    stay as they are.
    """
    if team is None and not offset:
        return list(operations)
    renamed: list[Operation] = []
    for op in operations:
        blocks = op.blocks
        if offset:
            blocks = tuple([Block(owner, at + offset, length) for owner, at, length in blocks])
        if isinstance(op, Message):
            peer = op.peer if team is None else team[op.peer]
            renamed.append(type(op)(peer, blocks, op.slot))
        else:
            renamed.append(op._replace(blocks=blocks))
    return renamed


def in_slots(
    operations: Sequence[Operation], value: int, result: int, unused: int
) -> tuple[list[Operation], int]:
    """The operations with their buffers (slots) renumbered.

    The input becomes slot `value`, the output becomes slot `result`, and scratch number n becomes
    number `unused` + n.   Returns the new operations, and the scratch number from which on all
    are still unused.  A combine destroys a right operand in scratch.  So an input or output that
    becomes scratch is copied before such a combine if a later operation reads it.
    """

    def at(slot: int) -> int:
        return value if slot == Slot.INPUT else result if slot == Slot.OUTPUT else slot + unused

    used = {slot for op in operations for slot in (*reads(op), *clobbers(op))}
    free = unused + max(max(used, default=0) - Slot.SCRATCH + 1, 0)
    written: list[Operation] = []
    for step, op in enumerate(operations):
        match op:
            case Send() | Recv():
                written.append(type(op)(op.peer, op.blocks, at(op.slot)))
            case Copy():
                written.append(op._replace(source=at(op.source), into=at(op.into)))
            case Combine():
                right = at(op.right)
                kept = op.right < Slot.SCRATCH <= right and op.right != op.into
                if kept and any(op.right in reads(later) for later in operations[step + 1 :]):
                    written.append(Copy(right, scratch(free), op.blocks))
                    right, free = scratch(free), free + 1
                written.append(Combine(at(op.left), right, at(op.into), op.blocks))
    return written, free
