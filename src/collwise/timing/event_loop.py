"""The event loop: exact times of a schedule's rows under a machine's law.

A row is a message or a combine.  A port serves rows in list order, with two exceptions: LogGP
receives in order of arrival, and if nothing else can go on in a rendezvous, combines go before
earlier sends.  A combine is in the queues of all ports of its rank.  A message is *requested* when
it is next at its send port (in a rendezvous also at its receive port) and its sender has the data.
Where messages compete for links, partners or groups' ports, requests are served by (time, source,
target); at equal times, arrivals at groups' ports come first, outer levels before inner ones.
Sends of the same bytes in shared memory start together.  There a rank does one thing at a time: a
read waits for its turn, too, which it takes once it would end when the bytes are there, or later.
At equal times, sends come before reads.  The loop is in C; `_Plain` replaces it.
"""

from collections import defaultdict
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from collwise.schedule.rows import LARGEST, NONE, Rows
from collwise.timing.law import EXACT, Law, Ticks
from collwise.timing.plain_ports import Partner, Port

try:
    from collwise.timing import _event_loop
except ImportError:  # there was no compiler
    _event_loop = None  # type: ignore[assignment]

NEVER = -1
_DONE, _STUCK, _PAST_LIMIT = range(3)


class PastLimit(Exception):
    """Raised when simulated time exceeds the caller's limit."""


class Columns(NamedTuple):
    """When each row (message or combine) was served; every column has one entry for each row.

    asked, start, received: ticks, or NEVER.  From `asked` on, a message waits for links only; it
    starts at `start`.  At `received`, a message is received or a combine ends.
    served: a started message's number in the order of service; 0 for other rows.   waited: the link
    that the row waited for longest, or NONE.   holder: the row that held this link, or NONE.
    """

    asked: Ticks
    start: Ticks
    received: Ticks
    served: Ticks
    waited: Ticks
    holder: Ticks


class Played(NamedTuple):
    """The result of `play`.   at: the rows' times.   stuck: whether a row never completes."""

    at: Columns
    stuck: bool


def play(rows: Rows, law: Law, limit: int | None = None) -> Played:
    """Simulate all rows under a law; raise PastLimit for an event after tick `limit`, if given."""
    if _event_loop is not None and law.gap.dtype == np.int64:
        played = _play_c(rows, law, LARGEST if limit is None or limit > EXACT else max(limit, -1))
        if played is not None:
            return played
    return _Plain(rows, law, limit).play()


def _play_c(rows: Rows, law: Law, limit: int) -> Played | None:
    """Simulate the rows in C, as `play` does; None if a time exceeds 2^61 ticks."""
    ports, ranks = law.ports, len(law.ports.own_sends) - 1
    columns = [rows.source, rows.target, rows.place_at_source, rows.place_at_target]
    columns += [ports.send, ports.receive, law.gap, law.reach, law.entry, law.absorb]
    columns += [rows.begins, np.full(len(rows), NONE) if law.along is None else law.along]
    routes: Any = () if law.links is None else tuple(law.links)
    levels = tuple(
        (port.busy, port.group, *(np.full(int(port.group.max()) + 1, at) for at in (0, NEVER)))
        for port in law.shared
    )
    results = Columns(*(np.zeros(len(rows), np.int64) for _ in Columns._fields))
    rules = sum(rule << bit for bit, rule in enumerate(law.rules))
    outcome = _event_loop.play(
        *(len(rows), ranks, rules, limit),
        tuple(map(np.ascontiguousarray, columns)),
        np.ascontiguousarray(rows.needs),
        (ports.own_sends, ports.own_receives),
        routes,
        levels,
        results,
    )
    if outcome == _PAST_LIMIT:
        raise PastLimit
    return Played(results, outcome == _STUCK) if outcome in (_DONE, _STUCK) else None


