"""Ports: a timing is checked against the laws of its machine, by other means than made it."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import LogGP, Machine
from collwise.schedule.data import Combine, Copy, Operation, Recv, Schedule, Send, size_of
from collwise.schedule.dependencies import dependencies
from collwise.schedule.timing import Timing, Transfer
from collwise.verifier.words import Lists, wrong


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


_REMEDY = "mend the timing: it says what the machine cannot do"


def check_ports(schedule: Schedule, timing: Timing, machine: Machine) -> None:
    """Prove that a timing of a schedule obeys the laws of a machine, port by port.

    No send begins while its port is busy or before its data is received.  No message is received
    before its latency is over, or less than its t0 after the one before.  Ports work in list order;
    but a LogGP rank receives in order of arrival, and its one processor does one thing at a time.
    Raises InvalidSchedule with rank and step.
    """
    lists = schedule.lists
    exact = _laws(machine, lists)
    unit = lcm(
        *{x.denominator for t in timing.transfers for x in (t.start, t.sent, t.received)},
        *{x.denominator for c in timing.combines for x in (c.start, c.end)},
        *(x.denominator for law in exact.values() for x in law),
    )

    def ticks(x: Fraction) -> int:
        return x.numerator * (unit // x.denominator)

    laws = {size: _Law(*map(ticks, law)) for size, law in exact.items()}
    sends: list[list[_Event]] = [[] for _ in lists]
    receipts: list[list[_Event]] = [[] for _ in lists]
    for t in timing.transfers:
        _check_match(lists, t)
        law = laws[t.nbytes]
        start, sent, received = ticks(t.start), ticks(t.sent), ticks(t.received)
        if start < 0 or sent < start + law.busy:
            _late(lists, t.source, t.place_at_source, "it is sent faster than the machine sends")
        if received < start + law.latency:
            seen = f"it is received {seconds(t.received - t.start):g} s after its send began"
            _late(lists, t.target, t.place_at_target, seen)
        sends[t.source].append(_Event(start, sent, t.place_at_source, law))
        receipts[t.target].append(
            _Event(received - law.processing, received, t.place_at_target, law)
        )
    one_processor = not machine.independent_ports
    for c in timing.combines:
        _check_named(lists, c.rank, c.place, Combine, c.nbytes, f"{c.nbytes} bytes combined")
        cost, start, end = machine.combine(c.nbytes), ticks(c.start), ticks(c.end)
        if cost is None or end - start != cost * unit:
            _late(lists, c.rank, c.place, "it is combined in another time than the machine takes")
        event = _Event(start, end, c.place, _Law(end - start, end - start, 0, 0))
        sends[c.rank].append(event)
        receipts[c.rank].append(event)
    free = {Copy} if machine.combine(1) is not None else {Copy, Combine}
    for rank in range(len(lists)):
        events = {event.step: event for event in (*sends[rank], *receipts[rank])}
        _check_complete(lists, rank, free, sends[rank] + receipts[rank], timing.finish[rank] * unit)
        _check_sends(lists, rank, sorted(sends[rank]))
        if one_processor:
            _check_processor(lists, rank, sends[rank], receipts[rank])
        else:
            _check_receipts(lists, rank, sorted(receipts[rank], key=lambda e: (e.end, e.step)))
        _check_data(lists, rank, events)


def _laws(machine: Machine, lists: Lists) -> dict[int, tuple[Fraction, ...]]:
    laws: dict[int, tuple[Fraction, ...]] = {}
    messages = (op for operations in lists for op in operations if isinstance(op, Send | Recv))
    for size in {size_of(op) for op in messages}:
        gap, latency = machine.message(size)
        if isinstance(machine, LogGP):
            body = (size - 1) * machine.G
            laws[size] = machine.o, machine.g + body, latency, machine.o + body
        else:
            laws[size] = gap, gap, latency, Fraction(0)
    return laws


def _late(lists: Lists, rank: int, step: int, seen: str) -> None:
    wrong(lists, rank, step, seen, _REMEDY, lists[rank][step].blocks[0])


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
