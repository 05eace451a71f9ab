"""Ideal time: what a schedule takes if every rank goes on as early as it can.  Exact.

The laws are those of DESIGN's rulings, also told in docs/design.md.  Times are kept as integers on
a common grid while events are played, and given out as Fractions of a second.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm
from typing import NamedTuple, TypeAlias

from collwise.errors import InvalidSchedule
from collwise.model.exact import seconds
from collwise.model.machine import Hockney, LogGP, Machine
from collwise.schedule.data import (
    Combine,
    Copy,
    Message,
    Operation,
    Problem,
    Recv,
    Schedule,
    Send,
    Written,
    size_of,
)
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


class Combining(NamedTuple):
    """One combine in time (exact seconds), on a machine where it takes any."""

    rank: int
    place: int
    nbytes: int
    start: Fraction
    end: Fraction


@dataclass(frozen=True)
class Timing:
    """The ideal times of a schedule on a machine: exact, in seconds from a common start."""

    finish: tuple[Fraction, ...]
    """Per rank: when its last operation is done."""
    transfers: tuple[Transfer, ...]
    combines: tuple[Combining, ...] = ()

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


class _Law(NamedTuple):
    """A machine's law on the grid: the numbers of a message, the ticks of a combine, by bytes."""

    message: Mapping[int, tuple[int, ...]]
    combine: Mapping[int, int]
    """Empty on a machine where combining is free."""


