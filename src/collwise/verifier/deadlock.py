"""Checks for deadlocks by running the schedule without times."""

from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from collwise.schedule.dependencies import awaited_receives
from collwise.schedule.operations import Message, Recv, Send
from collwise.verifier.violations import Lists, reject

_Port: TypeAlias = tuple[int, type[Message]]
"""One of the two ports of a rank: (rank, Send or Recv)."""
_Step: TypeAlias = tuple[int, int, int]
"""A send or receive of a rank: (step, peer, how many of the rank's receives a send waits for)."""


def check_progress(
    lists: Lists, dependencies: Sequence[Sequence[Sequence[int]]], *, posted: bool = False
) -> None:
    """Run all lists of operations to their ends; raise InvalidSchedule for a deadlock.

    dependencies: for each rank and operation, the earlier operations whose data it reads.
    Every rank has a port for sends and a port for receives; each port works in list order.  A
    buffered send completes once the rank holds its data.  A blocking send completes only when the
    receiver has also reached the matching receive.  So a schedule that completes with blocking
    sends also completes with buffered ones.
    posted: whether all receives are posted at the start, so that no send waits for its receiver.
    """
    awaited = [awaited_receives(*row) for row in zip(lists, dependencies, strict=True)]
    blocking = _Run(lists, awaited, buffered=posted)
    if blocking.is_stuck():
        buffered = _Run(lists, awaited, buffered=True)
        (buffered if buffered.is_stuck() else blocking).explain()


class _Run:
    """A run of the lists of all ranks, with the messages left at every port."""

    def __init__(self, lists: Lists, awaited: Sequence[Sequence[int]], *, buffered: bool) -> None:
        self.lists, self.buffered = lists, buffered
        self.received = [0] * len(lists)
        self.sends: list[list[_Step]] = []  # still to be done, the next one last
        self.receives: list[list[_Step]] = []
        for operations, waits in zip(lists, awaited, strict=True):
            for kind, messages in ((Send, self.sends), (Recv, self.receives)):
                rows = zip(range(len(waits)), operations, waits, strict=True)
                queue = [(step, op.peer, n) for step, op, n in rows if isinstance(op, kind)]
                messages.append(queue[::-1])
        self.in_flight: dict[tuple[int, int], int] = {}

    def is_stuck(self) -> bool:
        """Run the lists as far as possible; return whether any send or receive is left."""
        active = list(range(len(self.lists)))
        while active:
            rank = active.pop()
            for act in (self._receive, self._send):  # receives first: sends wait for them
                while (peer := act(rank)) is not None:
                    active.append(peer)
        return any(self.sends) or any(self.receives)

    def _send(self, rank: int) -> int | None:
        """Do a rank's next send and return the receiver; None if no send can be done now."""
        if not self.sends[rank]:
            return None
        _, peer, receives = self.sends[rank][-1]
        if receives > self.received[rank]:
            return None
        waiting = self.in_flight.get((rank, peer), 0)
        if not self.buffered and (waiting or not self._comes_to(peer, rank)):
            return None
        self.in_flight[rank, peer] = waiting + 1
        self.sends[rank].pop()
        return peer

    def _comes_to(self, rank: int, peer: int) -> bool:
        """Whether the next receive of `rank` is from `peer`."""
        receives = self.receives[rank]
        return bool(receives) and receives[-1][1] == peer

    def _receive(self, rank: int) -> int | None:
        """Do a rank's next receive; None if there is none, or its message is not there yet.

        Returns a rank that may go on now: the one from which the rank receives next, or after the
        last receive, the sender of this message.
        """
        receives = self.receives[rank]
        if not receives:
            return None
        peer = receives[-1][1]
        if not self.in_flight.get((peer, rank)):
            return None
        self.in_flight[peer, rank] -= 1
        self.received[rank] += 1
        receives.pop()
        return receives[-1][1] if receives else peer

    def _next(self, port: _Port) -> _Step:
        return (self.sends if port[1] is Send else self.receives)[port[0]][-1]

    def _waits_for(self, port: _Port) -> _Port:
        """The port that a stuck port waits for.  It is stuck, too, since all messages match."""
        rank, kind = port
        _, peer, receives = self._next(port)
        if kind is Recv:
            return peer, Send
        return (rank, Recv) if receives > self.received[rank] else (peer, Recv)

    def explain(self) -> NoReturn:
        """Raise InvalidSchedule with a cycle of ports that wait for each other."""
        port: _Port = next(
            (rank, kind)
            for rank in range(len(self.lists))
            for kind, messages in ((Send, self.sends), (Recv, self.receives))
            if messages[rank]
        )
        path = {port: 0}
        while (port := self._waits_for(port)) not in path:
            path[port] = len(path)
        cycle = list(path)[path[port] :]
        first = cycle.index(min(cycle, key=lambda p: (p[0], self._next(p)[0])))
        cycle = cycle[first:] + cycle[:first]
        links = []
        for (rank, kind), then in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            step = self._next((rank, kind))[0]
            what = "for its data" if then[0] == rank else f"for rank {then[0]}"
            verb = "send" if kind is Send else "receive"
            links.append(f"rank {rank} at step {step} ({verb}) waits {what}")
        if len(links) > 8:
            links[6:-1] = [f"… {len(links) - 7} more …"]
        rank, step = cycle[0][0], self._next(cycle[0])[0]
        how = "even if sends are buffered" if self.buffered else "if a send waits for its receiver"
        seen = f"it never completes {how}, for ranks wait in a circle: " + ", ".join(links)
        remedy = "put the operations of one of these ranks in another order"
        reject(self.lists, rank, step, seen, remedy)
