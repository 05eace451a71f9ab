"""The law of networks in which a message holds every link of its route at once.

A *request* is a pending transfer: a send that is next at its port and has its data, and whose
receive is next at the receiver's port.  Its ready time is when the latest of these three came true.
Requests are served in the order of (ready time, source, destination).  Serving one reserves the
ports and all links of the route from the earliest common free time on; a reservation is never
moved, and gaps before it are not filled.  Times are ticks of a common grid.

Hockney's law is the same with links that are held for as long as the ports; without a topology
every pair of ranks has a link of its own, on which nothing ever waits.  Where a rank has one
partner at a time, a transfer also waits until both are through with others.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

from tests.timing.twin.port_order import sizes_of
from tests.timing.twin.rank_state import (
    PROCESSOR,
    Costs,
    PastLimit,
    Port,
    RankState,
    TickPassage,
    TickTransfer,
)

from collwise.model.machine import Hockney, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.operations import Operation, Recv, Send
from collwise.schedule.program import Schedule


class NetworkCosts(NamedTuple):
    """What a message of some size costs over h links, in exact seconds or in ticks.

    The sender's software takes `setup`, the header `hop` for each link, the message itself `body`.
    Then the sender and the links are free; the receiver has the message `tail` later.  The links
    are held from `entry` after the start.
    """

    entry: Fraction
    setup: Fraction
    hop: Fraction
    body: Fraction
    tail: Fraction


def network_costs(machine: Hockney | Wormhole, nbytes: int) -> NetworkCosts:
    """The costs of a message of nbytes, in exact seconds.

    In Hockney's law the links are held for as long as the ports are, for α + nβ.
    """
    if isinstance(machine, Hockney):
        zero = Fraction(0)
        return NetworkCosts(zero, machine.alpha, zero, nbytes * machine.beta, zero)
    before = machine.send + nbytes * machine.copy
    return NetworkCosts(before, before, machine.hop, nbytes * machine.beta, machine.receive)


class _Route(NamedTuple):
    """From one rank to another: the links, their number, and the key of the port at either end."""

    links: tuple[int, ...]
    hops: int
    send_port: int
    receive_port: int


class _Partner:
    """A rank's present partner: until when they exchange, and when its other exchanges ended."""

    def __init__(self) -> None:
        self.rank, self.until, self.others_until = -1, 0, 0

    def free_for(self, other: int) -> int:
        """From when on it can exchange messages with that rank."""
        return self.others_until if other == self.rank else self.until

    def meet(self, other: int, until: int) -> None:
        """Exchange with that rank until then."""
        if other != self.rank:
            self.rank, self.others_until = other, self.until
        self.until = max(self.until, until)


