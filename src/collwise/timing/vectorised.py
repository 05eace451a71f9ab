"""Ideal times of up to millions of ranks, by array operations on NumPy columns.  Exact.

The times are those of `timing.ideal`, which simulates one event after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import LogGP, Machine
from collwise.schedule.data_movement import DownTree
from collwise.schedule.exchange import Exchange
from collwise.schedule.messages import Messages
from collwise.schedule.operations import Send, size_of
from collwise.schedule.program import LARGEST_IN_COLUMNS, Program, Schedule
from collwise.schedule.reduction import UpTree
from collwise.system.integers import Ints
from collwise.timing import level_queues, vectorised_laws
from collwise.timing.combining_queues import combining_queues, quickly_known
from collwise.timing.events import Passage, Transfer, ideal, ideal_alike
from collwise.timing.exchange_times import exchange_times
from collwise.timing.laws import message_costs
from collwise.timing.level_queues import with_ports
from collwise.timing.pipelined_up_trees import pipelined_times
from collwise.timing.port_queues import PortQueues, port_queues, queues_of
from collwise.timing.rank_state import PastLimit
from collwise.timing.vectorised_laws import Ticks, in_ticks
from collwise.timing.waves import Waves

EXACT_IN_FLOAT = 2**53
"""Up to here every integer is a float, and the quotient of two is the nearest float."""


class _WithoutLinks:
    """What timings without links have in common."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Empty: there are no links."""
        return ()

    def link_busy(self) -> dict[int, Fraction]:
        """Empty: there are no links."""
        return {}


@dataclass(frozen=True, eq=False)
class AlikeTiming(_WithoutLinks):
    """The ideal times of a schedule in which all ranks do the same: one was simulated for all."""

    schedule: Schedule
    machine: Machine

    @cached_property
    def completion(self) -> Fraction:
        """When all ranks finish, in exact seconds."""
        return ideal_alike(self.schedule.program.one_for_all(), self.machine)

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation completes, in exact seconds."""
        return (self.completion,) * self.schedule.ranks

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        return (self.completion_s,) * self.schedule.ranks

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message, in the order of receipt: simulated event by event when asked for."""
        return ideal(self.schedule, self.machine).transfers

    @property
    def sizes(self) -> tuple[Ints, int]:
        """The bytes of one rank's messages, and how many ranks send the like."""
        sent = [size_of(op) for op in self.schedule.rank(0) if isinstance(op, Send)]
        return np.array(sent, np.int64), self.schedule.ranks


@dataclass(frozen=True, eq=False)
class VectorisedTiming(_WithoutLinks):
    """The ideal times of a schedule, as in `Timing`, computed when asked for.

    start, sent, received: per message, as in `Transfer`, in ticks of `unit` seconds.
    ticks: per rank, when its last operation completes.
    """

    messages: Messages
    start: Ticks
    sent: Ticks
    received: Ticks
    ticks: Ticks
    unit: Fraction

    @cached_property
    def finish(self) -> tuple[Fraction, ...]:
        """Per rank: when its last operation completes, in exact seconds."""
        return tuple(self._exact(self.ticks))

    @cached_property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        num, den = self.unit.as_integer_ratio()
        if int(self.ticks.max()) * num <= EXACT_IN_FLOAT and den <= EXACT_IN_FLOAT:
            return tuple((self.ticks.astype(np.float64) * num / den).tolist())
        distinct, which = np.unique(self.ticks, return_inverse=True)
        floats = np.array([seconds(int(t) * self.unit) for t in distinct.tolist()])
        return tuple(floats[which].tolist())

    @property
    def completion(self) -> Fraction:
        """When the last rank finishes, in exact seconds."""
        return int(self.ticks.max()) * self.unit

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """Every message, in the order of receipt; takes some microseconds for each."""
        q = self.messages
        _, when = np.unique(self.received, return_inverse=True)
        order = np.lexsort((q.place_at_target, q.target, when))
        what = (q.source, q.target, q.place_at_source, q.place_at_target, q.nbytes)
        times = (self.start, self.sent, self.received)
        columns = [*(c[order].tolist() for c in what), *(self._exact(t[order]) for t in times)]
        return tuple(map(Transfer, *columns))

    @property
    def sizes(self) -> tuple[Ints, int]:
        """The bytes of all messages, and how many times there are such."""
        return self.messages.nbytes, 1

    def _exact(self, ticks: Ticks) -> list[Fraction]:
        """Ticks as exact seconds, equal ones made once."""
        num, den = self.unit.as_integer_ratio()
        distinct, which = np.unique(ticks, return_inverse=True)
        made = np.empty(len(distinct), dtype=object)
        made[:] = [Fraction(t * num, den) for t in distinct.tolist()]
        exact: list[Fraction] = made[which].tolist()
        return exact