class _Plain:
    """The event loop in Python: for times of any size, and where there was no compiler."""

    def __init__(self, rows: Rows, law: Law, limit: int | None) -> None:
        self.rules, self.limit, self.routes = law.rules, limit, law.links
        self.source, self.target = rows.source.tolist(), rows.target.tolist()
        self.at_target = rows.place_at_target.tolist()
        costs = law.gap, law.reach, law.entry, law.absorb
        self.gap, self.reach, self.entry, self.absorb = (column.tolist() for column in costs)
        self.shared = [(p.busy.tolist(), p.group.tolist()) for p in law.shared]
        count, ranks = len(rows), len(law.ports.own_sends) - 1
        self.along = [NONE] * count if law.along is None else law.along.tolist()
        self.begins, self.readers = rows.begins.tolist(), defaultdict[int, list[int]](list)
        for row in range(count):
            for needed in rows.needs[self.begins[row] : self.begins[row + 1]].tolist():
                self.readers[needed].append(row)
        self.missing = np.diff(rows.begins).tolist()
        self.ready = [0] * count
        self.asked, self.start, self.received, self.passage = ([NEVER] * count for _ in range(4))
        self.waited, self.holder = [NONE] * count, [NONE] * count
        self.served, self.number = [0] * count, 0
        self._make_ports(rows, law, ranks)
        self.partners = [Partner() for _ in range(ranks)]
        self.link_free: defaultdict[int, int] = defaultdict(int)
        self.link_holder: dict[int, int] = {}
        self.out_free = [defaultdict[int, int](int) for _ in self.shared]
        self.last_in: list[dict[int, int]] = [{} for _ in self.shared]
        self.cpu, self.arrived = [0] * ranks, [list[tuple[int, ...]]() for _ in range(ranks)]
        self.heap: list[tuple[int, ...]] = []
        self.stack: list[int] = []

    def _make_ports(self, rows: Rows, law: Law, ranks: int) -> None:
        bounds = law.ports.own_sends.tolist(), law.ports.own_receives.tolist()
        first = 0 if self.rules.rendezvous or self.rules.one_processor else NEVER
        all_ports = [
            [Port(free) for _ in range(own[-1])]
            for own, free in zip(bounds, (0, first), strict=True)
        ]
        self.sends, self.receives = (
            [ports[own[rank] : own[rank + 1]] for rank in range(ranks)]
            for own, ports in zip(bounds, all_ports, strict=True)
        )
        self.send_port, self.receive_port = (
            [ports[n] if n != NONE else None for n in column.tolist()]
            for ports, column in zip(all_ports, law.ports[2:], strict=True)
        )
        listed = list[tuple[int, int, int, list[Port]]]()
        places = zip(rows.place_at_source.tolist(), self.at_target, strict=True)
        for row, (at_source, at_target) in enumerate(places):
            source, target = self.source[row], self.target[row]
            if target == NONE:
                ports = [*self.sends[source], *self.receives[source]]
                listed.append((source, at_source, row, ports))
                continue
            if source != NONE and (port := self.send_port[row]) is not None:
                listed.append((source, at_source, row, [port]))
            if at_target != NONE and (port := self.receive_port[row]) is not None:
                listed.append((target, at_target, row, [port]))
        for _, _, row, ports in sorted(listed, key=lambda entry: entry[:3]):
            for port in ports:
                port.queue.append(row)

    def play(self) -> Played:
        """Simulate until all rows are complete, or none can go on."""
        ranks = range(len(self.sends))
        for rank in ranks:
            if self.rules.one_processor:
                self._plan_processor(rank)
            else:
                self.stack.append(rank)
        while True:
            if self.stack:
                self._go_on(self.stack.pop())
            elif self.heap:
                self._handle(*heappop(self.heap))
            else:  # all ranks wait: now a combine may overtake earlier sends
                waiting = ranks if self.rules.rendezvous else ()
                freed = list(filter(self._combine_before_sends, waiting))
                self.stack += freed
                if not freed:
                    break
        rows = range(len(self.start))
        message_ends = zip(self.source, self.target, self.at_target, strict=True)
        unanswered = [NONE not in (s, t) and at == NONE for s, t, at in message_ends]
        ends = [self.start[n] if unanswered[n] else self.received[n] for n in rows]
        columns = self.asked, self.start, self.received, self.served, self.waited, self.holder
        return Played(Columns(*(np.array(c, dtype=object) for c in columns)), NEVER in ends)

    def _end(self, row: int, time: int) -> None:
        """Complete a row at `time`, which may make waiting rows ready, or raise PastLimit."""
        self.received[row] = time
        if self.limit is not None and time > self.limit:
            raise PastLimit
        for reader in self.readers[row]:
            self.ready[reader] = max(self.ready[reader], time)
            self.missing[reader] -= 1

    def _next_combine(self, rank: int, *, sending: bool) -> int:
        """The combine next at all the rank's receive ports (if `sending`, all ports), or NONE."""
        ports = [*self.receives[rank], *(self.sends[rank] if sending else ())]
        heads = {port.head() for port in ports}
        row = heads.pop()
        return row if not heads and row != NONE and self.target[row] == NONE else NONE

    def _combine(self, rank: int) -> bool:
        row = self._next_combine(rank, sending=True)
        if row == NONE or self.missing[row]:
            return False
        ports = [*self.sends[rank], *self.receives[rank]]
        self.start[row] = max(self.ready[row], *(port.free for port in ports))
        for port in ports:
            port.advance(self.start[row] + self.gap[row])
        self._end(row, self.start[row] + self.gap[row])
        return True

    def _combine_before_sends(self, rank: int) -> bool:
        row = self._next_combine(rank, sending=False)
        if row == NONE:
            return False
        for port in self.sends[rank]:
            port.queue.remove(row)
            port.queue.insert(port.next, row)
        return self._combine(rank)

    def _request(self, port: Port | None) -> bool:
        """Request the next message at a send port if possible; return whether it started."""
        row = NONE if port is None else port.head()
        if port is None or row == NONE or port.requested or self.missing[row]:
            return False
        if self.target[row] == NONE:
            return False
        time = max(self.ready[row], port.free)
        if self.rules.rendezvous:
            at = self.receive_port[row]
            if at is None or at.head() != row:
                return False
            time = max(time, at.free)
        if self.rules.in_order_of_time:
            port.requested = True
            heappush(self.heap, (time, 1, self.source[row], self.target[row], row))
            return False
        self._serve(time, row)
        return True

    def _serve(self, time: int, row: int) -> None:
        """Start a message, and its publication's other rows, at `time`, or when all is free."""
        source, target = self.source[row], self.target[row]
        meeting = (self.partners[source], target), (self.partners[target], source)
        if self.rules.one_partner:
            time = max(time, *(partner.free_for(other) for partner, other in meeting))
        used = [n for n, (busy, _) in enumerate(self.shared) if busy[row]]
        for n in used:
            time = max(time, self.out_free[n][self.shared[n][1][source]])
        for n in used:
            self.out_free[n][self.shared[n][1][source]] = time + self.shared[n][0][row]
        self.asked[row] = time
        if self.routes is not None:
            time = self._reserve_links(time, row)
        sent = time + self.gap[row]
        if self._in_turns(row):
            self.cpu[source] = sent
        port = self.send_port[row]
        assert port is not None
        port.advance(sent)
        for partner, other in meeting if self.rules.one_partner else ():
            partner.meet(other, sent)
        while row != NONE:  # all rows of a publication
            self.start[row], self.served[row] = time, self.number
            self.number += 1
            if self.rules.rendezvous:
                self._receive(row, time + self.reach[row])
                self.stack.append(target)
            else:
                self._arrive(time + self.reach[row], len(self.shared), row)
            row = self.along[row]
        self.stack.append(source)

    def _reserve_links(self, ready: int, row: int) -> int:
        assert self.routes is not None
        begin, end = self.routes.begins[row : row + 2].tolist()
        links = self.routes.links[begin:end].tolist()
        free = {link: self.link_free[link] - self.entry[row] for link in links}
        start = max(ready, *free.values()) if free else ready
        if start > ready:
            self.waited[row] = next(link for link in links if free[link] == start)
            self.holder[row] = self.link_holder[self.waited[row]]
        for link in links:
            self.link_free[link], self.link_holder[link] = start + self.gap[row], row
        return start

    def _in_turns(self, row: int) -> bool:
        """Whether a message goes through shared memory, where a rank does one thing at a time."""
        return self.rules.in_turns and self.entry[row] > 0

    def _receive(self, row: int, time: int) -> None:
        port = self.receive_port[row]
        assert port is not None
        port.advance(time)
        self._end(row, time)

    def _arrive(self, time: int, outermost: int, row: int) -> None:
        """Pass a message on to the next shared port below index `outermost`, or to its target."""
        for level in range(outermost - 1, -1, -1):
            if self.shared[level][0][row]:
                heappush(self.heap, (time, -1 - level, self.source[row], self.target[row], row))
                return
        self.passage[row] = time
        if self.at_target[row] != NONE:
            self.stack.append(self.target[row])

    def _go_on(self, rank: int) -> None:
        """Do all combines, receives and requests of a rank that are possible now."""
        while self._combine(rank):
            pass
        for port in self.receives[rank]:
            while (row := port.head()) != NONE and NONE not in (self.source[row], self.target[row]):
                if self.rules.rendezvous:
                    self._request(self.send_port[row])
                    break
                if self.passage[row] == NEVER:
                    break
                if self._in_turns(row):
                    if not port.requested:
                        port.requested = True
                        begin = max(self.passage[row] - self.absorb[row], port.free)
                        heappush(self.heap, (begin, 2, self.source[row], rank, row))
                    break
                after = NEVER if port.free == NEVER else port.free + self.absorb[row]
                self._receive(row, max(self.passage[row], after))
                self.stack.append(rank)
        for port in self.sends[rank]:
            while self._request(port):
                pass

    def _handle(self, time: int, kind: int, source: int, target: int, row: int) -> None:
        if self.limit is not None and time > self.limit:
            raise PastLimit
        turn = self.cpu[target if kind == 2 else source] if self._in_turns(row) else 0
        if self.rules.one_processor:
            self._use_processor(time, kind, source, row)
        elif time < turn:
            heappush(self.heap, (turn, kind, source, target, row))
        elif kind == 2:
            self.cpu[target] = time + self.absorb[row]
            self._receive(row, self.cpu[target])
            self.stack.append(target)
        elif kind == 1:
            self._serve(time, row)
        else:
            busy, groups = self.shared[-1 - kind]
            last = self.last_in[-1 - kind]
            before = last.get(groups[target])
            passage = time if before is None else max(time, before + busy[row])
            last[groups[target]] = passage
            self._arrive(passage, -1 - kind, row)

    def _next_at_processor(self, rank: int) -> tuple[int, int, int] | None:
        """A rank's next event: (time, 0 for a send or 1 for a receive, row), or None."""
        candidates = []
        port = self.sends[rank][0]
        if (row := port.head()) != NONE and not self.missing[row]:
            candidates.append((max(self.cpu[rank], port.free, self.ready[row]), 0, row))
        if self.arrived[rank]:
            arrival, *_, row = self.arrived[rank][0]
            free = self.receives[rank][0].free
            candidates.append((max(arrival, self.cpu[rank], free), 1, row))
        return min(candidates, default=None)

    def _plan_processor(self, rank: int) -> None:
        if (event := self._next_at_processor(rank)) is not None:
            time, kind, row = event
            heappush(self.heap, (time, kind, rank, 0, row))

    def _use_processor(self, time: int, kind: int, rank: int, row: int) -> None:
        if self._next_at_processor(rank) != (time, kind, row):
            return  # out of date: a newer event of this rank is in the heap
        if kind == 0:
            self.start[row], self.served[row] = time, self.number
            self.number += 1
            self.cpu[rank] = time + self.entry[row]
            self.sends[rank][0].advance(time + self.gap[row])
            if self.at_target[row] != NONE:
                to = self.target[row]
                heappush(self.arrived[to], (time + self.reach[row], rank, row))
                self._plan_processor(to)
        else:
            heappop(self.arrived[rank])
            self.cpu[rank] = time + self.absorb[row]
            self.receives[rank][0].free = time + self.gap[row]
            self._end(row, self.cpu[rank])
        self._plan_processor(rank)
