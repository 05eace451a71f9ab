"""The messages of a schedule, sent and received by mpi4py alone, as programs do by hand."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mpi4py import MPI

from collwise.schedule.operations import Block, Operation, Recv, Send


class BareSends:
    """One rank's part of a collective that only moves data; types are made beforehand.

    operations: what this rank does.   own: the blocks that it has at first, in `result` already.
    result: where all blocks come to stand.   places: by owner, where in it its blocks begin, bytes.
    Where a rank sends to whom it receives from next, it calls `Sendrecv`.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        operations: Iterable[Operation],
        own: Iterable[Block],
        result: Any,
        places: Mapping[int, int],
    ) -> None:
        self._places, self._result = places, result
        self._types: list[MPI.Datatype] = []
        self._requests: list[MPI.Request] = []
        self._calls: list[Callable[[], object]] = []
        operations, held = list(operations), set(own)
        sends = deque(op for op in operations if isinstance(op, Send))
        for received in [*(op for op in operations if isinstance(op, Recv)), None]:
            ready = []
            while sends and held.issuperset(sends[0].blocks):
                ready.append(sends.popleft())
            exchanged = (
                ready.pop() if received and ready[-1:] and _partners(ready[-1], received) else None
            )
            for op in ready:
                self._calls.append(
                    partial(self._isend, partial(comm.Isend, self._spec(op), op.peer))
                )
            if received:
                into, peer = self._spec(received), received.peer
                self._calls.append(
                    partial(comm.Sendrecv, self._spec(exchanged), peer, 0, into, peer, 0)
                    if exchanged
                    else partial(comm.Recv, into, peer)
                )
                held.update(received.blocks)

    def run(self) -> None:
        """Perform the collective."""
        for call in self._calls:
            call()
        if self._requests:
            MPI.Request.Waitall(self._requests)
            self._requests.clear()

    def free(self) -> None:
        """Give the types back."""
        for datatype in self._types:
            datatype.Free()

    def _isend(self, start: Callable[[], MPI.Request]) -> None:
        self._requests.append(start())

    def _spec(self, op: Send | Recv) -> list[Any]:
        lengths = [block.length for block in op.blocks]
        offsets = [self._places[block.owner] + block.offset for block in op.blocks]
        self._types.append(MPI.BYTE.Create_hindexed(lengths, offsets).Commit())
        return [self._result, 1, self._types[-1]]


def _partners(send: Send, received: Recv) -> bool:
    return send.peer == received.peer