Vectorised: TypeAlias = VectorisedTiming | AlikeTiming


def vectorised_timing(
    schedule: Schedule, machine: Machine, limit: Fraction | None = None
) -> Vectorised | None:
    """The exact ideal times of a schedule.

    limit: of levels, PastLimit is raised where they take longer, and that is known early.

    Down a tree (every rank receives one message, and then sends) about a second for 10^6 ranks,
    whatever its depth; otherwise up to a microsecond for each message (`level_queues`).  Some
    hundred bytes of memory per message.
    Combining: up a tree with whole vectors or in segments, in exchanges and wherever all ranks do
    the same; with levels, any schedule.
    None for what it cannot do and `ideal` can: links, one partner at a time, other combining, bytes
    that a rank receives twice, more than int64 counts, LogGP other than down a tree (there messages
    are processed in the order in which they arrive); also if ranks wait for each other in a circle.
    """
    levels = isinstance(machine, Levels)
    combines = schedule.problem.kind.combines
    if machine.independent_ports and schedule.program.is_alike():
        return AlikeTiming(schedule, machine)
    if combines and not levels:
        return _combining(schedule, machine)
    most = LARGEST_IN_COLUMNS >> 6 * levels  # numbers its levels beside bytes
    if schedule.problem.nbytes > most or machine.law in ("wormhole", "one partner"):
        return None
    if combines and not schedule.problem.nbytes:
        return None
    if combines:
        queues = combining_queues(schedule, combines=machine.combine(1) is not None)
    elif schedule.problem.nbytes and (rows := schedule.program.rows()) is not None:
        queues = queues_of(rows, schedule.ranks)
    else:
        queues = port_queues(schedule)
    if queues is None:
        return None
    costs, unit, which = _costs_in_ticks(machine, queues)
    last = None if limit is None else int(limit / unit)
    try:
        columns = [np.array(row, np.int64)[which] for row in costs]
        times = _times(queues, machine, columns, last)
    except OverflowError:
        columns = [np.array(row, object)[which] for row in costs]
        times = _times(queues, machine, columns, last)
    if times is None:
        return None
    finish = _finish(queues, *times[1:])
    messages: Messages = queues
    if len(apart := np.flatnonzero(queues.source != queues.target)) < len(queues):
        own = [getattr(queues, name)[apart] for name in Messages.__dataclass_fields__]
        messages, times = Messages(*own), (times[0][apart], times[1][apart], times[2][apart])
    return VectorisedTiming(messages, *times, finish, unit)


def at_once(schedule: Schedule, machine: Machine) -> bool:
    """Whether columns are quickly made of all ranks, and `vectorised_timing` takes them."""
    program = schedule.program
    if not schedule.problem.kind.combines:
        known = Program.columns, Program.rows
        in_order = not isinstance(machine, LogGP) or isinstance(program, DownTree)
        return in_order and any(getattr(type(program), way.__name__) is not way for way in known)
    few = schedule.problem.nbytes <= LARGEST_IN_COLUMNS >> 6
    if not isinstance(machine, Levels):
        return few and isinstance(program, UpTree) and program.is_whole()
    return few and quickly_known(program)


def _finish(queues: PortQueues, sent: Ticks, received: Ticks) -> Ticks:
    """Per rank: when its last message has left or come in."""
    done = np.zeros(len(queues.send_begins) - 1, dtype=sent.dtype)
    sending = np.flatnonzero(np.diff(queues.send_begins))
    receiving = np.flatnonzero(np.diff(queues.receive_begins))
    done[sending] = sent[queues.send_begins[sending + 1] - 1]  # the last of a queue is latest
    last = queues.receive_order[queues.receive_begins[receiving + 1] - 1]
    done[receiving] = np.maximum(done[receiving], received[last])
    return done


def _combining(schedule: Schedule, machine: Machine) -> Vectorised | None:
    """The times of a schedule that combines, on a machine with independent ports."""
    program = schedule.program
    if not machine.independent_ports:
        return None
    if isinstance(program, Exchange) and schedule.problem.nbytes:
        return _exchange(schedule, program, machine)
    if not isinstance(program, UpTree) or not 0 < schedule.problem.nbytes <= LARGEST_IN_COLUMNS:
        return None
    rows, nbytes = schedule.columns(), program.nbytes
    messages = Messages(
        rows.source, rows.target, rows.place_at_source, rows.place_at_target, rows.length
    )
    if not program.is_whole():
        start, sent, received, finish, unit = pipelined_times(program, machine)
        finish = np.roll(finish, schedule.problem.root)
        return VectorisedTiming(messages, start, sent, received, finish, unit)
    costs, unit = in_ticks([(*machine.message(nbytes), machine.combine(nbytes) or Fraction(0))])
    step, reach, adding = (column[0] for column in costs)
    rendezvous = machine.law == "hockney"
    times = vectorised_laws.up_tree(rows, step, reach, adding, rendezvous=rendezvous)
    return VectorisedTiming(messages, *times, unit)


