"""Ideal time: what a schedule takes if every rank goes on as early as it can.  Exact.

The laws are those of DESIGN's rulings, also told in docs/design.md.  Times are kept as integers on
a common grid while events are played, and given out as Fractions of a second.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm
from typing import NamedTuple

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import Hockney, LogGP, Machine
from collwise.schedule.data import Operation, Schedule, Send, size_of
from collwise.schedule.dependencies import dependencies


class Transfer(NamedTuple):
    """One message in time (exact seconds): the send begins, the sender is free, it is received."""

    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: Fraction
    sent: Fraction
    received: Fraction


@dataclass(frozen=True)
class Timing:
    """The ideal times of a schedule on a machine: exact, in seconds from a common start."""

    finish: tuple[Fraction, ...]
    """Per rank: when its last operation is done."""
    transfers: tuple[Transfer, ...]

    @property
    def completion(self) -> Fraction:
        """When the last rank is done."""
        return max(self.finish)

    @property
    def completion_s(self) -> float:
        """`completion` as a float, in seconds."""
        return seconds(self.completion)

    @property
    def finish_s(self) -> tuple[float, ...]:
        """`finish` as floats, in seconds."""
        return tuple(seconds(t) for t in self.finish)


class _Rank:
    """One rank while its list is played: two ports, each with its own queue in list order."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        waits = dependencies(operations)
        self.operations = operations
        self.sends = [i for i, op in enumerate(operations) if isinstance(op, Send)]
        self.receives = [i for i, op in enumerate(operations) if not isinstance(op, Send)]
        self.waits = waits
        self.done: dict[int, int] = {}  # receive, by place -> when complete
        self.next_send = self.next_receive = 0
        self.send_free = self.receive_free = 0

    def sendable(self) -> tuple[int, int] | None:
        """The next send whose data is here: (place, when the data was here)."""
        if self.next_send == len(self.sends):
            return None
        place = self.sends[self.next_send]
        here = 0
        for receive in self.waits[place]:
            if receive not in self.done:
                return None
            here = max(here, self.done[receive])
        return place, here

    def receivable(self) -> int | None:
        """The next receive in list order, by place."""
        if self.next_receive == len(self.receives):
            return None
        return self.receives[self.next_receive]

    def stuck(self) -> int | None:
        """Where the list stands, None if it is done."""
        waiting = self.sends[self.next_send :][:1] + self.receives[self.next_receive :][:1]
        return min(waiting, default=None)


class _Record(NamedTuple):
    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: int
    sent: int
    received: int


def ideal(schedule: Schedule, machine: Machine) -> Timing:
    """Exact as-early-as-possible times of a schedule: O(messages), for up to some thousand ranks.

    Raises InvalidSchedule if ranks wait for each other in a circle, or for a message nobody sends.
    """
    ranks = [_Rank(operations) for operations in schedule.lists]
    sizes = {size_of(op) for rank in ranks for op in rank.operations}
    numbers = machine_numbers(machine, sizes)
    grid = lcm(*(x.denominator for law in numbers.values() for x in law)) if numbers else 1
    law = {size: tuple(int(x * grid) for x in numbers[size]) for size in sizes}
    records = _play(machine)(ranks, law)
    for number, rank in enumerate(ranks):
        if (place := rank.stuck()) is not None:
            op = rank.operations[place]
            raise InvalidSchedule(
                f"rank {number}, step {place}: {type(op).__name__.lower()} with rank {op.peer}",
                "it never completes: the ranks wait for each other, or nobody answers",
                rank=number,
                step=place,
            )
    finish = [0] * len(ranks)
    for r in records:
        finish[r.source] = max(finish[r.source], r.sent)
        finish[r.target] = max(finish[r.target], r.received)
    return Timing(
        tuple(Fraction(t, grid) for t in finish),
        tuple(Transfer(*r[:5], *(Fraction(t, grid) for t in r[5:])) for r in records),
    )


def machine_numbers(machine: Machine, sizes: set[int]) -> dict[int, tuple[Fraction, ...]]:
    """The law of a machine for each size: (gap, latency), or for LogGP (o, g', o', L).

    g' = g + (s−1)G and o' = o + (s−1)G for s bytes.
    """
    if isinstance(machine, LogGP):
        body = {size: max(size - 1, 0) * machine.G for size in sizes}
        return {s: (machine.o, machine.g + b, machine.o + b, machine.L) for s, b in body.items()}
    return {size: tuple(machine.message(size)) for size in sizes}


_Law = dict[int, tuple[int, ...]]


def _play(machine: Machine) -> Callable[[list[_Rank], _Law], list[_Record]]:
    if isinstance(machine, LogGP):
        return _play_loggp
    return _play_hockney if isinstance(machine, Hockney) else _play_postal


