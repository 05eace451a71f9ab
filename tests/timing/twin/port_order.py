"""The order in which messages pass if every port works through its list, on any machine."""

from collections.abc import Sequence
from typing import TypeAlias

from collwise.schedule.operations import Combine, Operation, Recv, Send, size_of
from collwise.schedule.program import Schedule

Event: TypeAlias = tuple[int, int, int, int]
"""A message: sender, its step, receiver, its step.  A combine or copy: rank, step, -1, -1."""


def port_order(
    lists: Sequence[Sequence[Operation]],
    dependencies: Sequence[Sequence[Sequence[int]]],
    *,
    combines_use_ports: bool,
) -> list[Event] | None:
    """All that happens, each event after those that it waits for; None if ranks get stuck.

    A message waits for its data and passes when it is next at both ports; a combine that uses ports
    waits until it is next at both of its rank's.  Where a machine makes operations wait for less
    (sends not for receivers, combines not for ports), this order is possible all the same.
    dependencies: per rank and operation, the earlier ones whose data it reads.
    """
    at_send_port = (Send, Combine) if combines_use_ports else (Send,)
    at_receive_port = (Recv, Combine) if combines_use_ports else (Recv,)
    events: list[Event] = []
    missing = [list(map(len, row)) for row in dependencies]
    readers: list[list[list[int]]] = []
    sends: list[list[int]] = []  # the steps still to come at each port, the next one last
    receives: list[list[int]] = []
    for rank, (operations, row) in enumerate(zip(lists, dependencies, strict=True)):
        sends.append([i for i, op in enumerate(operations) if isinstance(op, at_send_port)][::-1])
        steps = [i for i, op in enumerate(operations) if isinstance(op, at_receive_port)]
        receives.append(steps[::-1])
        readers.append([[] for _ in operations])
        for step, writers in enumerate(row):
            for writer in writers:
                readers[rank][writer].append(step)
    portless = [
        [not isinstance(op, (*at_send_port, Recv)) for op in operations] for operations in lists
    ]

    def complete(rank: int, step: int) -> None:
        """Count down what waits for a step; steps without a port happen with it."""
        completed = [step]
        for done in completed:  # grows while it is walked
            for reader in readers[rank][done]:
                missing[rank][reader] -= 1
                if not missing[rank][reader] and portless[rank][reader]:
                    events.append((rank, reader, -1, -1))
                    completed.append(reader)

    def pass_message(rank: int) -> int | None:
        """Pass the next message from a rank, if it can pass; to whom."""
        if not sends[rank] or missing[rank][step := sends[rank][-1]]:
            return None
        send = lists[rank][step]
        if not isinstance(send, Send) or not receives[send.peer]:
            return None
        receive = lists[send.peer][at := receives[send.peer][-1]]
        if not isinstance(receive, Recv) or receive.peer != rank:
            return None
        sends[rank].pop()
        receives[send.peer].pop()
        events.append((rank, step, send.peer, at))
        complete(send.peer, at)
        return send.peer

    for rank, free in enumerate(portless):
        for step in [i for i, waits in enumerate(dependencies[rank]) if free[i] and not waits]:
            events.append((rank, step, -1, -1))
            complete(rank, step)
    active = list(range(len(lists)))
    while active:
        rank = active.pop()
        while True:
            if (peer := pass_message(rank)) is not None:
                active.append(peer)
                continue
            if not receives[rank]:
                break
            step = receives[rank][-1]
            op = lists[rank][step]
            if isinstance(op, Recv):
                if pass_message(op.peer) != rank:
                    break
                active.append(op.peer)
            elif sends[rank][-1] == step and not missing[rank][step]:
                sends[rank].pop()
                receives[rank].pop()
                events.append((rank, step, -1, -1))
                complete(rank, step)
            else:
                break
    return None if any(sends) or any(receives) else events


def sizes_of(schedule: Schedule) -> list[list[int]]:
    """Per rank and operation: its bytes."""
    return [[size_of(op) for op in operations] for operations in schedule.lists]