class SimulatedNetwork:
    """The ranks of a schedule, and the links between them, during an event simulation.

    topology: None if every pair of ranks has a link of its own.   all_port: a rank has a send port
    for every link that leaves it and a receive port for every link that ends at it.
    exchange_only: a rank has one partner at a time.   record: whether to keep what messages do.
    """

    def __init__(
        self,
        schedule: Schedule,
        costs: Costs,
        topology: Topology | None,
        all_port: bool = False,
        exchange_only: bool = False,
        record: bool = True,
    ) -> None:
        self.record = record
        self.partners = [_Partner() for _ in schedule.lists] if exchange_only else []
        self.costs, self.topology, self.all_port = costs.message, topology, all_port
        self.routes: dict[tuple[int, int], _Route] = {}
        rows = zip(
            schedule.lists,
            schedule.dependencies,
            sizes_of(schedule),
            strict=True,
        )
        self.ranks = [
            RankState(*row, costs, self._port_keys(number, row[0]) if all_port else ())
            for number, row in enumerate(rows)
        ]
        self.link_free: defaultdict[int, int] = defaultdict(int)
        self.holder: dict[int, int] = {}  # a link -> the transfer that holds it, or did so last
        self.requests: list[tuple[int, int, int, int, int]] = []
        self.transfers: list[TickTransfer] = []

    def run(self, limit: int | None = None) -> None:
        """Serve requests until there are none.

        limit: PastLimit is raised once a message is received after this tick.
        Where nothing can go on, a combine goes before earlier sends, whose receivers wait likewise.
        """
        active = list(range(len(self.ranks)))
        left = [0] * len(self.ranks) if limit is None else self._least_receiving()
        while active:
            for number in active:
                self._request(number)
            while self.requests:
                request = heappop(self.requests)
                received = self._serve(*request)
                if limit is not None:
                    _, source, target, step, _ = request
                    left[target] -= self._least[self.ranks[source].sizes[step]]
                    if received + left[target] > limit:
                        raise PastLimit
            active = [n for n, rank in enumerate(self.ranks) if rank.combine_before_sends()]

    def _least_receiving(self) -> list[int]:
        """By rank, the least ticks that its receive port is busy; 0 where it has several."""
        self._least = {n: 0 if self.all_port else c[1] + c[3] + c[4] for n, c in self.costs.items()}
        rows = [zip(rank.operations, rank.sizes, strict=True) for rank in self.ranks]
        return [sum(self._least[n] for op, n in row if isinstance(op, Recv)) for row in rows]

    def _port_keys(self, number: int, operations: Sequence[Operation]) -> list[int]:
        """For every operation of a rank, its port where it has several."""
        keys = []
        for op in operations:
            if isinstance(op, Send):
                keys.append(self._route(number, op.peer).send_port)
            elif isinstance(op, Recv):
                keys.append(self._route(op.peer, number).receive_port)
            else:
                keys.append(PROCESSOR)
        return keys

    def _route(self, source: int, target: int) -> _Route:
        if (route := self.routes.get((source, target))) is None:
            links = () if self.topology is None else self.topology.route(source, target)
            hops = 1 if self.topology is None else len(links)
            out = into = PROCESSOR
            if self.all_port:  # a pair's own link has no number, but its other end has
                out, into = (links[0], links[-1]) if links else (-2 - target, -2 - source)
            route = self.routes[source, target] = _Route(links, hops, out, into)
        return route

    def _request(self, number: int) -> None:
        """Do the combines that are ready, then request what can be sent to or from a rank."""
        rank = self.ranks[number]
        if rank.combines:
            rank.combine_ready()
        for port in rank.send_ports.values():
            if not port.requested:
                self._request_send(number, port)
        for port in rank.receive_ports.values():
            if receive := rank.next_receive(port):
                source = receive[1].peer
                sending: Port | None = self.ranks[source].send_port
                if self.all_port:
                    key = self._route(source, number).send_port
                    sending = self.ranks[source].send_ports.get(key)
                if sending is not None and not sending.requested:
                    self._request_send(source, sending)

    def _request_send(self, source: int, port: Port) -> None:
        """Request the head of a send port, if its receiver has come to the receive."""
        rank = self.ranks[source]
        if (send := rank.next_send(port)) is None:
            return
        step, target = send[0], send[1].peer
        receiver = self.ranks[target]
        at: Port | None = receiver.receive_port
        if self.all_port:
            at = receiver.receive_ports.get(self._route(source, target).receive_port)
        receive = None if at is None else receiver.next_receive(at)
        if at is None or receive is None or receive[1].peer != source:
            return
        port.requested = True
        ready = max(rank.ready_time[step], port.free, at.free)
        heappush(self.requests, (ready, source, target, step, receive[0]))

    def _serve(self, ready: int, source: int, target: int, step: int, at_target: int) -> int:
        """Reserve the ports and the links for a request, and request what is ready after it.

        Returns when its message is received.
        """
        sender, receiver = self.ranks[source], self.ranks[target]
        links, hops, out, into = self._route(source, target)
        nbytes = sender.sizes[step]
        entry, setup, hop, body, tail = self.costs[nbytes]
        if self.partners:
            meeting = ((self.partners[source], target), (self.partners[target], source))
            ready = max(ready, *(rank.free_for(other) for rank, other in meeting))
        free = self.link_free
        start = max(ready, max(map(free.__getitem__, links)) - entry) if links else ready
        header = start + setup + hops * hop
        sent = header + body
        received = sent + tail
        if self.partners:
            for rank, other in meeting:
                rank.meet(other, sent)
        if self.record:
            waited = None
            if start > ready:
                busiest = next(link for link in links if free[link] - entry == start)
                waited = busiest, self.holder[busiest]
            self.holder.update(dict.fromkeys(links, len(self.transfers)))
            passage = TickPassage(ready, start + entry, header, links, waited)
            of_it = source, target, step, at_target, nbytes, start, sent, received, passage
            self.transfers.append(TickTransfer(*of_it))
        for link in links:
            free[link] = sent
        sender.finish = max(sender.finish, sent)
        sender.send_ports[out].advance(sent)
        receiver.receive_ports[into].advance(received)
        receiver.complete(at_target, received)
        if sender.combines:
            self._request(source)
        else:  # nothing but its sending has changed
            self._request_send(source, sender.send_ports[out])
        self._request(target)
        return received
