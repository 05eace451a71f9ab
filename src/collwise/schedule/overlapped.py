"""Pieces of a vector side by side: while messages of one cross a level, ranks go on with others.

Every piece has a program of its own, which keeps the order of its sends.  A rank sends what is
ready: first what travels longest, then what such messages wait for, of the earliest piece first.
What is ready when is found by playing all pieces, in rounds: a rank sends and receives one message
in each, and a message is there so many rounds later as its level says.

So ranks send before they receive what others, who do the same, have sent them earlier.  That works
if all receives are posted at once.  With ports that block ranks would wait in a circle.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import NamedTuple

from collwise.model.placement import Placement
from collwise.schedule.dependencies import awaited_receives, dependencies, matching
from collwise.schedule.hierarchy import within
from collwise.schedule.operations import Operation, Recv, Send
from collwise.schedule.program import Program


class Piece(NamedTuple):
    """A program, on the bytes of the vector from an offset on."""

    offset: int
    program: Program


class _Arrival(NamedTuple):
    """A message on its way: in which round it is there, and the receive of its piece's list."""

    when: int
    sent: int
    piece: int
    step: int


class _Member:
    """One piece's list of one rank, as far as it has been played."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.awaited = awaited_receives(operations, dependencies(operations))
        steps = range(len(operations))
        self.sends = [step for step in steps if isinstance(operations[step], Send)]
        self._unsent = deque(self.sends)
        self._receives = deque(step for step in steps if isinstance(operations[step], Recv))
        self._local = [s for s in steps if not isinstance(operations[s], Send | Recv)]
        self._arrived = set[int]()
        self._in_a_row = 0

    @property
    def next_send(self) -> int | None:
        """The next send if all receives that it waits for have been done."""
        if not self._unsent or self.awaited[self._unsent[0]] > self._in_a_row:
            return None
        return self._unsent[0]

    def first_send_after(self, receive: int) -> int | None:
        """The first one that waits for this receive; the list of receives is one in a row."""
        number = self.awaited[receive]
        return next((step for step in self.sends if self.awaited[step] >= number), None)

    def send(self) -> Iterator[Operation]:
        """The next send, after the combines and copies that it may wait for."""
        step = self._unsent.popleft()
        due = [s for s in self._local if s < step and self.awaited[s] <= self.awaited[step]]
        self._local = [local for local in self._local if local not in due]
        return (self.operations[one] for one in (*due, step))

    def receive(self, step: int) -> Operation:
        """A message that is there."""
        self._arrived.add(step)
        while self._receives and self._receives[0] in self._arrived:
            self._receives.popleft()
            self._in_a_row += 1
        return self.operations[step]

    @property
    def left(self) -> Iterator[Operation]:
        """The combines and copies after the last send."""
        return (self.operations[step] for step in self._local)


@dataclass(frozen=True)
class Overlapped(Program):
    """The programs of all pieces, played for integer latencies.

    placement: of the virtual ranks.   latencies: by level, in rounds, the innermost first.
    """

    pieces: tuple[Piece, ...]
    placement: Placement
    latencies: tuple[int, ...]

    needs_posted_receives = True

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return list(self._lists[rank])

    @cached_property
    def _lists(self) -> list[list[Operation]]:
        everyone = range(self.placement.ranks)
        members = [
            [_Member(within(program.operations(r), everyone, offset)) for r in everyone]
            for offset, program in self.pieces
        ]
        receivers = [matching([member.operations for member in piece]) for piece in members]
        awaited = [self._awaited_latencies(*row) for row in zip(members, receivers, strict=True)]
        coming: list[list[_Arrival]] = [[] for _ in everyone]
        lists: list[list[Operation]] = [[] for _ in everyone]
        now, acted = 0, True
        while acted or any(coming):
            if not acted:  # nobody can go on before the next message is there
                now = max(now, min(arrivals[0].when for arrivals in coming if arrivals))
            acted = False
            for rank, arrivals in enumerate(coming):
                if arrivals and arrivals[0].when <= now:
                    _, _, piece, place = heappop(arrivals)
                    lists[rank].append(members[piece][rank].receive(place))
                    acted = True
            for rank in everyone:
                ready = [
                    (
                        -self._latency(rank, receivers[number][rank, step][0]),
                        -awaited[number][rank, step],
                        number,
                        step,
                    )
                    for number, piece_of in enumerate(members)
                    if (step := piece_of[rank].next_send) is not None
                ]
                if not ready:
                    continue
                *_, piece, step = min(ready)
                lists[rank] += members[piece][rank].send()
                target, at_target = receivers[piece][rank, step]
                there = now + self._latency(rank, target)
                heappush(coming[target], _Arrival(there, now, piece, at_target))
                acted = True
            now += 1
        for rank in everyone:
            for row in members:
                lists[rank] += row[rank].left
        return lists

    def _latency(self, source: int, target: int) -> int:
        return self.latencies[self.placement.meeting(source, target) - 1]

    def _awaited_latencies(
        self, members: Sequence[_Member], receivers: Mapping[tuple[int, int], tuple[int, int]]
    ) -> dict[tuple[int, int], int]:
        """For every send, as (rank, step): the longest latency of those that wait for it."""
        waiting = dict[tuple[int, int], list[tuple[int, int]]]()
        for rank, member in enumerate(members):
            for step, following in zip(member.sends, [*member.sends[1:], None], strict=True):
                target, at_target = receivers[rank, step]
                answer = members[target].first_send_after(at_target)
                pair = ((rank, following), (target, answer))
                waiting[rank, step] = [(r, number) for r, number in pair if number is not None]
        longest = dict[tuple[int, int], int]()
        for send in TopologicalSorter(waiting).static_order():
            latencies = (self._latency(r, receivers[r, step][0]) for r, step in waiting[send])
            longest[send] = max([0, *latencies, *(longest[other] for other in waiting[send])])
        return longest