class _Rank:
    """One rank while its list is played: two ports, each with its own queue in list order.

    Combining stands in both queues and keeps both ports busy.  Copies are done as soon as their
    data is here, and so are combines on a machine where they are free.
    """

    def __init__(self, operations: Sequence[Operation], law: _Law) -> None:
        self.operations, self.law = operations, law
        self.waits = dependencies(operations)
        self.sends: list[int] = []
        self.receives: list[int] = []
        self.done: dict[int, int] = {}  # receives, combines, copies: place -> when complete
        self.lacking: dict[int, int] = {}  # what needs no port: place -> operations it waits for
        self.followers: dict[int, list[int]] = {}  # an operation -> those of `lacking` that wait
        self.next_send = self.next_receive = 0
        self.send_free = self.receive_free = 0
        self.receive_used = False
        self.combined: list[tuple[int, int, int]] = []  # place, start, end
        for place, op in enumerate(operations):
            at_ports = bool(law.combine) and isinstance(op, Combine)
            if at_ports or isinstance(op, Send):
                self.sends.append(place)
            if at_ports or isinstance(op, Recv):
                self.receives.append(place)
            if not at_ports and isinstance(op, Combine | Copy):
                self.lacking[place] = len(self.waits[place])
                for writer in self.waits[place]:
                    self.followers.setdefault(writer, []).append(place)
        for place in [place for place, count in self.lacking.items() if not count]:
            self.complete(place, 0)

    def complete(self, place: int, when: int) -> None:
        """Something is complete, as the latest; combine and copy what waited for that alone."""
        todo = [place]
        for place in todo:  # grows while it is walked
            self.done[place] = when
            self.lacking.pop(place, None)
            for follower in self.followers.get(place, ()):
                self.lacking[follower] -= 1
                if not self.lacking[follower]:
                    todo.append(follower)

    def settle(self) -> None:
        """Combine whatever is next at both ports and can be by now."""
        while self._combine():
            pass

    def overtake(self) -> bool:
        """Combine what is next at the receive port before the sends that are listed earlier."""
        if (place := self.receivable(Combine)) is None:
            return False
        self.sends.remove(place)
        self.sends.insert(self.next_send, place)
        return self._combine()

    def _combine(self) -> bool:
        """Combine, if that is next at both ports and the data is here."""
        send, receive = self._head(self.sends, self.next_send), self.receivable(Combine)
        if receive is None or send != receive or (here := self._here(receive)) is None:
            return False
        start = max(here, self.send_free, self.receive_free)
        end = start + self.law.combine[size_of(self.operations[receive])]
        self.combined.append((receive, start, end))
        self.send_free = self.receive_free = end
        self.complete(receive, end)
        self.receive_used = True
        self.next_send += 1
        self.next_receive += 1
        return True

    def _head(self, queue: Sequence[int], position: int) -> int | None:
        return queue[position] if position < len(queue) else None

    def _here(self, place: int) -> int | None:
        """When the data of an operation was here, None if it is not."""
        here = 0
        for writer in self.waits[place]:
            if writer not in self.done:
                return None
            here = max(here, self.done[writer])
        return here

    def sendable(self) -> tuple[int, int] | None:
        """The next send whose data is here: (place, when the data was here)."""
        place = self._head(self.sends, self.next_send)
        if place is None or not isinstance(self.operations[place], Send):
            return None
        here = self._here(place)
        return None if here is None else (place, here)

    def receivable(self, kind: type[Recv | Combine] = Recv) -> int | None:
        """What is next at the receive port, by place, if it is of this kind."""
        place = self._head(self.receives, self.next_receive)
        return place if place is not None and isinstance(self.operations[place], kind) else None

    def message(self, place: int) -> Message:
        """The send or receive at a place."""
        op = self.operations[place]
        assert isinstance(op, Send | Recv)
        return op

    def stuck(self) -> int | None:
        """Where the list stands, None if it is done."""
        waiting = self.sends[self.next_send :][:1] + self.receives[self.next_receive :][:1]
        return min([*waiting, *self.lacking], default=None)


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
    operations = [op for rank in schedule.lists for op in rank]
    sizes = {size_of(op) for op in operations if isinstance(op, Send | Recv)}
    numbers = machine_numbers(machine, sizes)
    combining = {size_of(op) for op in operations if isinstance(op, Combine)}
    costs = {n: cost for n in combining if (cost := machine.combine(n)) is not None}
    exact = [x for law in numbers.values() for x in law] + list(costs.values())
    grid = lcm(*(x.denominator for x in exact))
    law = _Law(
        {size: tuple(int(x * grid) for x in numbers[size]) for size in sizes},
        {size: int(cost * grid) for size, cost in costs.items()},
    )
    ranks = [_Rank(operations, law) for operations in schedule.lists]
    records = _play(machine)(ranks, law.message)
    for number, rank in enumerate(ranks):
        if (place := rank.stuck()) is not None:
            op = rank.operations[place]
            verb = type(op).__name__.lower()
            raise InvalidSchedule(
                f"rank {number}, step {place}: {verb}"
                + (f" with rank {op.peer}" if isinstance(op, Send | Recv) else ""),
                "it never completes: the ranks wait for each other, or nobody answers",
                rank=number,
                step=place,
            )
    finish = [max(rank.done.values(), default=0) for rank in ranks]
    for r in records:
        finish[r.source] = max(finish[r.source], r.sent)
    return Timing(
        tuple(Fraction(t, grid) for t in finish),
        tuple(Transfer(*r[:5], *(Fraction(t, grid) for t in r[5:])) for r in records),
        tuple(
            Combining(
                number,
                place,
                size_of(rank.operations[place]),
                Fraction(start, grid),
                Fraction(end, grid),
            )
            for number, rank in enumerate(ranks)
            for place, start, end in rank.combined
        ),
    )


def ideal_alike(operations: Sequence[Operation], machine: Machine) -> Fraction:
    """Exact seconds of a schedule in which all ranks do the same: one of them stands for all.

    What it sends, it receives itself: its k-th message is the k-th that it gets.
    """
    mirrored = tuple(
        op._replace(peer=0) if isinstance(op, Send | Recv) else op for op in operations
    )
    schedule = Schedule(Problem("one rank for all", 1, 0), Written((mirrored,)))
    return ideal(schedule, machine).completion


