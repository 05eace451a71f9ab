"""Progress: the schedule run without a clock, to see whether ranks wait for each other."""

from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from collwise.schedule.data import Message, Operation, Recv, Send
from collwise.schedule.dependencies import dependencies
from collwise.verifier.words import Lists, wrong

_Port: TypeAlias = tuple[int, type[Message]]
"""The port of a rank for sends, or that for receives."""


def check_progress(lists: Lists) -> None:
    """Run the lists to the end; raises InvalidSchedule where ranks wait in a circle.

    Every rank has a port for sends and one for receives, each in list order.  A blocking send is
    done when its data is held and its receiver has come to the receive; a buffered send, when its
    data is held.  So what blocking sends can do, buffered ones can do as well.
    """
    blocking = _Play(lists, buffered=False)
    if blocking.run():
        buffered = _Play(lists, buffered=True)
        (buffered if buffered.run() else blocking).explain()


def _receives_awaited(operations: Sequence[Operation]) -> list[set[int]]:
    """For every operation the receives it waits for, through combines and copies too."""
    awaited: list[set[int]] = []
    for step, (op, waits) in enumerate(zip(operations, dependencies(operations), strict=True)):
        receive = isinstance(op, Recv)
        awaited.append({step} if receive else set().union(*(awaited[w] for w in waits)))
    return awaited


class _Play:
    """How far every port has come."""

    def __init__(self, lists: Lists, *, buffered: bool) -> None:
        self.lists, self.buffered = lists, buffered
        self.received: list[set[int]] = [set() for _ in lists]
        self.waits = [_receives_awaited(operations) for operations in lists]
        self.todo: dict[_Port, list[int]] = {  # the steps to come, the next one last
            (rank, kind): [i for i, op in enumerate(ops) if isinstance(op, kind)][::-1]
            for rank, ops in enumerate(lists)
            for kind in (Send, Recv)
        }
        self.under_way: dict[tuple[int, int], int] = {}

    def run(self) -> bool:
        """Go on as far as possible; whether any operation is left then."""
        awake = list(range(len(self.lists)))
        while awake:
            rank = awake.pop()
            for act in (self._receive, self._send):  # receives first: sends wait for them
                while (peer := act(rank)) is not None:
                    awake.append(peer)
        return any(self.todo.values())

    def _peer(self, port: _Port) -> int | None:
        """With whom the next operation of a port is."""
        steps = self.todo[port]
        if not steps:
            return None
        op = self.lists[port[0]][steps[-1]]
        assert isinstance(op, Send | Recv)
        return op.peer

    def _lacks(self, rank: int) -> bool:
        """Whether the next send of a rank still waits for its data."""
        return not self.waits[rank][self.todo[rank, Send][-1]] <= self.received[rank]

    def _send(self, rank: int) -> int | None:
        """Do the next send if it can be done; the rank that may go on then."""
        peer = self._peer((rank, Send))
        if peer is None or self._lacks(rank):
            return None
        waiting = self.under_way.get((rank, peer), 0)
        if not self.buffered and (waiting or self._peer((peer, Recv)) != rank):
            return None
        self.under_way[rank, peer] = waiting + 1
        self.todo[rank, Send].pop()
        return peer

    def _receive(self, rank: int) -> int | None:
        """Do the next receive if it can be done; the rank that may go on then."""
        peer = self._peer((rank, Recv))
        if peer is None or not self.under_way.get((peer, rank)):
            return None
        self.under_way[peer, rank] -= 1
        self.received[rank].add(self.todo[rank, Recv].pop())
        following = self._peer((rank, Recv))
        return peer if following is None else following

    def _waits_for(self, port: _Port) -> _Port:
        """The port that has to move first; it is not done either, as all messages have partners."""
        rank, kind = port
        peer = self._peer(port)
        assert peer is not None
        if kind is Recv:
            return peer, Send
        return (rank, Recv) if self._lacks(rank) else (peer, Recv)

    def explain(self) -> NoReturn:
        """Raise InvalidSchedule for a circle of ports that wait for each other."""
        port = next(port for port, steps in self.todo.items() if steps)
        path = {port: 0}
        while (port := self._waits_for(port)) not in path:
            path[port] = len(path)
        circle = list(path)[path[port] :]
        first = circle.index(min(circle, key=lambda p: (p[0], self.todo[p][-1])))
        circle = circle[first:] + circle[:first]
        links = []
        for (rank, kind), then in zip(circle, circle[1:] + circle[:1], strict=True):
            step = self.todo[rank, kind][-1]
            what = "for its data" if then[0] == rank else f"for rank {then[0]}"
            verb = "send" if kind is Send else "receive"
            links.append(f"rank {rank} at step {step} ({verb}) waits {what}")
        if len(links) > 8:
            links[6:-1] = [f"… {len(links) - 7} more …"]
        rank, kind = circle[0]
        step = self.todo[circle[0]][-1]
        how = "even if sends are buffered" if self.buffered else "if a send waits for its receiver"
        seen = f"it never completes {how}, for ranks wait in a circle: " + ", ".join(links)
        remedy = "put the operations of one of these ranks in another order"
        wrong(self.lists, rank, step, seen, remedy, self.lists[rank][step].blocks[0])
