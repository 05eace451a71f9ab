"""The laws of machines without links, each played over all ranks: postal, Hockney's, LogGP.

Times are ticks of a common grid.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from collwise.model.machine import Hockney, LogGP, Machine
from collwise.timing.port_state import Ports, Record

Messages: TypeAlias = Mapping[int, tuple[int, ...]]
"""By bytes: (gap, latency), or for LogGP (o, g', o', L), as `timing.machine_numbers` has them."""
Play: TypeAlias = Callable[[Sequence[Ports], Messages], list[Record]]
"""Plays the lists of all ranks to the end, or as far as they come."""


def law_of(machine: Machine) -> Play:
    """How schedules are played on a machine."""
    if isinstance(machine, LogGP):
        return play_loggp
    return play_hockney if isinstance(machine, Hockney) else play_postal


def play_postal(ranks: Sequence[Ports], law: Messages) -> list[Record]:
    """A send waits for its port and its data, a receipt for the message and the one before."""
    records: list[Record] = []
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
                    nbytes = ranks[peer].sizes[at_source]
                    gap, latency = law[nbytes]
                    received = start + latency
                    if rank.receive_used:
                        received = max(received, rank.receive_free + gap)
                    rank.receive_used = True
                    rank.receive_free = received
                    rank.complete(place, received)
                    rank.next_receive += 1
                    records.append(
                        Record(peer, number, at_source, place, nbytes, start, start + gap, received)
                    )
                    continue
            if (ready := rank.sendable()) is None:
                break
            place, here = ready
            op = rank.message(place)
            start = max(here, rank.send_free)
            rank.send_free = start + law[rank.sizes[place]][0]
            rank.next_send += 1
            under_way.setdefault((number, op.peer), deque()).append((place, start))
            awake.append(op.peer)
    return records


def play_hockney(ranks: Sequence[Ports], law: Messages) -> list[Record]:
    """A transfer starts when both ports are free and the data is held; it keeps both busy.

    Where nothing can go on, a combine goes before earlier sends, whose receivers wait likewise.
    """
    records: list[Record] = []
    awake = deque(range(len(ranks)))

    def transfer(source: int, target: int) -> None:
        a, b = ranks[source], ranks[target]
        ready, at_target = a.sendable(), b.receivable()
        if ready is None or at_target is None or b.message(at_target).peer != source:
            return
        place, here = ready
        op = a.message(place)
        if op.peer != target:
            return
        start = max(here, a.send_free, b.receive_free)
        nbytes = a.sizes[place]
        end = start + law[nbytes][1]
        a.send_free = b.receive_free = end
        b.complete(at_target, end)
        a.next_send += 1
        b.next_receive += 1
        records.append(Record(source, target, place, at_target, nbytes, start, end, end))
        awake.extend((source, target))

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


def play_loggp(ranks: Sequence[Ports], law: Messages) -> list[Record]:
    """One processor per rank; messages are processed in the order in which they arrive.

    Of a send and an arrival that could use the processor at the same moment, the send goes first.
    """
    records: list[Record] = []
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
            o, gap, _, latency = law[rank.sizes[ready[0]]]
            cpu[number], send_gap[number] = now + o, now + gap
            rank.next_send += 1
            heappush(arrivals[op.peer], (now + o + latency, number, ready[0], now))
            wake(op.peer)
        else:
            _, source, at_source, start = heappop(arrivals[number])
            nbytes = ranks[source].sizes[at_source]
            o, gap, busy, _ = law[nbytes]
            cpu[number], receive_gap[number] = now + busy, now + gap
            k = sent[source, number] = sent.get((source, number), -1) + 1
            places = matching[number].get(source, [])
            if k < len(places):
                rank.complete(places[k], now + busy)
                rank.next_receive += 1
                records.append(
                    Record(
                        source, number, at_source, places[k], nbytes, start, start + o, now + busy
                    )
                )
        wake(number)
    return records
