"""Ideal times and traces of a schedule on a machine, with or without a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import overload

import numpy as np

from collwise.errors import InvalidArgument, shown
from collwise.model.levels import Levels
from collwise.model.limits import AS_LISTS, LISTED_RANKS
from collwise.model.machine import Machine, checked_machine
from collwise.model.topology import Topology
from collwise.model.topology.base import checked_topology
from collwise.schedule.evaluation import never_completes
from collwise.schedule.operations import Operation
from collwise.schedule.program import Schedule
from collwise.schedule.rows import NONE, Rows, of_lists
from collwise.system.integers import Ints
from collwise.timing.event_loop import NEVER, Columns, PastLimit, play
from collwise.timing.law import (
    joined_publications,
    law_of,
    one_stands_for_all,
    only_own_ports,
    receives_in_order,
    with_links,
)
from collwise.timing.times import Combining, Timing, Transfer
from collwise.timing.tree_times import about_shapes, tree_completion


def check_simulable(asked: str, schedule: object, machine: object, topology: object = None) -> None:
    """Raise InvalidArgument unless schedule, machine and topology (or None) fit together.

    asked: the purpose, for the error text.   Whether messages hold links, `with_links` checks.
    """
    if not isinstance(schedule, Schedule):
        seen, remedy = f"the schedule is {shown(schedule)}", "give a collwise.Schedule"
        raise InvalidArgument(asked, seen, f"{remedy}, such as plan.schedule")
    machine = checked_machine(machine, asked)
    if isinstance(machine, Levels) and machine.placement.ranks != schedule.ranks:
        seen = f"it places {machine.placement.ranks} ranks, and the schedule has {schedule.ranks}"
        raise InvalidArgument(asked, seen, "give machine.placed(…) as many ranks")
    if machine.ports_block and schedule.program.needs_posted_receives:
        seen = (
            f"{schedule.algorithm or 'it'} sends early what is received late, and ports block here"
        )
        raise InvalidArgument(asked, seen, "choose another algorithm, or a machine of another law")
    if topology is not None:
        checked_topology(topology, schedule.ranks, asked)


def ideal(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Timing:
    """The exact times of all messages if every rank starts each operation as early as it can.

    topology: the network between the ranks, for machines whose messages hold links (Hockney's,
    wormhole); without one, every pair of ranks has a link of its own.
    Raises InvalidArgument if schedule, machine and topology do not fit together; InvalidSchedule if
    an operation never completes, such as a receive of a message nobody sends.
    """
    return _time_schedule(schedule, machine, topology, None, one_for_all=False)


@overload
def completion(
    schedule: Schedule, machine: Machine, topology: Topology | None = None
) -> Fraction: ...
@overload
def completion(
    schedule: Schedule, machine: Machine, topology: Topology | None, limit: Fraction | None
) -> Fraction | None: ...
def completion(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None = None,
    limit: Fraction | None = None,
) -> Fraction | None:
    """When the last rank finishes, in exact seconds; None if later than `limit` seconds, if given.

    topology: the network; None if every pair of ranks has a link of its own.
    Raises InvalidArgument if schedule, machine and topology do not fit together; InvalidSchedule if
    an operation never completes, such as a receive of a message nobody sends.
    """
    if only_own_ports(machine, topology):
        time = tree_completion(schedule.program, machine)
        if time is not None:
            check_simulable("the ideal time of a schedule", schedule, machine)
            return None if limit is not None and time > limit else time
    try:
        alone = one_stands_for_all(machine, topology)
        time = _time_schedule(schedule, machine, topology, limit, one_for_all=alone).completion
    except PastLimit:
        return None
    return None if limit is not None and time > limit else time


def completion_of_one(schedule: Schedule, machine: Machine) -> Fraction:
    """When rank 0 finishes, in exact seconds, computed from rank 0's operation list alone.

    All ranks' lists must be equal up to renumbered peers.  The time is exact if
    `one_stands_for_all` holds without a topology, and otherwise an estimate.
    """
    return _time_schedule(schedule, machine, None, None, one_for_all=True).completion


def _time_schedule(
    schedule: Schedule,
    machine: Machine,
    topology: Topology | None,
    limit: Fraction | None,
    *,
    one_for_all: bool,
) -> Timing:
    """The ideal times of a schedule.  No topology: every pair of ranks has a link of its own.

    limit: raise PastLimit for an event later than these seconds, if given.   one_for_all: whether
    to time only rank 0, on behalf of all ranks, if all lists are equal up to renumbered peers.
    """
    check_simulable("the ideal time of a schedule", schedule, machine, topology)
    topology = with_links(machine, topology)
    combines = machine.combine(1) is not None
    class_of = along = None
    if machine.shares_memory:  # which sends are one publication is read off the lists
        lists: Sequence[Sequence[Operation]] = ()
        if one_for_all and schedule.program.is_alike():
            rows, class_of = schedule.representative_rows(combines=combines)
            lists = [schedule.program.operations(0)]
        else:
            rows = of_lists(lists := schedule.lists, combines=combines)
        along = joined_publications(rows, lists, machine, schedule.ranks)
    elif one_for_all:
        rows, class_of = schedule.representative_rows(combines=combines)
    else:
        rows = schedule.rows(combines=combines, in_order=receives_in_order(machine))
    ranks = schedule.ranks if class_of is None else int(class_of.max()) + 1
    law = law_of(machine, rows, ranks, topology, along=along)
    played = play(rows, law, None if limit is None else int(limit / law.unit))
    if played.stuck:
        raise _stuck_error(schedule, rows, played.at, class_of)
    return Timing(rows, law, played.at, class_of)


def _stuck_error(schedule: Schedule, rows: Rows, at: Columns, class_of: Ints | None) -> Exception:
    """The error that names the lowest rank that gets stuck, and its first incomplete operation."""
    first = list[tuple[int, int]]()
    unsent = (at.start == NEVER) & (rows.source != NONE)
    unheard = (at.received == NEVER) & (rows.place_at_target != NONE)
    for column, places, ranks in (
        (unsent, rows.place_at_source, rows.source),
        (unheard, rows.place_at_target, rows.target),
    ):
        first += zip(ranks[column].tolist(), places[column].tolist(), strict=True)
    rank, place = min(first)
    if class_of is not None:
        rank = int(np.flatnonzero(class_of == rank)[0])
    return never_completes(rank, place, schedule.rank(rank)[place])


def messages_played(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> int:
    """Estimated work of `completion`; the unit is one message simulated in arrays.

    A message simulated from operation lists counts AS_LISTS times.  The number of messages is
    estimated from the lists of a few ranks; beyond LISTED_RANKS ranks, one message per rank is
    assumed.  Otherwise, if one rank is simulated for all, only its messages count.  For a tree
    program (`tree_completion`), where only the ranks' own ports delay messages, the work is the
    estimated number of shapes of subtrees.
    """
    alone = only_own_ports(machine, topology)
    if alone and (shapes := about_shapes(schedule.program)) is not None:
        return shapes
    if schedule.ranks > LISTED_RANKS:  # a few lists may be too long: assume a message per rank
        return schedule.ranks * AS_LISTS
    messages = schedule.about_messages()
    if one_stands_for_all(machine, topology) and schedule.program.is_alike():
        return messages // schedule.ranks * AS_LISTS
    in_arrays = schedule.program.makes_rows() and receives_in_order(machine)
    return messages if in_arrays and not machine.shares_memory else messages * AS_LISTS


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(Timing):
    """The result of a simulation: times in seconds, counted from a common start of all ranks.

    Times whose names end in `_s` are floats; other seconds are exact.  `played` has ticks.
    """

    schedule: Schedule
    machine: Machine
    topology: Topology | None = None
    """The network's shape; None if every pair of ranks had a link of its own."""

    @cached_property
    def timing(self) -> Timing:
        """The times of all ranks' messages, even if only rank 0 was simulated, on behalf of all."""
        if self.class_of is None:
            return Timing(self.rows, self.law, self.played)
        return ideal(self.schedule, self.machine, self.topology)

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """Each received message: its send's start, when the sender was free again, its receipt.

        The tuple is made on first use, in some microseconds for each message.
        """
        return self.timing.transfers

    @cached_property
    def combines(self) -> tuple[Combining, ...]:
        """All combines, ordered by rank and place; () where `Machine.combine` returns None."""
        return self.timing.combines


def simulate(schedule: Schedule, machine: Machine, topology: Topology | None = None) -> Trace:
    """Simulate a schedule on a machine: every rank starts each operation as early as it can.

    topology: the network, on whose links messages wait for each other; None if every pair of ranks
    has a link of its own.
    Raises InvalidArgument if schedule, machine and topology do not fit together; InvalidSchedule if
    an operation never completes, such as a receive of a message nobody sends.
    """
    check_simulable("a simulation", schedule, machine, topology)
    alone = one_stands_for_all(machine, topology)
    times = _time_schedule(schedule, machine, topology, None, one_for_all=alone)
    found = times.rows, times.law, times.played, times.class_of
    return Trace(*found, schedule=schedule, machine=machine, topology=topology)
