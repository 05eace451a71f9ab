"""One rank during an event simulation: which steps have completed, and what waits at its ports."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collwise.schedule.operations import Copy, Operation, Recv, Send

PROCESSOR = -1
"""The key of the port that every rank has: its only one, or the one for combines beside links."""


class PastLimit(Exception):
    """A simulation has come later than somebody wanted to know."""


class Costs(NamedTuple):
    """What operations cost on a machine, in ticks, by bytes."""

    message: Mapping[int, tuple[int, ...]]
    """The numbers of a message that the machine's law needs."""
    combine: Mapping[int, int]
    """Empty on a machine where combining is free."""


class TickPassage(NamedTuple):
    """A `Passage` in ticks; its start and end are those of its transfer."""

    ready: int
    entry: int
    header: int
    route: tuple[int, ...]
    waited: tuple[int, int] | None


class TickTransfer(NamedTuple):
    """A `Transfer` in ticks, and its passage through the network if the law has links."""

    source: int
    target: int
    place_at_source: int
    place_at_target: int
    nbytes: int
    start: int
    sent: int
    received: int
    passage: TickPassage | None = None


class Port:
    """A send or receive port: the steps that use it, in list order, and when it is free."""

    __slots__ = ("free", "position", "queue", "requested")

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.position = 0
        self.free = 0
        self.requested = False
        """Whether the head of the queue is in the event queue of the network."""

    def head(self) -> int | None:
        """The next step at this port."""
        return self.queue[self.position] if self.position < len(self.queue) else None

    def advance(self, free: int) -> None:
        """Remove the head of the queue; the port is free at `free`."""
        self.free = free
        self.position += 1
        self.requested = False


class RankState:
    """The steps of one rank, and its send and receive ports by key.

    A combine that takes time stands in the queues of all ports and keeps all of them busy.  Copies
    need no port, nor do combines that are free: they complete as soon as their data is there.
    writers: per step, the earlier steps whose data it reads.   keys: per step, the key of the port
    that a message uses; empty if the rank has one send port and one receive port.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        writers: Sequence[Sequence[int]],
        sizes: Sequence[int],
        costs: Costs,
        keys: Sequence[int] = (),
    ) -> None:
        self.operations, self.sizes, self.costs = operations, sizes, costs
        self.finish = 0
        """When the latest of the completed steps completed."""
        self.combined: list[tuple[int, int, int]] = []  # step, start, end
        self.missing = list(map(len, writers))
        self.ready_time = [0] * len(operations)  # of what a step reads, or when it completed
        self.readers: dict[int, list[int]] = {}
        for step, earlier in enumerate(writers):
            for writer in earlier:
                self.readers.setdefault(writer, []).append(step)
        self._add_ports(keys or [PROCESSOR] * len(operations))
        for step in [step for step in self.portless if not self.missing[step]]:
            self.complete(step, 0)

    def _add_ports(self, keys: Sequence[int]) -> None:
        self.send_port, self.receive_port = Port(), Port()
        """The only ones under laws where a rank has one of each."""
        self.send_ports = {PROCESSOR: self.send_port}
        self.receive_ports = {PROCESSOR: self.receive_port}
        self.portless: set[int] = set()
        self.combines: list[int] = []  # still to be done, the next one last
        for op, key in zip(self.operations, keys, strict=True):
            if isinstance(op, Send):
                self.send_ports.setdefault(key, Port())
            elif isinstance(op, Recv):
                self.receive_ports.setdefault(key, Port())
        self.ports = [*self.send_ports.values(), *self.receive_ports.values()]
        for step, (op, key) in enumerate(zip(self.operations, keys, strict=True)):
            if isinstance(op, Send):
                self.send_ports[key].queue.append(step)
            elif isinstance(op, Recv):
                self.receive_ports[key].queue.append(step)
            elif isinstance(op, Copy) or not self.costs.combine:
                self.portless.add(step)
            else:
                self.combines.append(step)
                for port in self.ports:
                    port.queue.append(step)
        self.combines.reverse()

    def complete(self, step: int, time: int) -> None:
        """Complete a step, then every step without a port for which nothing else is missing."""
        self.ready_time[step] = time
        completed = [step]
        for done in completed:  # grows while it is walked
            self.portless.discard(done)
            time = self.ready_time[done]
            self.finish = max(self.finish, time)
            for reader in self.readers.get(done, ()):
                self.ready_time[reader] = max(self.ready_time[reader], time)
                self.missing[reader] -= 1
                if not self.missing[reader] and reader in self.portless:
                    completed.append(reader)

    def next_send(self, port: Port) -> tuple[int, Send] | None:
        """The step at the head of a send port, if it is a send whose data is there."""
        if port.position == len(port.queue) or self.missing[step := port.queue[port.position]]:
            return None
        op = self.operations[step]
        return (step, op) if isinstance(op, Send) else None

    def next_receive(self, port: Port) -> tuple[int, Recv] | None:
        """The step at the head of a receive port, if it is a receive."""
        if port.position == len(port.queue):
            return None
        op = self.operations[step := port.queue[port.position]]
        return (step, op) if isinstance(op, Recv) else None

    def combine_ready(self) -> None:
        """Do the combines that are next at all ports and whose data is there."""
        while self._combine():
            pass

    def combine_before_sends(self) -> bool:
        """Do a combine before sends that are listed earlier, if it is next at all receive ports."""
        step = self.combines[-1] if self.combines else None
        if step is None or any(port.head() != step for port in self.receive_ports.values()):
            return False
        for port in self.send_ports.values():
            port.queue.remove(step)
            port.queue.insert(port.position, step)
        return self._combine()

    def _combine(self) -> bool:
        step = self.combines[-1] if self.combines else None
        if step is None or self.missing[step] or any(port.head() != step for port in self.ports):
            return False
        self.combines.pop()
        start = max(self.ready_time[step], *(port.free for port in self.ports))
        end = start + self.costs.combine[self.sizes[step]]
        for port in self.ports:
            port.advance(end)
        self.combined.append((step, start, end))
        self.complete(step, end)
        return True

    def first_incomplete(self) -> int | None:
        """The first step that has not completed, None if all have."""
        heads = (port.head() for port in self.ports)
        return min([*(step for step in heads if step is not None), *self.portless], default=None)
