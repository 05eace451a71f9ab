"""Pieces of a vector side by side: while messages of one cross a level, ranks send others.

Every piece has its own program, whose order of sends is kept.  A rank sends what is ready: first
the messages with the longest latency, then those on which such messages depend, the earliest piece
first.  A simulation of all pieces finds what is ready when: in each round a rank sends and receives
at most one message, which takes as many rounds as the latency of its level.

So ranks send before they receive what others sent earlier.  This works if all receives are posted
at once; with blocking ports, ranks would wait in a circle.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from collwise.model.placement import Placement
from collwise.schedule.combinators import on_ranks
from collwise.schedule.dependencies import awaited_receives, dependencies, matching
from collwise.schedule.operations import Operation, Recv, Send
from collwise.schedule.program import Program


class Piece(NamedTuple):
    """A program on the bytes of the vector from `offset` on."""

    offset: int
    program: Program


class _Arrival(NamedTuple):
    """A message in flight: when it arrives and was sent (rounds), its piece, its receive's step."""

    when: int
    sent: int
    piece: int
    step: int


class _Lists:
    """The lists of all ranks for one program, shared by pieces of the same length.

    awaited: for every operation, how many of the rank's receives it waits for.   receivers: for
    every send, as (rank, step), the matching receive.   latency: for every send, rounds until it
    arrives.   turn: for every send, a priority; the least is sent first.
    """

    def __init__(self, program: Program, placement: Placement, latencies: Sequence[int]) -> None:
        self.operations = program.every(placement.ranks)
        self.awaited = [awaited_receives(own, dependencies(own)) for own in self.operations]
        self.receivers = matching(self.operations)
        self.latency = {
            (rank, step): latencies[placement.meeting(rank, target) - 1]
            for (rank, step), (target, _) in self.receivers.items()
        }
        longest = self._longest_dependent_latency()
        self.turn = {send: (-self.latency[send], -longest[send]) for send in self.latency}

    def _longest_dependent_latency(self) -> dict[tuple[int, int], int]:
        """For every send, the longest latency of the sends that depend on it, in rounds."""
        sends = [
            [step for step, op in enumerate(own) if isinstance(op, Send)] for own in self.operations
        ]
        needs = [  # receives awaited by this send or one before it
            list(accumulate((awaited[step] for step in steps), max))
            for steps, awaited in zip(sends, self.awaited, strict=True)
        ]
        waiting = dict[tuple[int, int], list[tuple[int, int]]]()
        for rank, steps in enumerate(sends):
            for place, step in enumerate(steps):
                target, received = self.receivers[rank, step]
                answer = bisect_left(needs[target], self.awaited[target][received])
                waiting[rank, step] = [(rank, after) for after in steps[place + 1 : place + 2]]
                waiting[rank, step] += [(target, at) for at in sends[target][answer : answer + 1]]
        longest = dict[tuple[int, int], int]()
        for send in TopologicalSorter(waiting).static_order():
            others = waiting[send]
            longest[send] = max((max(self.latency[o], longest[o]) for o in others), default=0)
        return longest


class _Member:
    """One rank's list for one piece, and how far it has been simulated."""

    def __init__(self, lists: _Lists, rank: int, offset: int) -> None:
        self.operations = on_ranks(lists.operations[rank], range(len(lists.operations)), offset)
        self._awaited = lists.awaited[rank]
        steps = range(len(self.operations))
        self._unsent = deque(step for step in steps if isinstance(self.operations[step], Send))
        self._receives = deque(step for step in steps if isinstance(self.operations[step], Recv))
        self._local = [s for s in steps if not isinstance(self.operations[s], Send | Recv)]
        self._arrived = set[int]()
        self._received_in_order = 0

    @property
    def next_send(self) -> int | None:
        """The step of the next send; None if none is left or it waits for a receive."""
        if not self._unsent or self._awaited[self._unsent[0]] > self._received_in_order:
            return None
        return self._unsent[0]

    def send(self) -> Iterator[Operation]:
        """Take the next send; returns the combines and copies due before it, then the send."""
        step = self._unsent.popleft()
        due = [s for s in self._local if s < step and self._awaited[s] <= self._awaited[step]]
        self._local = [local for local in self._local if local not in due]
        return (self.operations[number] for number in (*due, step))

    def receive(self, step: int) -> Operation:
        """Take the message of this receive, which has arrived; returns the receive."""
        self._arrived.add(step)
        while self._receives and self._receives[0] in self._arrived:
            self._receives.popleft()
            self._received_in_order += 1
        return self.operations[step]

    @property
    def left(self) -> Iterator[Operation]:
        """The combines and copies that are left after the last send."""
        return (self.operations[step] for step in self._local)


@dataclass(frozen=True)
class Overlapped(Program):
    """The programs of all pieces, in the order of a simulation with integer latencies.

    placement: of the virtual ranks.   latencies: in rounds, by level, the innermost first.
    """

    pieces: tuple[Piece, ...]
    placement: Placement
    latencies: tuple[int, ...]

    needs_posted_receives = True

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self._all_operations[rank])

    @cached_property
    def _all_operations(self) -> list[list[Operation]]:
        everyone = range(self.placement.ranks)
        known = {
            id(program): _Lists(program, self.placement, self.latencies)
            for program in {id(piece.program): piece.program for piece in self.pieces}.values()
        }
        lists = [known[id(piece.program)] for piece in self.pieces]
        members = [
            [_Member(own, rank, piece.offset) for rank in everyone]
            for own, piece in zip(lists, self.pieces, strict=True)
        ]
        coming: list[list[_Arrival]] = [[] for _ in everyone]
        played: list[list[Operation]] = [[] for _ in everyone]
        now, acted = 0, True
        while acted or any(coming):
            if not acted:  # all ranks wait for the next message
                now = max(now, min(arrivals[0].when for arrivals in coming if arrivals))
            acted = False
            for rank, arrivals in enumerate(coming):
                if arrivals and arrivals[0].when <= now:
                    _, _, piece, place = heappop(arrivals)
                    played[rank].append(members[piece][rank].receive(place))
                    acted = True
            for rank in everyone:
                ready = [
                    (lists[number].turn[rank, step], number, step)
                    for number, piece_of in enumerate(members)
                    if (step := piece_of[rank].next_send) is not None
                ]
                if not ready:
                    continue
                _, piece, step = min(ready)
                played[rank] += members[piece][rank].send()
                target, received = lists[piece].receivers[rank, step]
                there = now + lists[piece].latency[rank, step]
                heappush(coming[target], _Arrival(there, now, piece, received))
                acted = True
            now += 1
        for rank in everyone:
            for row in members:
                played[rank] += row[rank].left
        return played
