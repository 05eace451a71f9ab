"""The laws of machines without links: postal and LogGP, and Hockney's where no link is shared.

Times are ticks of a common grid.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import TypeAlias

from tests.timing.twin.port_order import Event, sizes_of
from tests.timing.twin.rank_state import Costs, PastLimit, RankState, TickTransfer

from collwise.model.machine import LogGP, Machine
from collwise.schedule.operations import Combine, Recv
from collwise.schedule.program import Schedule

MessageCosts: TypeAlias = Mapping[int, tuple[int, ...]]
"""By bytes: (gap, latency), or for LogGP (o, g', o', L); see `message_costs`."""


def message_costs(machine: Machine, nbytes: int) -> tuple[Fraction, ...]:
    """What a message costs, in exact seconds: (gap, latency), or for LogGP (o, g', o', L).

    g' = g + (s−1)G and o' = o + (s−1)G for s bytes.
    """
    if isinstance(machine, LogGP):
        body = max(nbytes - 1, 0) * machine.G
        return machine.o, machine.g + body, machine.o + body, machine.L
    return tuple(machine.message(nbytes))


def times_in_order(
    schedule: Schedule, events: Sequence[Event], costs: Costs, rendezvous: bool, record: bool
) -> tuple[list[int], list[TickTransfer], list[tuple[int, int, int, int]]]:
    """When each rank finishes, all messages, and all combines: rank, step, start, end.

    events: all that happens, in an order in which it can happen.   rendezvous: whether a send also
    waits for the receiver's port, as in Hockney's law.   record: without
    it the result has no messages and no combines, only when each rank finishes.
    """
    lists, dependencies, sizes = (
        schedule.lists,
        schedule.dependencies,
        sizes_of(schedule),
    )
    done = [[0] * len(row) for row in dependencies]
    send_free, receive_free = [0] * len(done), [-1] * len(done)
    transfers, combines = [], []
    for rank, step, peer, at in events:
        times, start, nbytes = done[rank], 0, sizes[rank][step]
        for writer in dependencies[rank][step]:
            if times[writer] > start:
                start = times[writer]
        if peer >= 0:
            gap, latency = costs.message[nbytes]
            free = receive_free[peer]
            start = max(start, send_free[rank], free if rendezvous else 0)
            times[step] = send_free[rank] = sent = start + gap
            received = start + latency
            if not rendezvous and free >= 0 and received < free + gap:
                received = free + gap
            done[peer][at] = receive_free[peer] = received
            if record:
                t = TickTransfer(rank, peer, step, at, nbytes, start, sent, received)
                transfers.append(t)
        elif costs.combine and isinstance(lists[rank][step], Combine):
            start = max(start, send_free[rank], receive_free[rank])
            times[step] = send_free[rank] = receive_free[rank] = start + costs.combine[nbytes]
            if record:
                combines.append((rank, step, start, times[step]))
        else:
            times[step] = start
    return [max(times, default=0) for times in done], transfers, combines


def simulate_postal(ranks: Sequence[RankState], costs: MessageCosts) -> list[TickTransfer]:
    """A send waits for its port and its data, a receipt for the message and the one before."""
    transfers: list[TickTransfer] = []
    in_flight: dict[tuple[int, int], deque[tuple[int, int]]] = {}  # step at the source, start
    active = deque(range(len(ranks)))
    while active:
        number = active.popleft()
        rank = ranks[number]
        send_port, receive_port = rank.send_port, rank.receive_port
        while True:
            rank.combine_ready()
            receive = rank.next_receive(receive_port)
            if receive and (arrivals := in_flight.get((receive[1].peer, number))):
                step, source = receive[0], receive[1].peer
                at_source, start = arrivals.popleft()
                nbytes = ranks[source].sizes[at_source]
                gap, latency = costs[nbytes]
                received = start + latency
                if receive_port.position:
                    received = max(received, receive_port.free + gap)
                receive_port.advance(received)
                rank.complete(step, received)
                transfers.append(
                    TickTransfer(
                        source, number, at_source, step, nbytes, start, start + gap, received
                    )
                )
                continue
            if (send := rank.next_send(send_port)) is None:
                break
            step, op = send
            start = max(rank.ready_time[step], send_port.free)
            send_port.advance(start + costs[rank.sizes[step]][0])
            in_flight.setdefault((number, op.peer), deque()).append((step, start))
            active.append(op.peer)
    return transfers


def simulate_loggp(
    ranks: Sequence[RankState], costs: MessageCosts, limit: int | None = None
) -> list[TickTransfer]:
    """One processor per rank; messages are processed in the order in which they arrive.

    If a send and an arrival could use the processor at the same moment, the send goes first.
    limit: PastLimit is raised once anything happens after this tick.
    """
    transfers: list[TickTransfer] = []
    cpu, send_gap, receive_gap = ([0] * len(ranks) for _ in range(3))
    arrivals: list[list[tuple[int, int, int, int]]] = [[] for _ in ranks]
    receives: dict[tuple[int, int], deque[int]] = {}
    for number, rank in enumerate(ranks):
        for step, op in enumerate(rank.operations):
            if isinstance(op, Recv):
                receives.setdefault((op.peer, number), deque()).append(step)

    def next_event(number: int) -> tuple[int, int] | None:
        rank, events = ranks[number], []
        if send := rank.next_send(rank.send_port):
            ready = rank.ready_time[send[0]]
            events.append((max(cpu[number], send_gap[number], ready), 0))
        if arrivals[number]:
            events.append((max(arrivals[number][0][0], cpu[number], receive_gap[number]), 1))
        return min(events, default=None)

    event_queue: list[tuple[int, int, int]] = []

    def schedule_next(number: int) -> None:
        if (event := next_event(number)) is not None:
            heappush(event_queue, (*event, number))

    for number in range(len(ranks)):
        schedule_next(number)
    while event_queue:
        now, kind, number = heappop(event_queue)
        if next_event(number) != (now, kind):
            continue  # out of date; the newer event is in the queue
        if limit is not None and now > limit:
            raise PastLimit
        rank = ranks[number]
        if kind == 0:
            send = rank.next_send(rank.send_port)
            assert send is not None
            at_source, peer = send[0], send[1].peer
            o, gap, _, latency = costs[rank.sizes[at_source]]
            cpu[number], send_gap[number] = now + o, now + gap
            rank.send_port.advance(now + gap)
            heappush(arrivals[peer], (now + o + latency, number, at_source, now))
            schedule_next(peer)
        else:
            _, source, at_source, start = heappop(arrivals[number])
            nbytes = ranks[source].sizes[at_source]
            o, gap, busy, _ = costs[nbytes]
            received = now + busy
            cpu[number], receive_gap[number] = received, now + gap
            if steps := receives.get((source, number)):
                step = steps.popleft()
                rank.complete(step, received)
                rank.receive_port.advance(now + gap)
                transfers.append(
                    TickTransfer(
                        source, number, at_source, step, nbytes, start, start + o, received
                    )
                )
        schedule_next(number)
    return transfers
