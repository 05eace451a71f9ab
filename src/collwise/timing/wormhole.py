"""The law of networks whose links are shared: a message holds every link of its route at once.

A *request* is a send that is next at its port and has its data, and whose receive is next at the
receiver's port; its ready time is when the latest of these three came to be.  Requests are served
in the order of (ready time, source, destination).  Serving one reserves the ports and all links of
the route from the earliest common free time on; what was reserved is never moved, and gaps that are
left before it are not filled.  Times are ticks of a common grid.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

from collwise.model.machine import Hockney, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.operations import Combine, Operation, Recv, Send
from collwise.timing.port_state import Law, Progress, Record


class Stage(NamedTuple):
    """What a message of some size does over h links, in exact seconds or in ticks.

    The software of the sender takes `setup`, then the header takes `hop` for each link, the message
    itself `body`; then sender and links are free, and the receiver has it after `tail`.  The links
    are held from `entry` after the start.
    """

    entry: Fraction
    setup: Fraction
    hop: Fraction
    body: Fraction
    tail: Fraction


def stages(machine: Hockney | Wormhole, nbytes: int) -> Stage:
    """The numbers of a message of nbytes, in exact seconds.

    In Hockney's law the links are held for as long as the ports are, for α + nβ.
    """
    if isinstance(machine, Hockney):
        zero = Fraction(0)
        return Stage(zero, machine.alpha, zero, nbytes * machine.beta, zero)
    before = machine.send + nbytes * machine.copy
    return Stage(before, before, machine.hop, nbytes * machine.beta, machine.receive)


class Passing(NamedTuple):
    """What a transfer did in the network, in ticks; its meaning is that of `timing.Passage`."""

    ready: int
    entry: int
    header: int
    route: tuple[int, ...]
    waited: tuple[int, int] | None


class _Port:
    """A port and what it has to do, in list order."""

    __slots__ = ("asked", "free", "position", "queue")

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.position = 0
        self.free = 0
        self.asked = False
        """Whether the request of what is next is known."""

    def head(self) -> int | None:
        return self.queue[self.position] if self.position < len(self.queue) else None

    def leave(self, when: int) -> None:
        """What is next is over."""
        self.free = when
        self.position += 1
        self.asked = False


class _Way(NamedTuple):
    """From one rank to another: the links, their number, and the port at either end."""

    route: tuple[int, ...]
    hops: int
    out: int
    into: int


_PROCESSOR = -1
"""The port that every rank has: the only one, or that of a rank's combines beside its links'."""


class _Station(Progress):
    """A rank with any number of send and receive ports.

    Combining stands in the queues of all of them, and keeps them all busy.
    """

    def __init__(
        self, operations: Sequence[Operation], sizes: Sequence[int], law: Law, keys: Sequence[int]
    ) -> None:
        super().__init__(operations, sizes, law)
        self.sending = {_PROCESSOR: _Port()}
        self.receiving = {_PROCESSOR: _Port()}
        self.combines: list[int] = []
        """What is still to be combined, the next one last."""
        for op, key in zip(operations, keys, strict=True):
            if isinstance(op, Send):
                self.sending.setdefault(key, _Port())
            elif isinstance(op, Recv):
                self.receiving.setdefault(key, _Port())
        self.ports = [*self.sending.values(), *self.receiving.values()]
        for place, (op, key) in enumerate(zip(operations, keys, strict=True)):
            if isinstance(op, Send):
                self.sending[key].queue.append(place)
            elif isinstance(op, Recv):
                self.receiving[key].queue.append(place)
            elif isinstance(op, Combine) and law.combine:
                self.combines.append(place)
                for port in self.ports:
                    port.queue.append(place)
        self.combines.reverse()

    def settle(self) -> bool:
        """Combine whatever is next at all ports and can be by now; say whether anything was."""
        found = False
        while self._combine():
            found = True
        return found

    def overtake(self) -> bool:
        """Combine what is next at all receive ports before the sends that are listed earlier."""
        if not self.combines:
            return False
        place = self.combines[-1]
        if any(port.head() != place for port in self.receiving.values()):
            return False
        for port in self.sending.values():
            port.queue.remove(place)
            port.queue.insert(port.position, place)
        return self._combine()

    def _combine(self) -> bool:
        if not self.combines:
            return False
        place = self.combines[-1]
        if self.lacking[place] or any(port.head() != place for port in self.ports):
            return False
        self.combines.pop()
        start = max(self.here[place], *(port.free for port in self.ports))
        end = start + self.law.combine[self.sizes[place]]
        for port in self.ports:
            port.leave(end)
        self.combined.append((place, start, end))
        self.complete(place, end)
        return True

    def heads(self) -> Iterable[int]:
        return (place for port in self.ports if (place := port.head()) is not None)


class Network:
    """Ranks, and the links between them, while a schedule is played.

    topology: None if every pair of ranks has a link of its own.   all_port: a rank has a send port
    for every link that leaves it and a receive port for every link that ends at it.
    """

    def __init__(
        self,
        lists: Sequence[Sequence[Operation]],
        sizes: Sequence[Sequence[int]],
        law: Law,
        topology: Topology | None,
        all_port: bool = False,
    ) -> None:
        self.messages: Mapping[int, tuple[int, ...]] = law.message
        self.topology, self.all_port = topology, all_port
        self.ways: dict[tuple[int, int], _Way] = {}
        self.ranks = [
            _Station(operations, sizes[number], law, self._keys(number, operations))
            for number, operations in enumerate(lists)
        ]
        self.link_free: dict[int, int] = {}
        self.holder: dict[int, int] = {}  # a link -> the transfer that holds it, or did so last
        self.requests: list[tuple[int, int, int, int, int]] = []
        self.records: list[Record] = []
        self.passings: list[Passing] = []

    def play(self) -> None:
        """Serve requests until there are none.

        Where nothing can go on, a combine goes before earlier sends, whose receivers wait likewise.
        """
        for rank in self.ranks:
            rank.settle()
        moved = list(range(len(self.ranks)))
        while moved:
            for number in moved:
                self._ask(number)
            while self.requests:
                self._serve(*heappop(self.requests))
            moved = [number for number, rank in enumerate(self.ranks) if rank.overtake()]
            for number in moved:
                self.ranks[number].settle()

    def _keys(self, number: int, operations: Sequence[Operation]) -> list[int]:
        """For every operation of a rank, its port; the ways of its messages become known."""
        keys = []
        for op in operations:
            if isinstance(op, Send):
                keys.append(self._way(number, op.peer).out)
            elif isinstance(op, Recv):
                keys.append(self._way(op.peer, number).into)
            else:
                keys.append(_PROCESSOR)
        return keys

    def _way(self, source: int, target: int) -> _Way:
        if (way := self.ways.get((source, target))) is None:
            route = () if self.topology is None else self.topology.route(source, target)
            hops = 1 if self.topology is None else len(route)
            out = into = _PROCESSOR
            if self.all_port:  # a link of their own has no number, but its other end has
                out, into = (route[0], route[-1]) if route else (-2 - target, -2 - source)
            way = self.ways[source, target] = _Way(route, hops, out, into)
        return way

    def _ask(self, number: int) -> None:
        """Make the requests in which a rank can take part, at any of its ports."""
        rank = self.ranks[number]
        for port in rank.sending.values():
            self._offer(number, port)
        for port in rank.receiving.values():
            self._answer(number, port)

    def _offer(self, source: int, port: _Port) -> None:
        """Request what is next at a send port, if it can be sent and its receiver is at it."""
        rank, place = self.ranks[source], port.head()
        if place is None or port.asked or rank.lacking[place]:
            return
        op = rank.operations[place]
        if not isinstance(op, Send):
            return
        peer = self.ranks[op.peer]
        at = peer.receiving.get(self.ways[source, op.peer].into)
        if at is None or (at_target := at.head()) is None:
            return
        receive = peer.operations[at_target]
        if not isinstance(receive, Recv) or receive.peer != source:
            return
        port.asked = True
        ready = max(rank.here[place], port.free, at.free)
        heappush(self.requests, (ready, source, op.peer, place, at_target))

    def _answer(self, target: int, port: _Port) -> None:
        """Request what is next at a receive port, if its sender is at it."""
        place = port.head()
        if place is None or not isinstance(op := self.ranks[target].operations[place], Recv):
            return
        sending = self.ranks[op.peer].sending.get(self.ways[op.peer, target].out)
        if sending is not None:
            self._offer(op.peer, sending)

    def _serve(self, ready: int, source: int, target: int, place: int, at_target: int) -> None:
        """Reserve the ports and the links for a request, and see who can go on then."""
        a, b = self.ranks[source], self.ranks[target]
        route, hops, out, into = self.ways[source, target]
        nbytes = a.sizes[place]
        entry, setup, hop, body, tail = self.messages[nbytes]
        start, busiest = ready, None
        for link in route:
            free = self.link_free.get(link, 0) - entry
            if free > start:
                start, busiest = free, link
        waited = None if busiest is None else (busiest, self.holder[busiest])
        header = start + setup + hops * hop
        sent = header + body
        received = sent + tail
        for link in route:
            self.link_free[link] = sent
            self.holder[link] = len(self.records)
        self.records.append(Record(source, target, place, at_target, nbytes, start, sent, received))
        self.passings.append(Passing(ready, start + entry, header, route, waited))
        sending, receiving = a.sending[out], b.receiving[into]
        sending.leave(sent)
        receiving.leave(received)
        able = b.complete(at_target, received)
        if a.settle():
            self._ask(source)
        else:
            self._offer(source, sending)
        if b.settle():
            self._ask(target)
        else:
            self._answer(target, receiving)
            for found in able:
                if isinstance(op := b.operations[found], Send):
                    self._offer(target, b.sending[self.ways[target, op.peer].out])
