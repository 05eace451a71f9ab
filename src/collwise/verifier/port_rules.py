"""Checks a timing against the laws of its machine, port by port, without the timing engine."""

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import lcm
from operator import itemgetter
from typing import NamedTuple

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.levels import Levels
from collwise.model.machine import LogGP, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.dependencies import publications
from collwise.schedule.operations import Combine, Copy, Operation, Recv, Send, size_of
from collwise.schedule.program import Schedule
from collwise.timing import Timing, Transfer
from collwise.timing.law import readers_of
from collwise.verifier.link_rules import check_links
from collwise.verifier.violations import IMPOSSIBLE_TIMING, Lists, reject_timing


class _Rules(NamedTuple):
    """Least times for messages of one size and distance, in exact seconds or in whole ticks."""

    busy: Fraction
    """The least time from the start of the send until the sender is free."""
    gap: Fraction
    """The least time at a port from this send to the next."""
    latency: Fraction
    """The least time from the start of the send until the message is received."""
    processing: Fraction
    """How long the message keeps the receiver's processor busy in LogGP and in shared memory."""
    receipt: Fraction
    """The least time at a port from the previous receipt to this one; in LogGP, to the next."""


class _Event(NamedTuple):
    """A send, receipt or combine of a rank.   step: its place in the list.   begin, end: in ticks.

    gap: the least ticks from a send to the port's next, or from the port's previous receipt to
    this one; in LogGP, from this receipt to the next.
    """

    begin: int
    end: int
    step: int
    gap: int = 0
    port: int | None = None
    """The port that is busy; None if all ports of the rank are."""


