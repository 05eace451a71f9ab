"""Programs for parts of one vector side by side: while messages of one travel, others are sent.

All ranks are played: a free port takes what is ready of the first part.  What is received and
combined stands in every list when it is there, so later parts' sends do not wait for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from collwise.model.placement import Placement
from collwise.schedule.dependencies import dependencies, hazards_of, matching, overwritten
from collwise.schedule.operations import Operation, Recv, Send
from collwise.schedule.program import Program


@dataclass(frozen=True)
class SideBySide(Program):
    """Each part works on bytes of its own.

    latencies: by level, how many bytes a rank could send while a message travels.
    """

    parts: tuple[Program, ...]
    placement: Placement
    latencies: tuple[int, ...]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return self._lists[rank]

    @cached_property
    def _lists(self) -> list[list[Operation]]:
        ranks = range(self.placement.ranks)
        lists = [[part.operations(rank) for rank in ranks] for part in self.parts]
        players = [_Player([own[rank] for own in lists]) for rank in ranks]
        targets = [matching(own) for own in lists]
        events: list[tuple[int, int, int, int, int, int]] = []  # time, then what, where
        busy, heard = [0] * len(ranks), [0] * len(ranks)

        def serve(rank: int, now: int) -> None:
            """Start the send that comes first, if the port is free."""
            if busy[rank] > now or (found := players[rank].next_send()) is None:
                return
            part, step, op = found
            nbytes = max(sum(block.length for block in op.blocks), 1)
            busy[rank] = now + nbytes
            target, place = targets[part][rank, step]
            level = self.placement.meeting(rank, target)
            there = busy[rank] + self.latencies[level - 1]
            heappush(events, (there, 0, target, part, place, nbytes))
            heappush(events, (busy[rank], 2, rank, 0, 0, 0))

        for rank in ranks:
            serve(rank, 0)
        while events:
            now, what, rank, part, place, nbytes = heappop(events)
            if not what:  # at the port, which takes one after another
                heard[rank] = max(now, heard[rank] + nbytes)
                heappush(events, (heard[rank], 1, rank, part, place, 0))
            elif what == 1:
                players[rank].done(part, place)
            serve(rank, now)
        return [player.order for player in players]


class _Player:
    """What one rank has done of all parts.  Sends of a part keep their order, as do receives."""

    def __init__(self, lists: Sequence[Sequence[Operation]]) -> None:
        self.lists, self.order = lists, list[Operation]()
        self.finished = [[False] * len(operations) for operations in lists]
        self.waits = [
            [
                {*a, *b, *c}
                for a, b, c in zip(dependencies(x), overwritten(x), hazards_of(x), strict=True)
            ]
            for x in lists
        ]
        self.sends = [[at for at, op in enumerate(x) if isinstance(op, Send)][::-1] for x in lists]
        self.local = [
            [at for at, op in enumerate(x) if not isinstance(op, Send | Recv)] for x in lists
        ]
        for part in range(len(lists)):
            self.done(part, self._local(part))

    def _ready(self, part: int, place: int) -> bool:
        return all(self.finished[part][at] for at in self.waits[part][place])

    def next_send(self) -> tuple[int, int, Send] | None:
        """The first part's that can be sent, by its part and place."""
        for part, sends in enumerate(self.sends):
            if sends and self._ready(part, sends[-1]):
                place = sends.pop()
                op = self.lists[part][place]
                assert isinstance(op, Send)
                self.done(part, place)
                return part, place, op
        return None

    def done(self, part: int, place: int | None) -> None:
        """Note an operation, and what can be combined or copied now."""
        while place is not None:
            self.finished[part][place] = True
            self.order.append(self.lists[part][place])
            place = self._local(part)

    def _local(self, part: int) -> int | None:
        """What can be combined or copied next."""
        for place in self.local[part]:
            if self._ready(part, place):
                self.local[part].remove(place)
                return place
        return None
