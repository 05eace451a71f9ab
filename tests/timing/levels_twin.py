"""The law of machines with levels again, slow and obvious: nothing is kept, all is looked up anew.

Written from the statement of the law in docs/design.md, not from the engine.
"""

from fractions import Fraction
from random import Random

from collwise.model.levels import Levels
from collwise.model.machine import Machine
from collwise.model.measured_machine import measured
from collwise.model.placement import Placement
from collwise.schedule.dependencies import dependencies, matching
from collwise.schedule.operations import Combine, Copy, Recv, Send, size_of
from collwise.schedule.program import Schedule

F = Fraction
Step = tuple[int, int]
"""A rank, and the place in its list."""


class Twin:
    """When a schedule's sends start and its messages are received on a machine with levels."""

    def __init__(self, schedule: Schedule, machine: Levels) -> None:
        self.lists, self.machine = schedule.lists, machine
        self.waits = [dependencies(operations) for operations in self.lists]
        self.receive_of = matching(self.lists)
        self.send_of = {receive: send for send, receive in self.receive_of.items()}
        self.start: dict[Step, Fraction] = {}
        self.passed: dict[Step, list[tuple[int, Fraction]]] = {}  # port's level, when; by send
        self.done: dict[Step, Fraction] = {}  # receives, combines, copies
        self.begun: dict[Step, Fraction] = {}  # combines
        while self.settle() or self.happen():
            pass

    def nbytes(self, step: Step) -> int:
        return size_of(self.lists[step[0]][step[1]])

    def data(self, step: Step) -> Fraction | None:
        """When all that it reads is there."""
        rank, place = step
        times = [self.done.get((rank, w)) for w in self.waits[rank][place]]
        return None if None in times else max((t for t in times if t is not None), default=F(0))

    def queue(self, rank: int, kind: type[Send] | type[Recv]) -> list[int]:
        """The places at a port, in list order; combines that take time are at both."""
        kinds = (kind, Combine) if self.machine.combine(1) is not None else (kind,)
        return [i for i, op in enumerate(self.lists[rank]) if isinstance(op, kinds)]

    def before(self, step: Step, kind: type[Send] | type[Recv]) -> Step | None:
        """The step before it at a port."""
        queue = self.queue(step[0], kind)
        place = queue.index(step[1])
        return (step[0], queue[place - 1]) if place else None

    def send_port_free(self, step: Step) -> Fraction | None:
        """When the send port comes to a step; None if that is not known."""
        if (earlier := self.before(step, Send)) is None:
            return F(0)
        if earlier in self.start:
            source, target = earlier[0], self.receive_of[earlier][0]
            return (
                self.start[earlier] + self.machine.between(source, target, self.nbytes(earlier)).gap
            )
        return self.done.get(earlier)

    def ports(self, send: Step) -> list[int]:
        """The levels of the ports that a message passes, on either side."""
        meeting = self.machine.placement.meeting(send[0], self.receive_of[send][0])
        return [j for j in range(1, meeting) if self.machine.port(j, self.nbytes(send))]

    def settle(self) -> bool:
        """Receive, combine and copy what can be; say whether anything was."""
        acted = False
        for rank, operations in enumerate(self.lists):
            for place, op in enumerate(operations):
                step = rank, place
                if step in self.done:
                    continue
                time: Fraction | None = None
                if isinstance(op, Recv):
                    time = self.receipt(step)
                elif isinstance(op, Copy | Combine):
                    time = self.data(step)
                    cost = self.machine.combine(self.nbytes(step))
                    if isinstance(op, Combine) and cost is not None and time is not None:
                        out, into = self.send_port_free(step), self.receive_port_free(step)
                        time = None
                        if out is not None and into is not None:
                            self.begun[step] = max(self.data(step) or F(0), out, into)
                            time = self.begun[step] + cost
                if time is not None:
                    self.done[step] = time
                    acted = True
        return acted

    def receive_port_free(self, step: Step) -> Fraction | None:
        earlier = self.before(step, Recv)
        return F(0) if earlier is None else self.done.get(earlier)

    def receipt(self, step: Step) -> Fraction | None:
        send = self.send_of.get(step)
        if send is None or send not in self.start:
            return None
        cost = self.machine.between(send[0], step[0], self.nbytes(send))
        time = self.start[send] + cost.latency
        if left := self.ports(send):
            if [j for j, _ in self.passed[send]] != left[::-1]:
                return None
            time = self.passed[send][-1][1]
        if (earlier := self.before(step, Recv)) is None:
            return time
        free = self.done.get(earlier)
        return None if free is None else max(time, free + cost.gap)

    def happen(self) -> bool:
        """The next thing that happens at a port shared by a group, or at a send port."""
        place_of = self.machine.placement.group
        events = []
        for send, start in self.start.items():
            target = self.receive_of[send][0]
            passed = self.passed[send]
            left = [j for j in reversed(self.ports(send)) if j not in [k for k, _ in passed]]
            if left:
                latency = self.machine.between(send[0], target, self.nbytes(send)).latency
                arrival = passed[-1][1] if passed else start + latency
                events.append((arrival, 0, -left[0], send[0], target, send))
        for rank, operations in enumerate(self.lists):
            for place, op in enumerate(operations):
                if not isinstance(op, Send) or (rank, place) in self.start:
                    continue
                free, data = self.send_port_free((rank, place)), self.data((rank, place))
                if free is not None and data is not None:
                    events.append((max(free, data), 1, 0, rank, op.peer, (rank, place)))
        if not events:
            return False
        time, is_request, level, rank, target, send = min(events)
        busy = {j: self.machine.port(j, self.nbytes(send)) for j in self.ports(send)}
        if not is_request:
            here = place_of(-level, target)
            earlier = [
                when
                for other, passed in self.passed.items()
                for j, when in passed
                if j == -level and place_of(j, self.receive_of[other][0]) == here
            ]
            after = max(earlier) + busy[-level] if earlier else F(0)
            self.passed[send].append((-level, max(time, after)))
            return True
        for j in busy:
            for other, start in self.start.items():
                if j in self.ports(other) and place_of(j, other[0]) == place_of(j, rank):
                    time = max(time, start + self.machine.port(j, self.nbytes(other)))
        self.start[send], self.passed[send] = time, []
        return True


def random_placement(random: Random, ranks: int, depth: int | None = None) -> Placement:
    """Any groups within groups, numbered in any way."""
    rows: list[list[int]] = []
    group = [random.randrange(4) for _ in range(ranks)]
    for _ in range((random.randrange(1, 4) if depth is None else depth) - 1):
        rows.append(group)
        above = [random.randrange(2) for _ in range(4)]
        group = [above[g] for g in group]
    return Placement.of(*rows, ranks=ranks)


def random_levels(random: Random, placement: Placement, *, combining: bool = False) -> Levels:
    """Any costs, now and then cheaper at an outer level; ports that often collide."""
    laws: list[Machine] = []
    for level in range(placement.depth):
        t0 = random.choice((F(1), F(2), F(1, 2), F(5, 3)))
        lam = random.choice((F(1), F(3, 2), F(2), F(7, 2))) * (1 + level)
        law: Machine = Machine.postal(t0_s=t0, lam=lam)
        if random.random() < 0.5 or combining:
            law = measured([[(1, t0, lam), (6, 2 * t0, lam)], [(9, 3 * t0, 1)]])
            if combining:
                law = law.with_combining([(1, 1), (10, 3)])
        laws.append(law)
    ports = [random.choice((None, "1/2", 1, 3, [(2, 0), (8, 2)])) for _ in laws[1:]]
    return Machine.levels(laws, placement, ports=ports)
