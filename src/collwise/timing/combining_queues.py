"""What the messages of schedules that combine wait for, as columns.

Of exchanges, trees, lanes and whatever all ranks do alike they are made at once, of ranks that do
alike in their teams once for all, and of all others by writing out every rank's list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.schedule.data_movement import DownTree, ProgramSequence
from collwise.schedule.dependencies import dependencies
from collwise.schedule.exchange import Exchange
from collwise.schedule.lanes import InLanes
from collwise.schedule.messages import Rows
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.program import Columns, Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.system.integers import Ints
from collwise.timing.exchange_times import exchange_rows
from collwise.timing.port_queues import PortQueues, queues_of


class _Step(NamedTuple):
    """Something that a rank does at its ports; a combine is its own peer."""

    kind: type[Operation]
    peer: int
    place: int
    nbytes: int
    after: int
    """As in `Rows`."""


_Role: TypeAlias = tuple[int, Sequence[Operation], Ints | None]
"""A rank, its list, and the table of those that do alike (`Program.copies`)."""


def combining_queues(schedule: Schedule, *, combines: bool) -> PortQueues | None:
    """The queues of a schedule that combines; None if messages have no partners.

    combines: whether they take time, and so stand in the queues.
    """
    program, ranks, root = schedule.program.timed_as, schedule.ranks, schedule.problem.root
    rows = rows_of(program, ranks, combines=combines)
    if rows is None:
        return None
    source, target = ((ends + root) % ranks for ends in (rows.source, rows.target))
    return queues_of(replace(rows, source=source, target=target), ranks)


def quickly_known(program: Program) -> bool:
    """Whether the queues are made without writing out every rank's list."""
    program = program.timed_as
    return (
        isinstance(program, Exchange | UpTree | InLanes)
        or _is_up_and_down(program)
        or program.is_alike()
        or program.copies() is not None
        or type(program).rows is not Program.rows
    )


def rows_of(program: Program, ranks: int, *, combines: bool) -> Rows | None:
    """The rows of a program, by virtual rank."""
    if isinstance(program, UpTree):
        return _up_tree(program, combines=combines)
    if isinstance(program, Exchange):
        return exchange_rows(program, combines=combines)
    if isinstance(program, InLanes) and program.across:
        return _lanes(program, ranks, combines=combines)
    if isinstance(program, ProgramSequence) and _is_up_and_down(program):
        up, down = program.parts
        assert isinstance(up, UpTree)
        there, back = up.columns(), down.columns()
        assert back is not None
        done = np.bincount(there.source, minlength=ranks)
        done += 2 * np.bincount(there.target, minlength=ranks)
        phases = [(_up_tree(up, combines=combines), done), (_in_order(_messages(back)), done)]
        return _one_after_another(phases, ranks)
    if (copies := program.copies()) is not None:
        roles = ((rank, program.operations(rank), table) for rank, table in copies)
        return _of_roles(roles, combines=combines)
    if (rows := program.rows(combines=combines)) is not None:
        return rows
    if program.is_alike():
        return _alike(program, ranks, combines=combines)
    return _of_lists(program.every(ranks), combines=combines)


def _is_up_and_down(program: Program) -> bool:
    """Whether whole vectors go up a tree and down again."""
    if not isinstance(program, ProgramSequence) or len(program.parts) != 2:
        return False
    up, down = program.parts
    return isinstance(up, UpTree) and up.is_whole() and isinstance(down, DownTree)


def _messages(columns: Columns) -> list[Ints]:
    return [
        columns.source,
        columns.target,
        columns.place_at_source,
        columns.place_at_target,
        columns.length,
    ]


def _up_tree(program: UpTree, *, combines: bool) -> Rows:
    """Of a tree in which what is received is combined at once."""
    messages = _messages(program.columns())
    if combines:
        _, target, _, place, nbytes = messages
        adding = [target, target, place + 1, place + 1, nbytes]
        messages = [np.concatenate(both) for both in zip(messages, adding, strict=True)]
    return _in_order(messages)


def _in_order(messages: Sequence[Ints]) -> Rows:
    """Every send waits for all that its list has before it."""
    source, target, at_source, at_target, nbytes = messages
    width = max(int(at.max(initial=0)) for at in (at_source, at_target)) + 1
    heard = np.sort(target * width + at_target)
    after = np.searchsorted(heard, source * width + at_source)
    after -= np.searchsorted(heard, source * width)
    return Rows(source, target, at_source, at_target, nbytes, after)