def _play_postal(ranks: list[_Rank], law: _Law) -> list[_Record]:
    """A send waits for its port and its data, a receipt for the message and the one before."""
    records: list[_Record] = []
    under_way: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # (place at source, start)
    awake = deque(range(len(ranks)))
    while awake:
        number = awake.popleft()
        rank = ranks[number]
        while True:
            place = rank.receivable()
            if place is not None:
                peer = rank.operations[place].peer
                if queue := under_way.get((peer, number)):
                    at_source, start = queue.popleft()
                    nbytes = size_of(ranks[peer].operations[at_source])
                    gap, latency = law[nbytes]
                    received = start + latency
                    if rank.next_receive:
                        received = max(received, rank.receive_free + gap)
                    rank.receive_free = rank.done[place] = received
                    rank.next_receive += 1
                    records.append(
                        _Record(
                            peer, number, at_source, place, nbytes, start, start + gap, received
                        )
                    )
                    continue
            if (ready := rank.sendable()) is None:
                break
            place, here = ready
            op = rank.operations[place]
            start = max(here, rank.send_free)
            rank.send_free = start + law[size_of(op)][0]
            rank.next_send += 1
            under_way.setdefault((number, op.peer), deque()).append((place, start))
            awake.append(op.peer)
    return records


def _play_hockney(ranks: list[_Rank], law: _Law) -> list[_Record]:
    """A transfer starts when both ports are free and the data is held; it keeps both busy."""
    records: list[_Record] = []
    awake = deque(range(len(ranks)))

    def transfer(source: int, target: int) -> bool:
        a, b = ranks[source], ranks[target]
        ready, at_target = a.sendable(), b.receivable()
        if ready is None or at_target is None or b.operations[at_target].peer != source:
            return False
        place, here = ready
        op = a.operations[place]
        if op.peer != target:
            return False
        start = max(here, a.send_free, b.receive_free)
        end = start + law[size_of(op)][1]
        a.send_free = b.receive_free = b.done[at_target] = end
        a.next_send += 1
        b.next_receive += 1
        records.append(_Record(source, target, place, at_target, size_of(op), start, end, end))
        awake.extend((source, target))
        return True

    while awake:
        number = awake.popleft()
        rank = ranks[number]
        if (ready := rank.sendable()) is not None:
            transfer(number, rank.operations[ready[0]].peer)
        if (place := rank.receivable()) is not None:
            transfer(rank.operations[place].peer, number)
    return records


def _play_loggp(ranks: list[_Rank], law: _Law) -> list[_Record]:
    """One processor per rank; messages are processed in the order in which they arrive.

    Of a send and an arrival that could use the processor at the same moment, the send goes first.
    """
    records: list[_Record] = []
    cpu, send_gap, receive_gap = ([0] * len(ranks) for _ in range(3))
    arrivals: list[list[tuple[int, int, int, int]]] = [[] for _ in ranks]
    sent: dict[tuple[int, int], int] = {}
    matching: list[dict[int, list[int]]] = []
    for rank in ranks:
        by_peer: dict[int, list[int]] = {}
        for place in rank.receives:
            by_peer.setdefault(rank.operations[place].peer, []).append(place)
        matching.append(by_peer)

    def next_action(number: int) -> tuple[int, int] | None:
        actions = []
        if (ready := ranks[number].sendable()) is not None:
            actions.append((max(cpu[number], send_gap[number], ready[1]), 0))
        if arrivals[number]:
            actions.append((max(arrivals[number][0][0], cpu[number], receive_gap[number]), 1))
        return min(actions, default=None)

    heap: list[tuple[int, int, int]] = []

    def wake(number: int) -> None:
        if (action := next_action(number)) is not None:
            heappush(heap, (action[0], action[1], number))

    for number in range(len(ranks)):
        wake(number)
    while heap:
        now, kind, number = heappop(heap)
        if next_action(number) != (now, kind):
            continue  # out of date; the newer entry is in the heap
        rank = ranks[number]
        if kind == 0:
            ready = rank.sendable()
            assert ready is not None
            op = rank.operations[ready[0]]
            o, gap, _, latency = law[size_of(op)]
            cpu[number], send_gap[number] = now + o, now + gap
            rank.next_send += 1
            heappush(arrivals[op.peer], (now + o + latency, number, ready[0], now))
            wake(op.peer)
        else:
            _, source, at_source, start = heappop(arrivals[number])
            nbytes = size_of(ranks[source].operations[at_source])
            o, gap, busy, _ = law[nbytes]
            cpu[number], receive_gap[number] = now + busy, now + gap
            k = sent[source, number] = sent.get((source, number), -1) + 1
            places = matching[number].get(source, [])
            if k < len(places):
                rank.done[places[k]] = now + busy
                rank.next_receive += 1
                records.append(
                    _Record(
                        source, number, at_source, places[k], nbytes, start, start + o, now + busy
                    )
                )
        wake(number)
    return records
