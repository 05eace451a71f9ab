"""The messages of a schedule, sent and received by plain calls of mpi4py."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Operation, Recv, Send


class BareSends:
    """One rank's part of a collective that only moves data; MPI types are made beforehand.

    operations: this rank's.   result: the buffer for all blocks, in which this rank's own blocks
    must be when it runs.   places: the offset in bytes, in the result, of each rank's blocks.
    A send and the next receive become one `Sendrecv` if both are with the same rank.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        operations: Sequence[Operation],
        result: Any,
        places: Mapping[int, int],
    ) -> None:
        self._places, self._result = places, result
        self._types: list[MPI.Datatype] = []
        self._requests: list[MPI.Request] = []
        self._calls: list[Callable[[], object]] = []
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
            for op in ready:
                self._calls.append(partial(self._isend, comm, self._spec(op), op.peer))
            if received:
                into = self._spec(received)
                self._calls.append(
                    partial(comm.Sendrecv, self._spec(exchanged), peer, 0, into, peer, 0)
                    if exchanged
                    else partial(comm.Recv, into, peer)
                )
                held.add(at)

    def run(self) -> None:
        """Perform the collective."""
        for call in self._calls:
            call()
        if self._requests:
            MPI.Request.Waitall(self._requests)
            self._requests.clear()

    def free(self) -> None:
        """Free the MPI types."""
        for datatype in self._types:
            datatype.Free()

    def _isend(self, comm: MPI.Intracomm, spec: list[Any], peer: int) -> None:
        self._requests.append(comm.Isend(spec, peer))

    def _spec(self, op: Send | Recv) -> list[Any]:
        lengths = [block.length for block in op.blocks]
        offsets = [self._places[block.owner] + block.offset for block in op.blocks]
        self._types.append(MPI.BYTE.Create_hindexed(lengths, offsets).Commit())
        return [self._result, 1, self._types[-1]]
