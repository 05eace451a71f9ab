"""Ports: a timing is checked against the laws of its machine, by other means than made it."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import LogGP, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Combine, Copy, Operation, Recv, Send, size_of
from collwise.schedule.program import Schedule
from collwise.timing import Timing, Transfer
from collwise.verifier.link_rules import check_links
from collwise.verifier.violations import Lists, reject


class _Law(NamedTuple):
    """What a machine says of a message of some size, in ticks."""

    busy: int
    """From the start of the send until the sender is free."""
    gap: int
    """Between this message and its neighbour at a port: the next send, the receipt before."""
    latency: int
    """From the start of the send until it is received."""
    processing: int
    """How long the receiver works on it (LogGP)."""


class _Event(NamedTuple):
    """What a rank does at a step, in ticks: a send, or the work on a message that came in."""

    begin: int
    end: int
    step: int
    law: _Law
    port: int = 0
    """Which one, where a rank has many."""


_EVERY = -1
"""The port of what keeps all ports busy."""
_REMEDY = "mend the timing: it says what the machine cannot do"


def check_ports(
    schedule: Schedule, timing: Timing, machine: Machine, topology: Topology | None = None
) -> None:
    """Prove that a timing of a schedule obeys the laws of a machine, port by port.

    No send begins while its port is busy or before its data is received.  No message is received
    before its latency is over, or less than its t0 after the one before.  Ports work in list order;
    but a LogGP rank receives in order of arrival, and its one processor does one thing at a time.
    On a network with links, no link carries two messages at once (`links.check_links`).
    Raises InvalidSchedule with rank and step.
    """
    lists = schedule.lists
    for t in timing.transfers:
        _check_match(lists, t)
    check_links(lists, timing, machine, topology)

    def hops(t: Transfer) -> int:
        return 1 if topology is None else topology.distance(t.source, t.target)

    exact = _laws(machine, {(t.nbytes, hops(t)) for t in timing.transfers})
    unit = lcm(
        *{x.denominator for t in timing.transfers for x in (t.start, t.sent, t.received)},
        *{x.denominator for c in timing.combines for x in (c.start, c.end)},
        *(x.denominator for law in exact.values() for x in law),
    )

    def ticks(x: Fraction) -> int:
        return x.numerator * (unit // x.denominator)

    laws = {key: _Law(*map(ticks, law)) for key, law in exact.items()}
    sends: list[list[_Event]] = [[] for _ in lists]
    receipts: list[list[_Event]] = [[] for _ in lists]
    for t in timing.transfers:
        law = laws[t.nbytes, hops(t)]
        start, sent, received = ticks(t.start), ticks(t.sent), ticks(t.received)
        if start < 0 or sent < start + law.busy:
            _late(lists, t.source, t.place_at_source, "it is sent faster than the machine sends")
        if received < start + law.latency:
            seen = f"it is received {seconds(t.received - t.start):g} s after its send began"
            _late(lists, t.target, t.place_at_target, seen)
        out, into = _ports_of(t, machine, topology)
        sends[t.source].append(_Event(start, sent, t.place_at_source, law, out))
        if isinstance(machine, Wormhole):  # the receiver's port is busy from the start
            law = law._replace(gap=received - start, processing=received - start)
        receipts[t.target].append(
            _Event(received - law.processing, received, t.place_at_target, law, into)
        )
    for c in timing.combines:
        _check_named(lists, c.rank, c.place, Combine, c.nbytes, f"{c.nbytes} bytes combined")
        cost, start, end = machine.combine(c.nbytes), ticks(c.start), ticks(c.end)
        if cost is None or end - start != cost * unit:
            _late(lists, c.rank, c.place, "it is combined in another time than the machine takes")
        event = _Event(start, end, c.place, _Law(end - start, end - start, 0, 0), _EVERY)
        sends[c.rank].append(event)
        receipts[c.rank].append(event)
    free = {Copy} if machine.combine(1) is not None else {Copy, Combine}
    for rank in range(len(lists)):
        events = {event.step: event for event in (*sends[rank], *receipts[rank])}
        _check_complete(lists, rank, free, sends[rank] + receipts[rank], timing.finish[rank] * unit)
        for port in _each_port(sends[rank]):
            _check_sends(lists, rank, sorted(port))
        if isinstance(machine, LogGP):
            _check_processor(lists, rank, sends[rank], receipts[rank])
        else:
            for port in _each_port(receipts[rank]):
                _check_receipts(lists, rank, sorted(port, key=lambda e: (e.end, e.step)))
        _check_data(lists, rank, events)


def _laws(
    machine: Machine, kinds: Collection[tuple[int, int]]
) -> dict[tuple[int, int], tuple[Fraction, ...]]:
    """By bytes and number of links: what `_Law` has, in exact seconds."""
    laws: dict[tuple[int, int], tuple[Fraction, ...]] = {}
    for size, hops in kinds:
        gap, latency = machine.message(size)
        if isinstance(machine, LogGP):
            body = (size - 1) * machine.G
            laws[size, hops] = machine.o, machine.g + body, latency, machine.o + body
        else:
            farther = (hops - 1) * machine.hop if isinstance(machine, Wormhole) else Fraction(0)
            laws[size, hops] = gap + farther, gap + farther, latency + farther, Fraction(0)
    return laws


def _ports_of(t: Transfer, machine: Machine, topology: Topology | None) -> tuple[int, int]:
    """The ports of a transfer at its source and at its target."""
    if not machine.all_port:
        return 0, 0
    route = topology.route(t.source, t.target) if topology else ()
    return (route[0], route[-1]) if route else (t.target, t.source)


def _each_port(events: Sequence[_Event]) -> list[list[_Event]]:
    """The events of every port, with those that keep all ports busy."""
    ports = {event.port for event in events if event.port != _EVERY} or {_EVERY}
    return [[event for event in events if event.port in (port, _EVERY)] for port in ports]


def _late(lists: Lists, rank: int, step: int, seen: str) -> None:
    reject(lists, rank, step, seen, _REMEDY, lists[rank][step].blocks[0])


def _check_match(lists: Lists, t: Transfer) -> None:
    """The transfer is one of the schedule."""
    told = f"{t.nbytes} bytes from {t.source} to {t.target}"
    for rank, step, kind, peer in (
        (t.source, t.place_at_source, Send, t.target),
        (t.target, t.place_at_target, Recv, t.source),
    ):
        _check_named(lists, rank, step, kind, t.nbytes, told, peer)


def _check_named(
    lists: Lists,
    rank: int,
    step: int,
    kind: type[Operation],
    nbytes: int,
    told: str,
    peer: int | None = None,
) -> None:
    """What a timing names is in the schedule there."""
    op = lists[rank][step] if step < len(lists[rank]) else None
    if not isinstance(op, kind) or size_of(op) != nbytes or getattr(op, "peer", None) != peer:
        raise InvalidSchedule(
            f"rank {rank}, step {step}: {told}",
            f"the schedule has no such {'message' if peer is not None else 'operation'} there",
            "time the schedule that is checked",
            rank=rank,
            step=step,
        )


def _check_complete(
    lists: Lists,
    rank: int,
    free: Collection[type],
    events: Sequence[_Event],
    finish: Fraction,
) -> None:
    """Every operation is in the timing, once, and the rank is done with the last of them.

    Combines are events of both ports; what takes no time (of the types `free`) is not there.
    """
    steps = sorted(event.step for event in events)
    wanted = [
        step
        for step, op in enumerate(lists[rank])
        for _ in range(0 if type(op) in free else 2 if isinstance(op, Combine) else 1)
    ]
    for i, step in enumerate(wanted):
        if steps[i : i + 1] != [step]:
            _late(lists, rank, step, "it is not in the timing, or an earlier one is there twice")
    if len(steps) > len(wanted):
        _late(lists, rank, steps[-1], "it is in the timing twice")
    if finish != max((event.end for event in events), default=0):
        seen = "it is done with its last operation at another time"
        raise InvalidSchedule(f"rank {rank}: when it finishes", seen, _REMEDY, rank=rank)


def _check_sends(lists: Lists, rank: int, events: Sequence[_Event]) -> None:
    """One at a time, in list order; but a combine may go before sends that wait for receivers."""
    sent = combined = -1
    for i, event in enumerate(events):
        combine = isinstance(lists[rank][event.step], Combine)
        before = events[i - 1] if i else None
        if before and event.begin < max(before.end, before.begin + before.law.gap):
            _late(lists, rank, event.step, f"the send port is still busy with step {before.step}")
        if event.step < (latest := max(sent, combined) if combine else sent):
            _late(lists, rank, event.step, f"it begins after step {latest}")
        sent, combined = (sent, event.step) if combine else (event.step, combined)


def _check_receipts(lists: Lists, rank: int, events: Sequence[_Event]) -> None:
    for before, event in pairwise(events):
        if event.end < before.end + event.law.gap:
            _late(
                lists,
                rank,
                event.step,
                f"it is less than t0 after the receipt of step {before.step}",
            )
        if event.step < before.step:
            _late(lists, rank, event.step, f"it is received after step {before.step}")


def _check_processor(
    lists: Lists, rank: int, sends: Sequence[_Event], receipts: Sequence[_Event]
) -> None:
    """One thing at a time, and what comes in is taken no faster than the gap allows."""
    for before, event in pairwise(sorted([*sends, *receipts])):
        if event.begin < before.end:
            _late(lists, rank, event.step, f"the processor is still busy with step {before.step}")
    for before, event in pairwise(sorted(receipts)):
        if event.begin < before.begin + before.law.gap:
            _late(lists, rank, event.step, f"it is less than a gap after step {before.step}")


def _check_data(lists: Lists, rank: int, events: Mapping[int, _Event]) -> None:
    """Nothing begins before what it reads is there."""
    done: dict[int, int] = {}
    for step, (op, waits) in enumerate(zip(lists[rank], dependencies(lists[rank]), strict=True)):
        here, event = max((done[w] for w in waits), default=0), events.get(step)
        if event is None:  # a copy, or a combine that is free
            done[step] = here
            continue
        if not isinstance(op, Recv) and event.begin < here:
            _late(lists, rank, step, "it begins before its data is received")
        done[step] = event.end
