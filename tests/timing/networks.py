"""The laws in which ports block, slow and obvious: everything is looked up anew."""

from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from collwise.errors import InvalidSchedule
from collwise.model.machine import Hockney, Machine, Wormhole
from collwise.model.topology import Topology
from collwise.schedule.dependencies import dependencies
from collwise.schedule.operations import Combine, Copy, Operation, Recv, Send, size_of
from collwise.schedule.program import Schedule
from collwise.timing import ideal

F = Fraction


class Served(NamedTuple):
    """A transfer: who sent what when, and what it waited for."""

    source: int
    target: int
    place: int
    ready: Fraction
    start: Fraction
    header: Fraction
    sent: Fraction
    received: Fraction
    waited: tuple[int, int] | None


class Twin:
    """A schedule on a network."""

    def __init__(
        self, schedule: Schedule, machine: Hockney | Wormhole, topology: Topology | None
    ) -> None:
        self.lists = schedule.lists
        self.waits = [dependencies(operations) for operations in self.lists]
        self.machine, self.topology = machine, topology
        self.done: dict[tuple[int, int], Fraction] = {}  # (rank, place) -> when
        self.combines: list[tuple[int, int, Fraction, Fraction]] = []
        self.busy: list[tuple[int, Any, Fraction]] = []  # rank, port (None: all of them), until
        self.served: list[Served] = []
        self.held: list[tuple[int, Fraction, int]] = []  # link, until when, by which transfer
        self.run()

    def run(self) -> None:
        while True:
            while self.settle(strictly=True):
                pass
            if requests := sorted(chain(*map(self.requests, range(len(self.lists))))):
                self.serve(*requests[0])
            elif not self.settle(strictly=False):
                return

    def route(self, source: int, target: int) -> tuple[int, ...]:
        return () if self.topology is None else self.topology.route(source, target)

    def port(self, rank: int, op: Operation) -> Any:
        """Which port an operation is at, None for what is at all of them."""
        if not isinstance(op, Send | Recv):
            return None
        side = "out" if isinstance(op, Send) else "in"
        if not self.machine.all_port:
            return side
        if isinstance(op, Send):
            return side, (self.route(rank, op.peer) or (f"to {op.peer}",))[0]
        return side, (self.route(op.peer, rank) or (f"from {op.peer}",))[-1]

    def free(self, rank: int, port: Any = None) -> Fraction:
        """When a port is free; not given, all ports of the rank."""
        return max(
            (t for r, p, t in self.busy if r == rank and (port is None or p in (port, None))),
            default=F(0),
        )

    def is_next(self, rank: int, place: int, *, strictly: bool = True) -> bool:
        """Whether all before it at its port are done; not strictly: all but sends."""
        port = self.port(rank, self.lists[rank][place])
        for earlier, op in enumerate(self.lists[rank][:place]):
            same = port is None or isinstance(op, Combine) or self.port(rank, op) == port
            passable = isinstance(op, Send) and not strictly
            if (
                same
                and not isinstance(op, Copy)
                and not passable
                and (rank, earlier) not in self.done
            ):
                return False
        return True

    def here(self, rank: int, place: int) -> Fraction | None:
        times = [self.done.get((rank, w)) for w in self.waits[rank][place]]
        return None if None in times else max((t for t in times if t is not None), default=F(0))

    def settle(self, *, strictly: bool) -> bool:
        """Copy and combine what can be; say whether anything was."""
        acted = False
        for rank, operations in enumerate(self.lists):
            for place, op in enumerate(operations):
                here = self.here(rank, place)
                if (rank, place) in self.done or here is None or isinstance(op, Send | Recv):
                    continue
                if isinstance(op, Copy):
                    self.done[rank, place] = here
                elif self.is_next(rank, place, strictly=strictly):
                    start = max(here, self.free(rank))
                    end = start + size_of(op) * self.machine.gamma
                    self.combines.append((rank, place, start, end))
                    self.busy.append((rank, None, end))
                    self.done[rank, place] = end
                else:
                    continue
                acted = True
                if not strictly:
                    break  # one of each rank, before anything else is looked at
        return acted

    def requests(self, source: int) -> list[tuple[Fraction, int, int, int, int]]:
        requests = []
        for place, op in enumerate(self.lists[source]):
            if not isinstance(op, Send) or (source, place) in self.done:
                continue
            here = self.here(source, place)
            if here is None or not self.is_next(source, place):
                continue
            for at, receive in enumerate(self.lists[op.peer]):
                mine = isinstance(receive, Recv) and receive.peer == source
                if mine and (op.peer, at) not in self.done and self.is_next(op.peer, at):
                    ports = self.port(source, op), self.port(op.peer, receive)
                    free = self.free(source, ports[0]), self.free(op.peer, ports[1])
                    requests.append((max(here, *free), source, op.peer, place, at))
        return requests

    def serve(self, ready: Fraction, source: int, target: int, place: int, at: int) -> None:
        op, machine = self.lists[source][place], self.machine
        n, route = size_of(op), self.route(source, target)
        hops = 1 if self.topology is None else len(route)
        if isinstance(machine, Hockney):
            software, first, hop, after = F(0), machine.alpha, F(0), F(0)
        else:
            software = first = machine.send + n * machine.copy
            hop, after = machine.hop, machine.receive
        start, waited = ready, None
        if machine.law == "one partner":
            ends = {source, target}
            for before in self.served:
                theirs = {before.source, before.target}
                if theirs != ends and theirs & ends:
                    start = max(start, before.sent)
        ready = start
        for link in route:
            for other, until, index in self.held:
                if other == link and until - software > start:
                    start, waited = until - software, (link, index)
        header = start + first + hops * hop
        sent = header + n * machine.beta
        received = sent + after
        self.held += [(link, sent, len(self.served)) for link in route]
        self.busy.append((source, self.port(source, op), sent))
        self.busy.append((target, self.port(target, self.lists[target][at]), received))
        self.done[source, place], self.done[target, at] = sent, received
        self.served.append(
            Served(source, target, place, ready, start, header, sent, received, waited)
        )


def equal_to_twin(schedule: Schedule, machine: Machine, topology: Topology | None) -> None:
    """The loop says what the twin says."""
    assert isinstance(machine, Hockney | Wormhole)
    twin = Twin(schedule, machine, topology)
    try:
        timing = ideal(schedule, machine, topology)
    except InvalidSchedule:
        assert len(twin.done) < sum(map(len, schedule.lists))
        return
    ends = [(t.source, t.target, t.place_at_source) for t in timing.transfers]
    starts = [(t.start, t.sent, t.received) for t in timing.transfers]
    plain = [(*s[:3], s.start, s.sent, s.received) for s in twin.served]
    assert sorted(plain) == sorted((*a, *b) for a, b in zip(ends, starts, strict=True))
    if passages := timing.passages:
        waits = [(p.ready, p.header, p.waited) for p in passages]
        theirs = [(s.ready, s.header, s.waited) for s in twin.served]
        told = [*zip(ends, waits, strict=True)]
        expected = [*zip([s[:3] for s in twin.served], theirs, strict=True)]
        assert told == expected if topology else sorted(told) == sorted(expected)
    combines = [(c.rank, c.place, c.start, c.end) for c in timing.combines]
    assert sorted(combines) == sorted(twin.combines)