def check_ports(
    schedule: Schedule, timing: Timing, machine: Machine, topology: Topology | None = None
) -> None:
    """Prove that a timing of a schedule obeys the laws of a machine, port by port.

    No send begins while its port is busy, or before its data is received.  No message is received
    before its latency is over, or less than its t0 after the previous message.  Ports work in list
    order, but combines may overtake sends.  In LogGP, however, a rank receives in the order of
    arrival, and the rank's processor does one thing at a time.  On a network, no link carries two
    messages at once (`link_rules.check_links`).  With levels, a port that a group shares passes one
    message at a time.  In shared memory, the sends of one publication begin together, and keep the
    port busy as a single send does; a rank publishes, reads and combines one after another.
    Raises InvalidSchedule, with rank and step where the violation has them.
    """
    lists = schedule.lists
    for t in timing.transfers:
        _check_named(schedule, t.source, t.place_at_source, Send, t.nbytes, t.target)
        _check_named(schedule, t.target, t.place_at_target, Recv, t.nbytes, t.source)
    check_links(lists, timing, machine, topology)

    def hops(t: Transfer) -> int:
        if isinstance(machine, Levels):
            return machine.placement.meeting(t.source, t.target)
        return 1 if topology is None else topology.distance(t.source, t.target)

    kinds = {(t.nbytes, hops(t)) for t in timing.transfers}
    rules = {kind: _rules(machine, *kind) for kind in kinds}
    times = {id(x): x for t in timing.transfers for x in (t.start, t.sent, t.received)}
    times |= {id(x): x for c in timing.combines for x in (c.start, c.end)}
    unit = lcm(
        *{x.denominator for x in times.values()},
        *(x.denominator for rule in rules.values() for x in rule),
    )

    def ticks(x: Fraction) -> int:
        return x.numerator * (unit // x.denominator)

    time_in_ticks = {key: ticks(x) for key, x in times.items()}  # by identity: many are the same
    if isinstance(machine, Levels):
        _check_shared_ports(lists, timing, machine)
    readers = readers_of(machine, schedule.ranks)
    ranks = [_RankTiming(lists, rank, readers(rank)) for rank in range(len(lists))]
    in_ticks = {kind: tuple(map(ticks, rule)) for kind, rule in rules.items()}
    for t in timing.transfers:
        busy, gap, latency, processing, receipt = in_ticks[t.nbytes, hops(t)]
        start, sent = time_in_ticks[id(t.start)], time_in_ticks[id(t.sent)]
        received = time_in_ticks[id(t.received)]
        if start < 0 or sent < start + busy:
            seen = "it is sent faster than the machine sends"
            reject_timing(lists, t.source, t.place_at_source, seen)
        if received < start + latency:
            seen = f"it is received {seconds(t.received - t.start):g} s after its send began"
            reject_timing(lists, t.target, t.place_at_target, seen)
        out, into = _ports_of(t, machine, topology)
        ranks[t.source].sends.append(_Event(start, sent, t.place_at_source, gap, out))
        if isinstance(machine, Wormhole):  # the receiver's port is busy from the start
            receipt = processing = received - start
        begin = received - processing
        ranks[t.target].receipts.append(_Event(begin, received, t.place_at_target, receipt, into))
    combine = cache(machine.combine)
    for c in timing.combines:
        _check_named(schedule, c.rank, c.place, Combine, c.nbytes)
        cost, start, end = combine(c.nbytes), time_in_ticks[id(c.start)], time_in_ticks[id(c.end)]
        if cost is None or end - start != cost * unit:
            seen = "it is combined in another time than the machine takes"
            reject_timing(lists, c.rank, c.place, seen)
        event = _Event(start, end, c.place, end - start)
        ranks[c.rank].sends.append(event)
        ranks[c.rank].receipts.append(event)
    free = {Copy} if machine.combine(1) is not None else {Copy, Combine}
    for rank, finish, writers in zip(ranks, timing.finish, schedule.dependencies, strict=True):
        rank.check_complete(free, finish * unit)
        rank.check_sends()
        if isinstance(machine, LogGP):
            rank.check_processor()
        else:
            rank.check_receipts()
        if machine.shares_memory:
            rank.check_turns()
        rank.check_data(writers)


def _rules(machine: Machine, size: int, hops: int) -> _Rules:
    """The rules for messages of `size` bytes, in exact seconds.

    hops: the number of links on the message's route, 1 without a topology; on a machine with
    levels, the level that the message crosses.
    """
    gap, latency = machine.at(hops, size) if isinstance(machine, Levels) else machine.message(size)
    if isinstance(machine, LogGP):
        body = (size - 1) * machine.G
        return _Rules(machine.o, machine.g + body, latency, machine.o + body, machine.g + body)
    farther = (hops - 1) * machine.hop if isinstance(machine, Wormhole) else Fraction(0)
    receipt = machine.receipt(size)
    if isinstance(machine, Levels):
        receipt = machine.receipt_at(hops, size)
    processing = receipt if machine.shares_memory else Fraction(0)
    return _Rules(gap + farther, gap + farther, latency + farther, processing, receipt)


def _check_shared_ports(lists: Lists, timing: Timing, machine: Levels) -> None:
    """Check that messages leave a group, and enter it, as far apart as its shared port demands.

    A timing does not say when a message entered a group.  So this checks that the message is not
    received before the earliest time at which it can have passed all ports.
    """
    placement = machine.placement
    meeting = {t: placement.meeting(t.source, t.target) for t in timing.transfers}
    arrival = {t: t.start + machine.at(meeting[t], t.nbytes).latency for t in timing.transfers}
    for level in range(placement.depth - 1, 0, -1):
        name = f"the port of its {machine.by_level[level - 1].name}"
        out: dict[int, list[Transfer]] = {}
        into: dict[int, list[Transfer]] = {}
        for t, met in meeting.items():
            if met > level and machine.port(level, t.nbytes):
                out.setdefault(placement.group(level, t.source), []).append(t)
                into.setdefault(placement.group(level, t.target), []).append(t)
        for transfers in out.values():
            for before, t in pairwise(sorted(transfers, key=lambda t: t.start)):
                if t.start < before.start + machine.port(level, before.nbytes):
                    seen = f"it leaves while rank {before.source}'s message keeps {name} busy"
                    reject_timing(lists, t.source, t.place_at_source, seen)
        for transfers in into.values():
            transfers.sort(key=lambda t: (arrival[t], t.source, t.target))
            for before, t in pairwise(transfers):
                arrival[t] = max(arrival[t], arrival[before] + machine.port(level, t.nbytes))
                if t.received < arrival[t]:
                    seen = f"it is received before it passes {name}"
                    reject_timing(lists, t.target, t.place_at_target, seen)


def _ports_of(t: Transfer, machine: Machine, topology: Topology | None) -> tuple[int, int]:
    """The numbers of the ports that a transfer uses: (at its source, at its target)."""
    if not machine.all_port:
        return 0, 0
    route = topology.route(t.source, t.target) if topology else ()
    return (route[0], route[-1]) if route else (t.target, t.source)


def _check_named(
    schedule: Schedule,
    rank: int,
    step: int,
    kind: type[Operation],
    nbytes: int,
    peer: int | None = None,
) -> None:
    """Check that the operation that a timing names is in the schedule, at this step of the rank.

    kind: Send, Recv or Combine.   nbytes: its bytes.   peer: the other rank; None for a combine.
    """
    op = schedule.lists[rank][step] if step < len(schedule.lists[rank]) else None
    if (
        isinstance(op, kind)
        and size_of(op) == nbytes
        and (peer is None or getattr(op, "peer", None) == peer)
    ):
        return
    what, named = f"{nbytes} bytes combined", "operation"
    if peer is not None:
        source, target = (rank, peer) if kind is Send else (peer, rank)
        what, named = f"{nbytes} bytes from {source} to {target}", "message"
    raise InvalidSchedule(
        f"rank {rank}, step {step}: {what}",
        f"the schedule has no such {named} there",
        "time the schedule that is checked",
        rank=rank,
        step=step,
    )


class _RankTiming:
    """The events of one rank, and the rules that they must obey."""

    def __init__(self, lists: Lists, rank: int, readers: Collection[int]) -> None:
        """readers: the ranks that share memory with this one."""
        self.lists, self.rank, self.operations = lists, rank, lists[rank]
        self.readers, self.published_with = readers, publications(self.operations, readers)
        self.sends: list[_Event] = []
        self.receipts: list[_Event] = []

    def check_complete(self, free: Collection[type], finish: Fraction) -> None:
        """Check that each operation is in the timing once, and the rank finishes with the last.

        A combine is an event of both ports.   free: types of operations that take no time and have
        no events.   finish: when the rank finishes according to the timing, in ticks.
        """
        events = self.sends + self.receipts
        steps = sorted(event.step for event in events)
        wanted = [
            step
            for step, op in enumerate(self.operations)
            for _ in range(0 if type(op) in free else 2 if isinstance(op, Combine) else 1)
        ]
        for i, step in enumerate(wanted):
            if steps[i : i + 1] != [step]:
                self._reject(step, "it is not in the timing, or an earlier one is there twice")
        if len(steps) > len(wanted):
            self._reject(steps[-1], "it is in the timing twice")
        if finish != max((event.end for event in events), default=0):
            asked = f"rank {self.rank}: when it finishes"
            seen = "it is done with its last operation at another time"
            raise InvalidSchedule(asked, seen, IMPOSSIBLE_TIMING, rank=self.rank)

    def check_sends(self) -> None:
        """Check that a port sends one message at a time, in order; combines may overtake sends.

        The sends of one publication begin and end together, and count as one.
        """
        times = {event.step: (event.begin, event.end) for event in self.sends}
        for event in self.sends:
            if times[event.step] != times[first := self.published_with[event.step]]:
                self._reject(event.step, f"it is not published together with step {first}")
        at_ports = [event for event in self.sends if self.published_with[event.step] == event.step]
        for port in _by_port(at_ports):
            sent = combined = -1
            before = None
            for event in sorted(port, key=itemgetter(0, 1, 2)):
                combine = isinstance(self.operations[event.step], Combine)
                if before and event.begin < max(before.end, before.begin + before.gap):
                    self._reject(event.step, f"the send port is still busy with step {before.step}")
                if event.step < (latest := max(sent, combined) if combine else sent):
                    self._reject(event.step, f"it begins after step {latest}")
                sent, combined = (sent, event.step) if combine else (event.step, combined)
                before = event

    def check_receipts(self) -> None:
        """Check that each port receives in list order, with receipts at least a gap apart."""
        for port in _by_port(self.receipts):
            for before, event in pairwise(sorted(port, key=itemgetter(1, 2))):
                if event.end < before.end + event.gap:
                    seen = f"it is less than t0 after the receipt of step {before.step}"
                    self._reject(event.step, seen)
                if event.step < before.step:
                    self._reject(event.step, f"it is received after step {before.step}")

    def check_processor(self) -> None:
        """Check LogGP's law: the processor does one thing at a time; receipts start a gap apart."""
        for before, event in pairwise(sorted([*self.sends, *self.receipts])):
            if event.begin < before.end:
                self._reject(event.step, f"the processor is still busy with step {before.step}")
        for before, event in pairwise(sorted(self.receipts)):
            if event.begin < before.begin + before.gap:
                self._reject(event.step, f"it is less than a gap after step {before.step}")

    def check_turns(self) -> None:
        """Check that the rank combines, publishes and reads shared memory one after another."""
        kinds = {e: self.operations[e.step] for e in (*self.sends, *self.receipts)}
        own = {
            (type(op), e.begin, e.end): e  # what is published for several ranks is one thing
            for e, op in kinds.items()
            if isinstance(op, Combine) or getattr(op, "peer", None) in self.readers
        }
        for before, event in pairwise(sorted(own.values())):
            if event.begin < before.end:
                self._reject(event.step, f"the processor is still busy with step {before.step}")

    def check_data(self, writers: Sequence[Sequence[int]]) -> None:
        """Check that no operation begins before the data that it reads is there.

        writers: for each step, the earlier steps that wrote its data.
        """
        events = {event.step: event for event in (*self.sends, *self.receipts)}
        done: dict[int, int] = {}
        for step, op in enumerate(self.operations):
            ready, event = max([0, *[done[w] for w in writers[step]]]), events.get(step)
            if event is not None and not isinstance(op, Recv) and event.begin < ready:
                self._reject(step, "it begins before its data is received")
            done[step] = ready if event is None else event.end  # a copy, or a free combine

    def _reject(self, step: int, seen: str) -> None:
        reject_timing(self.lists, self.rank, step, seen)


def _by_port(events: Sequence[_Event]) -> list[list[_Event]]:
    """For each port, its events, together with the events that keep all ports busy."""
    ports = {event.port for event in events} - {None} or {None}
    return [[event for event in events if event.port in (port, None)] for port in ports]
