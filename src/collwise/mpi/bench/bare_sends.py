"""The messages of a schedule, sent and received by plain calls of mpi4py."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Operation, Recv, Send


def bare_sends(
    comm: MPI.Intracomm, operations: Sequence[Operation], result: Any, places: Mapping[int, int]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Make MPI types and calls for one rank's part of a collective that only moves data.

    Returns a function that performs the collective, and one that frees the types.
    operations: this rank's.   result: the buffer for all blocks; it must hold this rank's own
    blocks when the function is called.   places: where each rank's blocks begin there, in bytes.
    A send and the next receive become one `Sendrecv` if both are with the same rank.
    """
    types: list[MPI.Datatype] = []
    requests: list[MPI.Request] = []
    calls: list[Callable[[], object]] = []

    def spec(op: Send | Recv) -> list[Any]:
        lengths = [block.length for block in op.blocks]
        offsets = [places[block.owner] + block.offset for block in op.blocks]
        types.append(MPI.BYTE.Create_hindexed(lengths, offsets).Commit())
        return [result, 1, types[-1]]

    def send(data: list[Any], peer: int) -> None:
        requests.append(comm.Isend(data, peer))

    needed = dependencies(operations)
    sends = deque((op, needed[at]) for at, op in enumerate(operations) if isinstance(op, Send))
    receives = [(at, op) for at, op in enumerate(operations) if isinstance(op, Recv)]
    held: set[int] = set()
    for at, received in [*receives, (len(operations), None)]:
        ready = []
        while sends and held.issuperset(sends[0][1]):
            ready.append(sends.popleft()[0])
        peer = received.peer if received else -1
        exchanged = ready.pop() if ready and ready[-1].peer == peer else None
        calls += [partial(send, spec(op), op.peer) for op in ready]
        if received:
            into = spec(received)
            calls.append(
                partial(comm.Sendrecv, spec(exchanged), peer, 0, into, peer, 0)
                if exchanged
                else partial(comm.Recv, into, peer)
            )
            held.add(at)

    def run() -> None:
        for call in calls:
            call()
        if requests:
            MPI.Request.Waitall(requests)
            requests.clear()

    def free() -> None:
        for datatype in types:
            datatype.Free()

    return run, free
