"""Pieces of a vector side by side: while messages of one piece travel, ranks send those of others.

Every piece has a program of its own, whose sends stay in order.  Of the sends that are ready, a
rank chooses the one with the longest latency; of several, the one with the longest latency among
the sends that wait for it; then the one of the earliest piece.  All pieces are simulated in
rounds to find out which sends are ready when.  In each round a rank sends at most one message and
receives at most one; a message's latency says how many rounds later it arrives.

Without a placement all ranks' lists have one pattern of sends and receives; so only rank 0 is
simulated, and its order holds for all.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from collwise.model.placement import Placement
from collwise.schedule.combinators import Task, on_ranks
from collwise.schedule.dependencies import awaited_receives, dependencies, matching
from collwise.schedule.operations import Combine, Operation, Recv, Send
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.reduction import equal_parts
from collwise.schedule.rows import Class

_Place: TypeAlias = tuple[int, int]
"""An operation: (number of a piece, position in its list), or (rank, position in its list)."""


class _Arrival(NamedTuple):
    """A message on its way: it arrives in round `when`, and was sent in round `sent`.

    piece, step: the matching receive is at position `step` in the list of piece number `piece`.
    """

    when: int
    sent: int
    piece: int
    step: int


class _Pattern:
    """One piece's operation lists: those of all ranks, or without a placement only rank 0's.

    awaited: awaited[rank][step] = n if the operation waits for the first n receives of its rank.
    receivers: maps a send, as (rank, step), to the receive that gets its message.   latency: maps a
    send to its message's latency in rounds.   turn: maps a send to a sort key; of the sends that
    are ready, the one with the least key goes first.
    """

    def __init__(
        self, program: Program, placement: Placement | None, latencies: Sequence[int]
    ) -> None:
        self.lists = [
            program.operations(rank) for rank in range(placement.ranks if placement else 1)
        ]
        self.awaited = [awaited_receives(own, dependencies(own)) for own in self.lists]
        if placement is None:
            latest, first = 0, self.awaited[0]
            for step, op in enumerate(self.lists[0]):  # other ranks' combines may wait for more
                if isinstance(op, Combine):
                    latest = first[step] = max(latest, first[step])
            steps = [
                [(0, step) for step, op in enumerate(self.lists[0]) if isinstance(op, kind)]
                for kind in (Send, Recv)
            ]
            self.receivers = dict(zip(*steps, strict=True))
        else:
            self.receivers = matching(self.lists)
        self.latency = {
            (rank, step): latencies[placement.meeting(rank, target) - 1 if placement else 0]
            for (rank, step), (target, _) in self.receivers.items()
        }
        longest = self._longest_that_waits()
        self.turn = {send: (-self.latency[send], -longest[send]) for send in self.latency}

    def _longest_that_waits(self) -> dict[_Place, int]:
        """For every send: the longest latency among the sends that have to wait for it, or 0."""
        sends = [
            [step for step, op in enumerate(own) if isinstance(op, Send)] for own in self.lists
        ]
        needs = [  # number of receives that this send or an earlier one waits for
            list(accumulate((awaited[step] for step in steps), max))
            for steps, awaited in zip(sends, self.awaited, strict=True)
        ]
        waiting = dict[_Place, list[_Place]]()
        for rank, steps in enumerate(sends):
            for place, step in enumerate(steps):
                target, received = self.receivers[rank, step]
                answer = bisect_left(needs[target], self.awaited[target][received])
                waiting[rank, step] = [(rank, after) for after in steps[place + 1 : place + 2]]
                waiting[rank, step] += [(target, at) for at in sends[target][answer : answer + 1]]
        longest = dict[_Place, int]()
        for send in TopologicalSorter(waiting).static_order():
            others = waiting[send]
            longest[send] = max((max(self.latency[o], longest[o]) for o in others), default=0)
        return longest


class _Progress:
    """How far one rank has come in the list of one piece, in the simulation."""

    def __init__(self, operations: Sequence[Operation], awaited: Sequence[int]) -> None:
        self._awaited = awaited
        self._unsent, self._receives, self._local = deque[int](), deque[int](), deque[int]()
        for step, op in enumerate(operations):
            by_kind = self._receives if isinstance(op, Recv) else self._local
            (self._unsent if isinstance(op, Send) else by_kind).append(step)
        self._arrived = set[int]()
        self._in_a_row = 0

    @property
    def next_send(self) -> int | None:
        """The position of the next send; None if the send waits for a receive, or none is left."""
        if not self._unsent or self._awaited[self._unsent[0]] > self._in_a_row:
            return None
        return self._unsent[0]

    def send(self) -> list[int]:
        """Do the next send.

        Returns the positions of the combines and copies that are done before it, then its own.
        """
        step = self._unsent.popleft()
        return [*self._local_before(step), step]

    def receive(self, step: int) -> list[int]:
        """Complete the receive at position `step`.

        Returns its position, then those of the combines and copies that can be done now.
        """
        self._arrived.add(step)
        while self._receives and self._receives[0] in self._arrived:
            self._receives.popleft()
            self._in_a_row += 1
        until = self._unsent[0] if self._unsent else len(self._awaited)
        return [step, *self._local_before(until)]

    def _local_before(self, step: int) -> list[int]:
        done, later = list[int](), deque[int]()
        for at in self._local:
            ready = at < step and self._awaited[at] <= self._in_a_row
            (done if ready else later).append(at)
        self._local = later
        return done


def tasks_of_pieces(
    problem: Problem, count: int, program: Callable[[Problem], Program]
) -> tuple[Task, ...]:
    """The tasks for `count` nearly equal pieces of the vector; those of one length share a program.

    program: returns the program for the problem of one piece.
    """
    parts = [part for (part,) in equal_parts(problem.whole, count, problem.itemsize)]
    programs = {n: program(replace(problem, nbytes=n)) for n in {part.length for part in parts}}
    return tuple(Task(programs[part.length], part.offset) for part in parts)


@dataclass(frozen=True)
class Interleaved(Program):
    """The programs of all pieces, interleaved: while messages of one travel, others' leave.

    placement: the groups of the virtual ranks.   latencies: the latency of a message at
    each level, in whole rounds, the innermost level first.
    Without a placement there is one latency, and every rank's list has the same kinds of operations
    in the same order as rank 0's.  Then each rank's k-th send of a piece is some rank's k-th
    receive.
    """

    pieces: tuple[Task, ...]
    latencies: tuple[int, ...]
    placement: Placement | None = None

    @property
    def needs_posted_receives(self) -> bool:  # type: ignore[override]
        """True with a placement: a rank may send before it receives what was sent to it earlier."""
        return self.placement is not None

    def classes(self) -> list[Class] | None:  # noqa: D102
        known = [piece.program.classes() for piece in self.pieces]
        return known[0] if self.placement is None and all(known) else None

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        programs = {id(own): own for own, _ in self.pieces}
        known = {key: own.operations(rank) for key, own in programs.items()}
        lists = [on_ranks(known[id(own)], None, offset) for own, offset in self.pieces]
        return [lists[piece][step] for piece, step in self._orders[rank if self.placement else 0]]

    @cached_property
    def _orders(self) -> list[list[_Place]]:
        """For each rank (without a placement only rank 0), its (piece, position) list in order."""
        known = dict[int, _Pattern]()
        if self.placement is None:
            known = dict.fromkeys(
                (id(piece.program) for piece in self.pieces),
                _Pattern(self.pieces[0].program, None, self.latencies),
            )
        for program, _ in self.pieces:
            if id(program) not in known:
                known[id(program)] = _Pattern(program, self.placement, self.latencies)
        patterns = [known[id(piece.program)] for piece in self.pieces]
        ranks = range(len(patterns[0].lists))
        progress = [
            [_Progress(pattern.lists[rank], pattern.awaited[rank]) for rank in ranks]
            for pattern in patterns
        ]
        coming: list[list[_Arrival]] = [[] for _ in ranks]
        orders: list[list[_Place]] = [[] for _ in ranks]
        now, acted = 0, True
        while acted or any(coming):
            if not acted:  # no rank can go on before the next message arrives
                now = max(now, min(arrivals[0].when for arrivals in coming if arrivals))
            acted = False
            for rank, arrivals in enumerate(coming):
                if arrivals and arrivals[0].when <= now:
                    _, _, piece, step = heappop(arrivals)
                    orders[rank] += [(piece, at) for at in progress[piece][rank].receive(step)]
                    acted = True
            for rank in ranks:
                ready = [
                    (patterns[piece].turn[rank, send], piece, send)
                    for piece, of_ranks in enumerate(progress)
                    if (send := of_ranks[rank].next_send) is not None
                ]
                if not ready:
                    continue
                _, piece, step = min(ready)
                orders[rank] += [(piece, at) for at in progress[piece][rank].send()]
                target, received = patterns[piece].receivers[rank, step]
                there = now + patterns[piece].latency[rank, step]
                heappush(coming[target], _Arrival(there, now, piece, received))
                acted = True
            now += 1
        return orders
