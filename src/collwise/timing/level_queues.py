"""The law of machines with levels on the queues of the ports: where messages meet at shared ports.

The law is that of `level_law`.  The loop is compiled (a fifth of a microsecond for each message) if
times fit, else Python's, with ticks of any size (some microseconds).  A combine is a message of a
rank to itself.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from collwise.model.placement import Placement
from collwise.timing.level_law import REQUEST
from collwise.timing.port_queues import LARGEST, PortQueues
from collwise.timing.rank_state import PastLimit
from collwise.timing.vectorised_laws import Ticks, Times

try:
    from collwise.timing import _event_loop
except ImportError:  # there was no compiler
    COMPILED = False
else:
    COMPILED = True

_DONE, _CIRCLE, _PAST_LIMIT = range(3)


def with_ports(
    queues: PortQueues,
    costs: Sequence[Ticks],
    placement: Placement | None,
    limit: int | None = None,
) -> Times | None:
    """When each message is sent and when it is received; None if ranks wait in a circle.

    costs: per message: to the next send, to the receipt, until the sender is free, and for each
    level but the last how long it keeps a port busy (0: it does not pass one).
    limit: PastLimit is raised once anything happens after this tick.   Raises OverflowError where
    int64 does not do.
    """
    if COMPILED and costs[0].dtype == np.int64:
        return _compiled(queues, costs, placement, LARGEST if limit is None else limit)
    return _walked(queues, costs, placement, limit)


def _compiled(
    queues: PortQueues, costs: Sequence[Ticks], placement: Placement | None, limit: int
) -> Times | None:
    step, reach, _, *ports = costs
    if max(int(cost.max()) for cost in costs) > LARGEST >> 2:
        raise OverflowError
    start, received = np.empty_like(step), np.empty_like(step)
    q = queues
    columns = [step, reach, q.source, q.target, q.ready_at, q.receive_position, q.receive_order]
    columns += [q.send_begins, q.receive_begins, start, received]
    levels = [
        (busy, groups, *(np.full(int(groups.max()) + 1, at) for at in (0, -1)))
        for busy, groups in zip(ports, placement.table if placement else (), strict=True)
    ]
    sizes, last = (len(q), len(q.send_begins) - 1), min(max(limit, -1), LARGEST)
    outcome = _event_loop.play(*sizes, tuple(columns), q.forwards, tuple(levels), last)
    if outcome == _PAST_LIMIT:
        raise PastLimit
    if outcome > _PAST_LIMIT:
        raise OverflowError
    return (start, received[q.receive_position]) if outcome == _DONE else None


def _walked(
    queues: PortQueues, costs: Sequence[Ticks], placement: Placement | None, limit: int | None
) -> Times | None:
    step, reach, _, *ports = (column.tolist() for column in costs)
    source, target = queues.source.tolist(), queues.target.tolist()
    ready_at, position = queues.ready_at.tolist(), queues.receive_position.tolist()
    waits, at = queues.forwards.tolist(), queues.receive_order.tolist()
    send_ends, receive_begins = queues.send_begins[1:].tolist(), queues.receive_begins.tolist()
    next_send, next_receive = queues.send_begins[:-1].tolist(), receive_begins[:-1]
    start, received = [0] * len(source), [0] * len(source)  # received: in receive order
    passage: list[int | None] = [None] * len(source)
    send_free, requested = [0] * len(next_send), [False] * len(next_send)
    groups, levels = placement.groups if placement else (), range(len(ports))
    out_free = [[0] * (max(row) + 1) for row in groups]
    last_in: list[list[int | None]] = [[None] * (max(row) + 1) for row in groups]
    events: list[tuple[int, int, int, int, int]] = []

    def advance(rank: int) -> None:
        """Receive what has arrived and is next; then request the next send."""
        here, begin, end = next_receive[rank], receive_begins[rank], receive_begins[rank + 1]
        while here < end:
            message = at[here]
            if source[message] == rank:
                if next_send[rank] != message:
                    break
                start[message] = max(send_free[rank], received[here - 1] if here > begin else 0)
                received[here] = send_free[rank] = start[message] + step[message]
                next_send[rank] += 1
            elif (time := passage[here]) is not None:
                after = received[here - 1] + step[message] if here > begin else 0
                received[here] = max(time, after)
            else:
                break
            here += 1
        next_receive[rank] = here
        message = next_send[rank]
        if requested[rank] or message >= send_ends[rank] or ready_at[message] > here:
            return
        if target[message] == rank:  # a combine, which waits for a receipt
            return
        requested[rank] = True
        ready = send_free[rank]
        if waits[message]:
            ready = max(ready, received[ready_at[message] - 1])
        heappush(events, (ready, REQUEST, rank, target[message], message))

    def arrive(time: int, outermost: int, message: int) -> None:
        """At the next port inside a level; or at the target."""
        for level in range(outermost - 1, -1, -1):
            if ports[level][message]:
                heappush(events, (time, -1 - level, source[message], target[message], message))
                return
        passage[position[message]] = time
        if position[message] == next_receive[target[message]]:
            advance(target[message])

    for rank in range(len(next_send)):
        advance(rank)
    while events:
        time, kind, rank, to, message = heappop(events)
        if limit is not None and time > limit:
            raise PastLimit
        if kind == REQUEST:
            used = [
                (out_free[j], groups[j][rank], ports[j][message])
                for j in levels
                if ports[j][message]
            ]
            for free, group, _ in used:
                time = max(time, free[group])
            for free, group, busy in used:
                free[group] = time + busy
            start[message] = time
            send_free[rank] = time + step[message]
            next_send[rank], requested[rank] = message + 1, False
            arrive(time + reach[message], len(ports), message)
            advance(rank)
        else:
            level = -1 - kind
            group, last = groups[level][to], last_in[level]
            before = last[group]
            if before is not None:
                time = max(time, before + ports[level][message])
            last[group] = time
            arrive(time, level, message)
    if any(a < b for a, b in zip(next_receive, receive_begins[1:], strict=True)):
        return None
    kind_of = costs[0].dtype
    ends = np.array(received, dtype=kind_of)
    return np.array(start, dtype=kind_of), ends[queues.receive_position]