def _exchange(schedule: Schedule, program: Exchange, machine: Machine) -> VectorisedTiming:
    """The times of an exchange in which ranks differ; its ranks are virtual."""
    times, unit = exchange_times(program, machine)
    ranks, root = schedule.ranks, schedule.problem.root
    messages = replace(
        times.messages,
        source=(times.messages.source + root) % ranks,
        target=(times.messages.target + root) % ranks,
    )
    moments = times.start, times.sent, times.received
    return VectorisedTiming(messages, *moments, np.roll(times.finish, root), unit)


def _meet_at_ports(
    messages: PortQueues, machine: Levels, start: Ticks, costs: Sequence[Ticks]
) -> bool:
    """Whether a message would have to wait for another one at a port that a group shares.

    If none would, the times are right: no message is ever earlier than without such ports.
    """
    for groups, busy in zip(machine.placement.table, costs[3:], strict=True):
        passing = np.flatnonzero(busy)
        for ends, times, gap_before in (
            (messages.source, start, True),
            (messages.target, start + costs[1], False),
        ):
            order = passing[np.lexsort((times[passing], groups[ends[passing]]))]
            near = np.diff(groups[ends[order]]) == 0
            needed = busy[order][:-1] if gap_before else busy[order][1:]
            if (np.diff(times[order]) < needed)[near].any():
                return True
    return False


def _costs_in_ticks(machine: Machine, messages: Messages) -> tuple[list[list[int]], Fraction, Ints]:
    """For each kind: from a send to the next one, until it is received, until its sender is free.

    Kinds are the level at which messages meet (0 where there are no levels) with the bytes; the
    last result is that of each message.
    With levels, also how long each port is busy that groups of a level share; a rank and itself
    meet at level 0, in a combine.
    In ticks of the second result, in exact seconds: as few as possible.
    """
    levels = np.zeros_like(messages.nbytes)
    if isinstance(machine, Levels):
        levels = machine.placement.meetings(messages.source, messages.target)
        levels[messages.source == messages.target] = 0
    width = int(messages.nbytes.max(initial=0)) + 1
    kinds, which = np.unique(levels * width + messages.nbytes, return_inverse=True)
    rows: list[tuple[Fraction, ...]] = []
    for level, size in (divmod(kind, width) for kind in kinds.tolist()):
        if isinstance(machine, Levels):
            gap, latency = (
                machine.at(level, size) if level else (machine.combine(size) or Fraction(0),) * 2
            )
            depth = machine.placement.depth
            ports = [machine.port(j, size) if j < level else Fraction(0) for j in range(1, depth)]
            rows.append((gap, latency, gap, *ports))
            continue
        numbers = message_costs(machine, size)
        if isinstance(machine, LogGP):
            o, gap, busy, latency = numbers
            rows.append((max(o, gap), o + latency + busy, o))
        else:
            gap, latency = numbers
            rows.append((gap, latency, gap))
    return *in_ticks(rows), which


def _times(
    queues: PortQueues, machine: Machine, costs: list[Ticks], limit: int | None
) -> tuple[Ticks, Ticks, Ticks] | None:
    """Per message: its start, when its sender is free, its receipt; None if no law settles them."""
    if not len(queues):
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    step, reach, busy, *ports = costs
    times = vectorised_laws.down_trees(queues, step, reach)
    if any(passing.any() for passing in ports):
        assert isinstance(machine, Levels)
        if times is None or _meet_at_ports(queues, machine, times[0], costs):
            times = with_ports(queues, costs, machine.placement, limit)
    elif times is None and machine.law == "hockney":
        times = vectorised_laws.hockney(queues, step, reach)
    elif times is None and not isinstance(machine, LogGP):
        if level_queues.COMPILED and step.dtype == np.int64:
            times = with_ports(queues, costs[:3], None, limit)
        else:
            times = Waves(queues, step, reach).times()
    if times is None:
        return None
    start, received = times
    if limit is not None and received.max() > limit:
        raise PastLimit
    return start, start + busy, received
