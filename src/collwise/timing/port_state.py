"""One rank while its list is played: what is complete, whose data is here, and its two ports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Combine, Copy, Message, Operation, Recv, Send


class Law(NamedTuple):
    """A machine's law on the grid: the numbers of a message, the ticks of a combine, by bytes."""

    message: Mapping[int, tuple[int, ...]]
    combine: Mapping[int, int]
    """Empty on a machine where combining is free."""


class Record(NamedTuple):
    """A transfer in ticks; its meaning is that of `timing.Transfer`."""

    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: int
    sent: int
    received: int


class Progress:
    """What is complete of one rank's list, and whose data is here.

    Copies need no port, nor do combines on a machine where they are free: they are complete as soon
    as their data is here.
    """

    def __init__(self, operations: Sequence[Operation], sizes: Sequence[int], law: Law) -> None:
        self.operations, self.sizes, self.law = operations, sizes, law
        self.latest = 0
        """When the latest of what is complete was so."""
        self.combined: list[tuple[int, int, int]] = []  # place, start, end
        free = Copy if law.combine else (Combine, Copy)
        waits = dependencies(operations)
        self.pending = {i for i, op in enumerate(operations) if isinstance(op, free)}  # no port
        self.lacking = [len(writers) for writers in waits]
        self.here = [0] * len(operations)  # when the data was here, of what has come so far
        self.followers: dict[int, list[int]] = {}  # an operation -> those that wait for it
        for place, writers in enumerate(waits):
            for writer in writers:
                self.followers.setdefault(writer, []).append(place)
        for place in [place for place in self.pending if not self.lacking[place]]:
            self.complete(place, 0)

    def complete(self, place: int, when: int) -> list[int]:
        """Something is complete, and with it what needs no port and waited for that alone.

        Returns what has all its data now and does need a port.
        """
        self.here[place] = when
        todo, able = [place], list[int]()
        for done in todo:  # grows while it is walked
            self.pending.discard(done)
            when = self.here[done]
            self.latest = max(self.latest, when)
            for follower in self.followers.get(done, ()):
                self.here[follower] = max(self.here[follower], when)
                self.lacking[follower] -= 1
                if not self.lacking[follower]:
                    (todo if follower in self.pending else able).append(follower)
        return able

    def heads(self) -> Iterable[int]:
        """What is next at every port that is not done, by place."""
        raise NotImplementedError

    def stuck(self) -> int | None:
        """Where the list stands, None if it is done."""
        return min([*self.heads(), *self.pending], default=None)


class Ports(Progress):
    """A rank with a send port and a receive port, each with its own queue in list order.

    Combining, where it takes time, stands in both queues and keeps both ports busy.
    """

    def __init__(self, operations: Sequence[Operation], sizes: Sequence[int], law: Law) -> None:
        super().__init__(operations, sizes, law)
        self.sends: list[int] = []
        self.receives: list[int] = []
        self.next_send = self.next_receive = 0
        self.send_free = self.receive_free = 0
        self.receive_used = False
        for place, op in enumerate(operations):
            at_ports = bool(law.combine) and isinstance(op, Combine)
            if at_ports or isinstance(op, Send):
                self.sends.append(place)
            if at_ports or isinstance(op, Recv):
                self.receives.append(place)

    def settle(self) -> None:
        """Combine whatever is next at both ports and can be by now."""
        while self._combine():
            pass

    def overtake(self) -> bool:
        """Combine what is next at the receive port before the sends that are listed earlier."""
        if (place := self.receivable(Combine)) is None:
            return False
        self.sends.remove(place)
        self.sends.insert(self.next_send, place)
        return self._combine()

    def _combine(self) -> bool:
        """Combine, if that is next at both ports and the data is here."""
        send, receive = self._head(self.sends, self.next_send), self.receivable(Combine)
        if receive is None or send != receive or self.lacking[receive]:
            return False
        start = max(self.here[receive], self.send_free, self.receive_free)
        end = start + self.law.combine[self.sizes[receive]]
        self.combined.append((receive, start, end))
        self.send_free = self.receive_free = end
        self.complete(receive, end)
        self.receive_used = True
        self.next_send += 1
        self.next_receive += 1
        return True

    def _head(self, queue: Sequence[int], position: int) -> int | None:
        return queue[position] if position < len(queue) else None

    def sendable(self) -> tuple[int, int] | None:
        """The next send whose data is here: (place, when the data was here)."""
        place = self._head(self.sends, self.next_send)
        if place is None or self.lacking[place] or not isinstance(self.operations[place], Send):
            return None
        return place, self.here[place]

    def receivable(self, kind: type[Recv | Combine] = Recv) -> int | None:
        """What is next at the receive port, by place, if it is of this kind."""
        place = self._head(self.receives, self.next_receive)
        return place if place is not None and isinstance(self.operations[place], kind) else None

    def message(self, place: int) -> Message:
        """The send or receive at a place."""
        op = self.operations[place]
        assert isinstance(op, Send | Recv)
        return op

    def heads(self) -> Iterable[int]:  # noqa: D102
        return self.sends[self.next_send :][:1] + self.receives[self.next_receive :][:1]
