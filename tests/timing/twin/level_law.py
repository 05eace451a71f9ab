"""The law of machines with levels: the postal law, and ports that the ranks of a group share.

A send is *requested* when it is next at its rank's port, the port is free and its data is there.
Requests are served in the order of (that time, source, destination).  Serving one reserves the
ports of all groups that it leaves, from the earliest common free time on; gaps before it are not
filled.  On its way in a message passes the ports of the groups that it enters, the outermost first,
in the order of (arrival at the port, source, destination).  A message to which a port is free of
charge does not touch it.  Times are ticks of a common grid.
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from heapq import heappop, heappush

from tests.timing.twin.laws import MessageCosts
from tests.timing.twin.rank_state import RankState, TickTransfer

from collwise.model.levels import Levels
from collwise.model.placement import Placement

REQUEST = 1
"""The kind of a request among events; an arrival at a port of level j has the kind −j.

Of events at one time those at outer ports come first, and requests last: what happens at the same
time may add to what they choose from.
"""


def level_costs(machine: Levels, nbytes: int) -> tuple[Fraction, ...]:
    """In exact seconds: (t0, λ·t0) of every level, then g of every level but the last."""
    levels = range(1, machine.placement.depth + 1)
    costs = [x for level in levels for x in machine.at(level, nbytes)]
    return (*costs, *(machine.port(level, nbytes) for level in levels[:-1]))


class LevelNetwork:
    """The ranks of a schedule and the ports of their groups, during an event simulation."""

    def __init__(
        self, ranks: Sequence[RankState], costs: MessageCosts, placement: Placement
    ) -> None:
        self.ranks, self.costs, self.placement = ranks, costs, placement
        self.transfers: list[TickTransfer] = []
        self.events: list[tuple[int, int, int, int, int]] = []  # time, kind, source, target, number
        self.flights: list[tuple[int, int, int]] = []  # step at the source, start, level
        self.passed: dict[int, int] = {}  # a flight -> when it passed the last port
        self.in_flight: dict[tuple[int, int], deque[int]] = {}
        self.out_free = [[0] * len(groups) for groups in placement.members]
        self.last_in: list[list[int | None]] = [[None] * len(g) for g in placement.members]

    def run(self) -> None:
        """Serve requests and let messages pass until there are none."""
        for number in range(len(self.ranks)):
            self._advance(number)
        while self.events:
            time, kind, source, target, number = heappop(self.events)
            if kind == REQUEST:
                self._send(time, source, target, number)
            else:
                self._enter(time, -kind, source, target, number)

    def _advance(self, number: int) -> None:
        """Receive what has arrived and is next; then request the next send."""
        rank = self.ranks[number]
        port = rank.receive_port
        while True:
            rank.combine_ready()
            receive = rank.next_receive(port)
            if receive is None:
                break
            source = receive[1].peer
            waiting = self.in_flight.get((source, number))
            if not waiting or (passage := self.passed.pop(waiting[0], None)) is None:
                break
            at_source, start, level = self.flights[waiting.popleft()]
            nbytes = self.ranks[source].sizes[at_source]
            gap = self.costs[nbytes][2 * level - 2]
            received = max(passage, port.free + gap) if port.position else passage
            port.advance(received)
            rank.complete(receive[0], received)
            self.transfers.append(
                TickTransfer(
                    source, number, at_source, receive[0], nbytes, start, start + gap, received
                )
            )
        out = rank.send_port
        if not out.requested and (send := rank.next_send(out)) is not None:
            out.requested = True
            ready = max(rank.ready_time[send[0]], out.free)
            heappush(self.events, (ready, REQUEST, number, send[1].peer, send[0]))

    def _send(self, ready: int, source: int, target: int, step: int) -> None:
        """Start a send at the first moment when all ports on its way out are free."""
        rank, level = self.ranks[source], self.placement.meeting(source, target)
        costs = self.costs[rank.sizes[step]]
        start = ready
        left = [
            (self.out_free[j], self.placement.groups[j][source], costs[2 * len(self.out_free) + j])
            for j in self._ports(level, costs)
        ]
        for free, group, _ in left:
            start = max(start, free[group])
        for free, group, busy in left:
            free[group] = start + busy
        rank.send_port.advance(start + costs[2 * level - 2])
        number = len(self.flights)
        self.flights.append((step, start, level))
        self.in_flight.setdefault((source, target), deque()).append(number)
        self._arrive(start + costs[2 * level - 1], level, source, target, number)
        self._advance(source)

    def _ports(self, level: int, costs: Sequence[int]) -> list[int]:
        """The indices of the levels whose ports a message passes that meets at `level`."""
        ports = costs[2 * len(self.out_free) :]
        return [j for j in range(level - 1) if ports[j]]

    def _arrive(self, time: int, level: int, source: int, target: int, number: int) -> None:
        """At the next port on the way in, inside `level`; or at the target."""
        nbytes = self.ranks[source].sizes[self.flights[number][0]]
        if ports := self._ports(level, self.costs[nbytes]):
            heappush(self.events, (time, -1 - ports[-1], source, target, number))
        else:
            self.passed[number] = time
            self._advance(target)

    def _enter(self, arrival: int, level: int, source: int, target: int, number: int) -> None:
        """Pass the port of the target's group of this level."""
        costs = self.costs[self.ranks[source].sizes[self.flights[number][0]]]
        group, last = self.placement.groups[level - 1][target], self.last_in[level - 1]
        before = last[group]
        busy = costs[2 * len(self.out_free) + level - 1]
        passage = arrival if before is None else max(arrival, before + busy)
        last[group] = passage
        self._arrive(passage, level, source, target, number)
