"""Lower bounds of a schedule's time, without contention; rough times on machines with levels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from collwise.algorithms.registry import Algorithm
from collwise.algorithms.search import program_time
from collwise.model.levels import Levels, OneLevel
from collwise.model.limits import MAX_INSIDE, QUICK
from collwise.model.machine import Machine
from collwise.schedule.combinators import On, Task, Then
from collwise.schedule.data_movement import DownTree
from collwise.schedule.dependencies import publications
from collwise.schedule.interleaved import Interleaved
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.timing.law import readers_of
from collwise.timing.trace import completion, messages_played
from collwise.timing.tree_times import time_by_pace


def least_time(schedule: Schedule, machine: Machine) -> Fraction:
    """A lower bound of a schedule's time: its exact seconds without contention; 0 if unknown.

    Returns 0 for more work than QUICK, for several sources, for all-port machines, for ranks
    that share memory, and for a combining collective with results on other ranks than the root if
    any order of combining is allowed.  Also returns 0 in LogGP, except for broadcasts down a tree:
    LogGP ranks receive messages as they arrive, so the time without contention is a bound only if
    every rank has just one sender.
    """
    if machine.shares_memory:  # nothing but ports delays messages: this would be the time itself
        return Fraction(0)
    problem, free = schedule.problem, machine.ports_only()
    # In a census, combines may overtake sends: otherwise ranks would wait for each other.
    overtaken = problem.kind.combines and problem.kind.output != "root" and problem.order == "any"
    late = machine.law == "loggp" and not isinstance(schedule.program, DownTree)
    unknown = machine.all_port or late or overtaken or len(problem.sources) > 1
    if unknown or messages_played(schedule, free) > QUICK:
        return Fraction(0)
    return completion(schedule, free)


def about(
    algorithm: Algorithm,
    schedule: Schedule,
    lists: Mapping[int, Sequence[Operation]],
    machine: Levels,
) -> tuple[Fraction, bool]:
    """A rough time in seconds on a machine with levels, and whether it is good enough to choose by.

    schedule: one of `algorithm`.   lists: maps some of the ranks to their operations.
    An algorithm for levels is timed `by_parts`, or simulated if that is quick.  If all ranks do the
    same, messages that leave a group at the same time are assumed to pass its port one by one.  A
    rank's messages are assumed to follow each other, too, unless many are in flight.  In other
    programs all messages are assumed to cross the outermost level, and groups to send at once.
    """
    problem, program = schedule.problem, schedule.program
    if algorithm.levels:
        time = by_parts(program, problem, machine)
        if time is None and messages_played(schedule, machine) <= QUICK:
            time = completion(schedule, machine)
        if time is not None:
            return time, True
    plain = replace(problem, placement=None)
    alike = algorithm.kind.combines and not algorithm.levels and program.is_alike()
    placement = machine.placement
    inner = placement.members[placement.depth - 2] if placement.depth > 1 and not alike else [[0]]
    law = OneLevel(machine, placement.depth, crowd=max(map(len, inner)))
    flat = replace(schedule, problem=plain)
    slow = messages_played(flat, law) > QUICK
    across = Fraction(0) if slow else completion(flat, law)
    if alike:
        alone, crowds = max(
            _receives_in_turn(rank, operations, machine) for rank, operations in lists.items()
        )
        return (across + crowds, False) if 0 < across < alone else (alone + crowds, True)
    return across, not slow and problem.ranks > MAX_INSIDE


def by_parts(program: Program, problem: Problem, machine: Levels) -> Fraction | None:
    """A rough time of a program in seconds, from the times of its parts; None if they are unknown.

    Parts that follow each other add up; of parts side by side the slowest counts.  If segments move
    down or up a tree, the first few are simulated; the rest is extrapolated.
    """
    match program:
        case Then():
            known = [
                time
                for part in program.parts
                if (time := by_parts(part, problem, machine)) is not None
            ]
            return sum(known, Fraction(0)) if len(known) == len(program.parts) else None
        case On():
            times = (_team_time(program, *task, problem, machine) for task in program.tasks())
            return max(times, default=Fraction(0))
        case DownTree() | UpTree():
            return time_by_pace(program, lambda few: completion(Schedule(problem, few), machine))
        case Interleaved():
            piece = max(program.pieces, key=lambda piece: len(piece.program.operations(0))).program
            if (alone := by_parts(piece, problem, machine)) is not None:
                return alone + (len(program.pieces) - 1) * _busy_per_piece(piece, problem, machine)
    return None


def _team_time(
    program: On, task: Task, numbers: Sequence[int], problem: Problem, machine: Levels
) -> Fraction:
    """Seconds that the program of one team (some of the ranks) takes.

    task: the program.   numbers: the numbers of the teams that run it; the first team is timed.
    """
    team = program.teams[numbers[0]]
    inner = Problem("broadcast", len(team), problem.nbytes)
    if program.level is not None:
        law = OneLevel(machine, program.level, crowd=program.crowd)
        return program_time(inner, task.program, law)
    placement = machine.placement.from_rank(problem.root).part(team)
    return completion(Schedule(inner, task.program), machine.placed(placement))


def _busy_per_piece(piece: Program, problem: Problem, machine: Levels) -> Fraction:
    """Seconds, roughly, for which one piece of the vector keeps a port busy.

    This is rank 0's own port, at which a publication in shared memory is one message, or its node's
    if that is busy longer.  The node's counts as if as
    many ranks as the smallest node has sent what rank 0 sends across the outermost level.
    piece: the program that moves this piece.
    """
    placement = machine.placement.from_rank(problem.root)
    across = OneLevel(machine, placement.depth, crowd=min(map(len, placement.members[0])))
    own_port = shared_port = Fraction(0)
    operations = piece.operations(0)
    firsts = publications(operations, readers_of(machine.placed(placement), placement.ranks)(0))
    for place, op in enumerate(operations):
        if isinstance(op, Send) and firsts[place] == place:
            level, nbytes = placement.meeting(0, op.peer), size_of(op)
            own_port += machine.at(level, nbytes).gap
            if level > 1:
                shared_port += across.message(nbytes).gap
    return max(own_port, shared_port)


def _receives_in_turn(
    rank: int, operations: Sequence[Operation], machine: Levels
) -> tuple[Fraction, Fraction]:
    """(busy, waiting): seconds of a rank's receives and combines, summed, and of its waits.

    A message from another group waits at a shared port once for each other rank of this group.
    """
    placement = machine.placement
    kinds = Counter(
        (type(op), placement.meeting(rank, op.peer) if isinstance(op, Recv) else 0, size_of(op))
        for op in operations
    )
    total, crowds = Fraction(0), Fraction(0)
    for (kind, level, nbytes), number in kinds.items():
        if kind is Combine:
            total += number * (machine.combine(nbytes) or 0)
        elif kind is Recv:
            total += number * machine.at(level, nbytes).latency
            if level > 1:
                crowd = len(placement.members[level - 2][placement.group(level - 1, rank)])
                crowds += number * (crowd - 1) * machine.port(level - 1, nbytes)
    return total, crowds


def load(lists: Mapping[int, Sequence[Operation]], machine: Machine) -> Fraction:
    """A lower bound of the time in seconds: the busy time of the busiest port of some ranks.

    lists: maps some of the ranks to their operations.   A rank sends one message after another, in
    the order of its list, and receives one after another.  In shared memory all sends of the same
    blocks of a slot count as one, even if the blocks are published again.
    """
    least = Fraction(0)
    message, receipt = cache(machine.message), cache(machine.receipt)
    for operations in lists.values():
        if machine.shares_memory:
            sent = {(op.slot, op.blocks): op for op in operations if isinstance(op, Send)}
            operations = [*sent.values(), *(op for op in operations if not isinstance(op, Send))]
        combining, sending, receiving = Fraction(0), Fraction(0), Fraction(0)
        lags = []  # for each kind of message, its latency minus the time at the receiver's port
        for (kind, nbytes), number in Counter((type(o), size_of(o)) for o in operations).items():
            if kind is Combine:
                combining += number * (machine.combine(nbytes) or 0)
            elif kind is Send:
                sending += number * (0 if machine.all_port else message(nbytes).gap)
            elif kind is Recv:
                gap = Fraction(0) if machine.all_port else receipt(nbytes)
                receiving += number * gap
                lags.append(message(nbytes).latency - gap)
        ending = [o for o in reversed(operations) if isinstance(o, Send | Combine)]
        last = Fraction(0)  # seconds from the end of the last send at the port to its arrival
        if at_last := next((o for o in ending if isinstance(o, Send)), None):
            gap, latency = message(size_of(at_last))
            last = latency - (0 if machine.all_port else gap)
            last = last if at_last is ending[0] else min(last, Fraction(0))
        received = receiving + combining + min(lags, default=Fraction(0))
        least = max(least, sending + combining + last, received)
    return least