def _alike(program: Program, ranks: int, *, combines: bool) -> Rows | None:
    """One rank stands for all, if these go around in a circle."""
    profile, *others = (
        [step._replace(peer=(step.peer - rank) % ranks) for step in own]
        for rank in sorted({0, 1 % ranks, ranks // 2, ranks - 1})
        for own in [_profile(rank, program.operations(rank), combines=combines)]
    )
    if any(other != profile for other in others):
        return _of_lists(program.every(ranks), combines=combines)
    heard: dict[int, list[int]] = {}
    for step in profile:
        if step.kind is Recv:
            heard.setdefault(-step.peer % ranks, []).append(step.place)
    every, rows = np.arange(ranks, dtype=np.int64), list[list[Ints]]()
    for kind, distance, place, nbytes, after in profile:
        if kind is not Recv:
            at_target = heard[distance].pop(0) if distance else place
            cells = [np.full(ranks, cell) for cell in (place, at_target, nbytes, after)]
            rows.append([every, (every + distance) % ranks, *cells])
    return Rows(*map(np.concatenate, zip(*rows, strict=True)))


def _lanes(program: InLanes, ranks: int, *, combines: bool) -> Rows | None:
    """Teams that do alike, phase after phase."""
    phases = []
    for phase in program.phases():
        every, done = [], np.zeros(ranks, np.int64)
        for lists, teams in phase:
            one = _of_lists(lists, combines=combines)
            if one is None:
                return None
            members = np.array(teams, dtype=np.int64)
            done[members] = [len(operations) for operations in lists]
            ends = (members[:, ends].ravel() for ends in (one.source, one.target))
            cells = (one.place_at_source, one.place_at_target, one.nbytes, one.after)
            every.append((*ends, *(np.tile(cell, len(teams)) for cell in cells)))
        if every:
            phases.append((Rows(*map(np.concatenate, zip(*every, strict=True))), done))
    return _one_after_another(phases, ranks)


def _one_after_another(phases: Sequence[tuple[Rows, Ints]], ranks: int) -> Rows:
    """Every phase reads what a rank has at the end of the one before.

    With each phase, the number of every rank's operations in it.
    """
    behind, heard = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    parts = []
    for rows, operations in phases:
        parts.append(
            (
                rows.source,
                rows.target,
                rows.place_at_source + behind[rows.source],
                rows.place_at_target + behind[rows.target],
                rows.nbytes,
                rows.after + heard[rows.source],
            )
        )
        behind = behind + operations
        heard = heard + np.bincount(rows.target, minlength=ranks)
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def _profile(rank: int, operations: Sequence[Operation], *, combines: bool) -> list[_Step]:
    """What a rank does at its ports.   combines: whether combines are among it."""
    heard, afters, steps = 0, list[int](), list[_Step]()
    waits = dependencies(operations)
    for place, (op, earlier) in enumerate(zip(operations, waits, strict=True)):
        after = max([afters[step] for step in earlier], default=0)
        if isinstance(op, Send | Recv):
            steps.append(_Step(type(op), op.peer, place, size_of(op), after))
        elif combines and isinstance(op, Combine):
            steps.append(_Step(Combine, rank, place, size_of(op), heard))
        if isinstance(op, Recv) or (combines and isinstance(op, Combine)):
            heard += 1
            after = heard
        afters.append(after)
    return steps


def _of_lists(lists: Sequence[Sequence[Operation]], *, combines: bool) -> Rows | None:
    """The slow, obvious way."""
    roles = ((rank, operations, None) for rank, operations in enumerate(lists))
    return _of_roles(roles, combines=combines)


def _of_roles(roles: Iterable[_Role], *, combines: bool) -> Rows | None:
    """The k-th send to a rank is its k-th receive; None if one is left."""
    kinds: dict[type[Operation], list[Ints]] = {
        kind: [np.zeros((0, 5), np.int64)] for kind in (Send, Recv, Combine)
    }
    for rank, operations, table in roles:
        steps = _profile(rank, operations, combines=combines)
        for kind, parts in kinds.items():
            if rows := [(rank, *step[1:]) for step in steps if step.kind is kind]:
                parts.append(_of_all(np.array(rows, np.int64), table))
    sent, heard, added = (np.concatenate(parts) for parts in kinds.values())
    sent = sent[np.lexsort((sent[:, 2], sent[:, 1], sent[:, 0]))]
    heard = heard[np.lexsort((heard[:, 2], heard[:, 0], heard[:, 1]))]
    if len(sent) != len(heard) or (sent[:, :2] != heard[:, 1::-1]).any():
        return None
    sent, added = (np.insert(rows, 3, rows[:, 2], axis=1) for rows in (sent, added))
    sent[:, 3] = heard[:, 2]
    return Rows(*np.concatenate((sent, added)).T.copy())


def _of_all(rows: Ints, table: Ints | None) -> Ints:
    """A rank's rows, and those of all that do alike; the first two cells are ranks."""
    if table is None:
        return rows
    order = np.argsort(table[0])
    ends = order[np.searchsorted(table[0], rows[:, :2], sorter=order)]
    every = np.repeat(rows[None], len(table), axis=0)
    every[:, :, :2] = table[:, ends]
    return every.reshape(-1, 5)
