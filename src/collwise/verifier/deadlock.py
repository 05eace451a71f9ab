"""Progress: the schedule run without a clock, to see whether ranks wait for each other."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from collwise.schedule.operations import Message, Operation, Recv, Send, reads
from collwise.verifier.partition import Partition
from collwise.verifier.wording import Lists, wrong

_Port: TypeAlias = tuple[int, type[Message]]
"""The port of a rank for sends, or that for receives."""
_Step: TypeAlias = tuple[int, int, int]
"""A message in a rank's list: its place, the partner, and how many receives it waits for."""


def check_progress(lists: Lists, atlas: Partition) -> None:
    """Run the lists to the end; raises InvalidSchedule where ranks wait in a circle.

    Every rank has a port for sends and one for receives, each in list order.  A blocking send is
    done when its data is held and its receiver has come to the receive; a buffered send, when its
    data is held.  So what blocking sends can do, buffered ones can do as well.
    """
    awaited = [awaited_receives(*both) for both in zip(lists, atlas.moved, strict=True)]
    blocking = _Play(lists, awaited, buffered=False)
    if blocking.run():
        buffered = _Play(lists, awaited, buffered=True)
        (buffered if buffered.run() else blocking).explain()


class _Written:
    """All that was written into a slot, and how many receives that had to wait for."""

    def __init__(self) -> None:
        self.ever = 0
        self.writes: list[tuple[int, int]] = []

    def write(self, pieces: int, receives: int) -> None:
        self.ever |= pieces
        self.writes.append((pieces, receives))

    def read(self, pieces: int) -> int:
        """How many receives these pieces wait for, as they were written last."""
        most, pieces = 0, pieces & self.ever
        for written, receives in reversed(self.writes):
            if not pieces:
                break
            if pieces & written:
                most, pieces = max(most, receives), pieces & ~written
        return most


def awaited_receives(operations: Sequence[Operation], moved: Sequence[int]) -> list[int]:
    """For every operation, how many of the rank's receives it waits for, counted in list order.

    Through combines and copies too.  moved: the pieces of every operation.  As a port receives in
    list order, to wait for some receives is to wait for the last of them.
    """
    slots: defaultdict[int, _Written] = defaultdict(_Written)
    awaited, received = [], 0
    for op, pieces in zip(operations, moved, strict=True):
        if isinstance(op, Send):
            awaited.append(slots[op.slot].read(pieces))
            continue
        if isinstance(op, Recv):
            received += 1
            waits, into = received, op.slot
        else:
            waits, into = max(slots[slot].read(pieces) for slot in reads(op)), op.into
        awaited.append(waits)
        slots[into].write(pieces, waits)
    return awaited


class _Play:
    """How far every port has come."""

    def __init__(self, lists: Lists, awaited: Sequence[Sequence[int]], *, buffered: bool) -> None:
        self.lists, self.buffered = lists, buffered
        self.received = [0] * len(lists)
        self.sends: list[list[_Step]] = []  # the steps to come, the next one last
        self.receives: list[list[_Step]] = []
        for operations, waits in zip(lists, awaited, strict=True):
            for kind, todo in ((Send, self.sends), (Recv, self.receives)):
                steps = enumerate(zip(operations, waits, strict=True))
                todo.append([(i, op.peer, n) for i, (op, n) in steps if isinstance(op, kind)][::-1])
        self.under_way: dict[tuple[int, int], int] = {}

    def run(self) -> bool:
        """Go on as far as possible; whether any operation is left then."""
        awake = list(range(len(self.lists)))
        while awake:
            rank = awake.pop()
            for act in (self._receive, self._send):  # receives first: sends wait for them
                while (peer := act(rank)) is not None:
                    awake.append(peer)
        return any(self.sends) or any(self.receives)

    def _send(self, rank: int) -> int | None:
        """Do the next send if it can be done; the rank that may go on then."""
        if not self.sends[rank]:
            return None
        _, peer, receives = self.sends[rank][-1]
        if receives > self.received[rank]:
            return None
        waiting = self.under_way.get((rank, peer), 0)
        if not self.buffered and (waiting or not self._comes_to(peer, rank)):
            return None
        self.under_way[rank, peer] = waiting + 1
        self.sends[rank].pop()
        return peer

    def _comes_to(self, rank: int, peer: int) -> bool:
        """Whether the next receive of a rank is from that peer."""
        receives = self.receives[rank]
        return bool(receives) and receives[-1][1] == peer

    def _receive(self, rank: int) -> int | None:
        """Do the next receive if it can be done; the rank that may go on then."""
        receives = self.receives[rank]
        if not receives:
            return None
        peer = receives[-1][1]
        if not self.under_way.get((peer, rank)):
            return None
        self.under_way[peer, rank] -= 1
        self.received[rank] += 1
        receives.pop()
        return receives[-1][1] if receives else peer

    def _next(self, port: _Port) -> _Step:
        return (self.sends if port[1] is Send else self.receives)[port[0]][-1]

    def _waits_for(self, port: _Port) -> _Port:
        """The port that has to move first; it is not done either, as all messages have partners."""
        rank, kind = port
        _, peer, receives = self._next(port)
        if kind is Recv:
            return peer, Send
        return (rank, Recv) if receives > self.received[rank] else (peer, Recv)

    def explain(self) -> NoReturn:
        """Raise InvalidSchedule for a circle of ports that wait for each other."""
        port: _Port = next(
            (rank, kind)
            for rank in range(len(self.lists))
            for kind, todo in ((Send, self.sends), (Recv, self.receives))
            if todo[rank]
        )
        path = {port: 0}
        while (port := self._waits_for(port)) not in path:
            path[port] = len(path)
        circle = list(path)[path[port] :]
        first = circle.index(min(circle, key=lambda p: (p[0], self._next(p)[0])))
        circle = circle[first:] + circle[:first]
        links = []
        for (rank, kind), then in zip(circle, circle[1:] + circle[:1], strict=True):
            step = self._next((rank, kind))[0]
            what = "for its data" if then[0] == rank else f"for rank {then[0]}"
            verb = "send" if kind is Send else "receive"
            links.append(f"rank {rank} at step {step} ({verb}) waits {what}")
        if len(links) > 8:
            links[6:-1] = [f"… {len(links) - 7} more …"]
        rank, step = circle[0][0], self._next(circle[0])[0]
        how = "even if sends are buffered" if self.buffered else "if a send waits for its receiver"
        seen = f"it never completes {how}, for ranks wait in a circle: " + ", ".join(links)
        remedy = "put the operations of one of these ranks in another order"
        wrong(self.lists, rank, step, seen, remedy, self.lists[rank][step].blocks[0])
