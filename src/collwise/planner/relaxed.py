"""Lower bounds of a schedule's time, as if messages never met; with levels, rough times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from collwise.algorithms.registry import Algorithm, program_time
from collwise.model.levels import Levels, OneLevel
from collwise.model.limits import MAX_INSIDE, QUICK
from collwise.model.machine import Machine
from collwise.schedule.combinators import On, Task, Then
from collwise.schedule.data_movement import DownTree
from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.overlapped import Overlapped
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.timing.trace import completion, messages_played


def least_time(schedule: Schedule, machine: Machine, limit: int = QUICK) -> Fraction:
    """Exact seconds if messages never met: a schedule takes at least as long; 0 if unknown.

    In LogGP messages are received as they arrive, so this holds only where each rank has one
    sender; with all ports, ranks have more of them.
    """
    problem, free = schedule.problem, machine.ports_only()
    # Combines of a census may overtake sends, where ranks would wait for each other in a circle.
    overtaken = problem.kind.combines and problem.kind.output != "root" and problem.order == "any"
    late = machine.law == "loggp" and not isinstance(schedule.program, DownTree)
    unknown = machine.all_port or late or overtaken or len(problem.sources) > 1
    if unknown or messages_played(schedule, free) > limit:
        return Fraction(0)
    return completion(schedule, free)


def about(
    algorithm: Algorithm,
    schedule: Schedule,
    lists: Mapping[int, Sequence[Operation]],
    machine: Levels,
) -> tuple[Fraction, bool]:
    """Roughly the seconds on a machine with levels; whether that is near enough to choose by it.

    A program made of parts takes as long as they do one after another.  Where all ranks do the
    same, what leaves a group at the same time passes its port one by one, and so do messages,
    unless many are under way.  For others it is the time if all messages went across, and all ranks
    of a group sent whenever one of them does.
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
        alone, crowds = max(_one_by_one(rank, own, machine) for rank, own in lists.items())
        return (across + crowds, False) if 0 < across < alone else (alone + crowds, True)
    return across, not slow and problem.ranks > MAX_INSIDE


FEW = 3
"""Segments that are timed of many: those that follow come at the pace of the last of these."""


def by_parts(program: Program, problem: Problem, machine: Levels) -> Fraction | None:
    """The sum of the parts' times, each on its own level; None for what is not made of parts.

    Segments down or up a tree over levels are timed by their first ones and their pace.
    """
    match program:
        case Then():
            every = [by_parts(part, problem, machine) for part in program.parts]
            known = [time for time in every if time is not None]
            return sum(known, Fraction(0)) if len(known) == len(every) else None
        case On():
            times = (_in_team(program, *task, problem, machine) for task in program.tasks())
            return max(times, default=Fraction(0))
        case DownTree() | UpTree():
            segment = program.segment or program.nbytes
            count = -(-program.nbytes // segment)
            few = [
                completion(Schedule(problem, replace(program, nbytes=n * segment)), machine)
                for n in {min(count, FEW), min(count, FEW + 1)}
            ]
            return min(few) + (max(few) - min(few)) * max(count - FEW, 0)
        case Overlapped():
            piece = max(program.pieces, key=lambda one: len(one.program.operations(0))).program
            if (alone := by_parts(piece, problem, machine)) is not None:
                return alone + (len(program.pieces) - 1) * _pace(piece, problem, machine)
    return None


def _in_team(
    program: On, task: Task, numbers: Sequence[int], problem: Problem, machine: Levels
) -> Fraction:
    """Seconds of what a team runs, as if others were not there."""
    team = program.teams[numbers[0]]
    inner = Problem("broadcast", len(team), problem.nbytes)
    if program.level is not None:
        law = OneLevel(machine, program.level, crowd=program.crowd)
        return program_time(inner, task.program, law)
    placement = machine.placement.from_rank(problem.root).part(team)
    return completion(Schedule(inner, task.program), machine.placed(placement))


def _pace(piece: Program, problem: Problem, machine: Levels) -> Fraction:
    """For how long one piece of several keeps the first rank's port busy, and that of its node."""
    placement = machine.placement.from_rank(problem.root)
    across = OneLevel(machine, placement.depth, crowd=min(map(len, placement.members[0])))
    own = shared = Fraction(0)
    for op in piece.operations(0):
        if isinstance(op, Send):
            level, nbytes = placement.meeting(0, op.peer), size_of(op)
            own += machine.at(level, nbytes).gap
            if level > 1:
                shared += across.message(nbytes).gap
    return max(own, shared)


def _one_by_one(
    rank: int, operations: Sequence[Operation], machine: Levels
) -> tuple[Fraction, Fraction]:
    """Seconds until all have come one after another, and while others pass their groups' ports."""
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
    """For how long the ports of a few ranks are busy: no schedule is faster than its busiest port.

    Sends follow each other in list order.  Of receipts, all but the first wait for the one before.
    """
    least = Fraction(0)
    message, receipt = cache(machine.message), cache(machine.receipt)
    for operations in lists.values():
        combining, sending, receiving = Fraction(0), Fraction(0), Fraction(0)
        lags = []  # how much later than its port is free a message arrives
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
        last = Fraction(0)  # how much later than its port is free the last message arrives
        if at_last := next((o for o in ending if isinstance(o, Send)), None):
            gap, latency = message(size_of(at_last))
            last = latency - (0 if machine.all_port else gap)
            last = last if at_last is ending[0] else min(last, Fraction(0))
        received = receiving + combining + min(lags, default=Fraction(0))
        least = max(least, sending + combining + last, received)
    return least