def machine_numbers(machine: Machine, sizes: set[int]) -> dict[int, tuple[Fraction, ...]]:
    """The law of a machine for each size: (gap, latency), or for LogGP (o, g', o', L).

    g' = g + (s−1)G and o' = o + (s−1)G for s bytes.
    """
    if isinstance(machine, LogGP):
        body = {size: max(size - 1, 0) * machine.G for size in sizes}
        return {s: (machine.o, machine.g + b, machine.o + b, machine.L) for s, b in body.items()}
    return {size: tuple(machine.message(size)) for size in sizes}


_Messages: TypeAlias = Mapping[int, tuple[int, ...]]


def _play(machine: Machine) -> Callable[[list[_Rank], _Messages], list[_Record]]:
    if isinstance(machine, LogGP):
        return _play_loggp
    return _play_hockney if isinstance(machine, Hockney) else _play_postal


def _play_postal(ranks: list[_Rank], law: _Messages) -> list[_Record]:
    """A send waits for its port and its data, a receipt for the message and the one before."""
    records: list[_Record] = []
    under_way: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # (place at source, start)
    awake = deque(range(len(ranks)))
    while awake:
        number = awake.popleft()
        rank = ranks[number]
        while True:
            rank.settle()
            place = rank.receivable()
            if place is not None:
                peer = rank.message(place).peer
                if queue := under_way.get((peer, number)):
                    at_source, start = queue.popleft()
                    nbytes = size_of(ranks[peer].operations[at_source])
                    gap, latency = law[nbytes]
                    received = start + latency
                    if rank.receive_used:
                        received = max(received, rank.receive_free + gap)
                    rank.receive_used = True
                    rank.receive_free = received
                    rank.complete(place, received)
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
            op = rank.message(place)
            start = max(here, rank.send_free)
            rank.send_free = start + law[size_of(op)][0]
            rank.next_send += 1
            under_way.setdefault((number, op.peer), deque()).append((place, start))
            awake.append(op.peer)
    return records


def _play_hockney(ranks: list[_Rank], law: _Messages) -> list[_Record]:
    """A transfer starts when both ports are free and the data is held; it keeps both busy.

    Where nothing can go on, a combine goes before earlier sends, whose receivers wait likewise.
    """
    records: list[_Record] = []
    awake = deque(range(len(ranks)))

    def transfer(source: int, target: int) -> bool:
        a, b = ranks[source], ranks[target]
        ready, at_target = a.sendable(), b.receivable()
        if ready is None or at_target is None or b.message(at_target).peer != source:
            return False
        place, here = ready
        op = a.message(place)
        if op.peer != target:
            return False
        start = max(here, a.send_free, b.receive_free)
        end = start + law[size_of(op)][1]
        a.send_free = b.receive_free = end
        b.complete(at_target, end)
        a.next_send += 1
        b.next_receive += 1
        records.append(_Record(source, target, place, at_target, size_of(op), start, end, end))
        awake.extend((source, target))
        return True

    while awake:
        number = awake.popleft()
        rank = ranks[number]
        rank.settle()
        if (ready := rank.sendable()) is not None:
            transfer(number, rank.message(ready[0]).peer)
        if (place := rank.receivable()) is not None:
            transfer(rank.message(place).peer, number)
        if not awake:
            awake.extend([number for number, rank in enumerate(ranks) if rank.overtake()])
    return records


def _play_loggp(ranks: list[_Rank], law: _Messages) -> list[_Record]:
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
            by_peer.setdefault(rank.message(place).peer, []).append(place)
        matching.append(by_peer)

    def next_action(number: int) -> tuple[int, int] | None:
        ranks[number].settle()
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
            op = rank.message(ready[0])
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
                rank.complete(places[k], now + busy)
                rank.next_receive += 1
                records.append(
                    _Record(
                        source, number, at_source, places[k], nbytes, start, start + o, now + busy
                    )
                )
        wake(number)
    return records
