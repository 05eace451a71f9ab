"""What to time on a machine with levels, and on which ranks.

t0 and λ of a level: the usual experiments (`probes`) in a team of ranks that all meet at it.  In
them a sender waits for the port of its group, too, so they tell the longer one of t0 and g.

g, for how long a message keeps the port of its group busy: q ranks of one group send k messages
each to q ranks of another; the time grows by max(t0, q·g) with every k.  Where g is longer than
t0, t0 is by how much a message to another group delays one to a neighbour, who answers.

A read, where ranks share memory: q ranks publish k messages each, which rank 0 reads; the time
grows by q reads with every k, or by t0, if that is longer.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from collwise.measure.probes import AnyProbe, ProbeSetting
from collwise.model.placement import Placement
from collwise.schedule.operations import Block, Operation, Recv, Send, Slot

MAX_SENDERS = 8
"""The largest number of ranks of a group that send at once when its port is measured."""
PORT, BESIDE, READ = 3, 4, 5
"""The numbers of these experiments; 1 and 2 are those for t0 and λ."""
_WORD = (Block(0, 0, 1),)


class PortTeam(NamedTuple):
    """Who measures the port of a group: some of its ranks, and as many of another group.

    neighbour: the rank nearest to the first sender.
    """

    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    neighbour: int

    @property
    def members(self) -> tuple[int, ...]:
        """All ranks of the team, in the order in which probes number them from 0."""
        others = self.senders + self.receivers
        return others if self.neighbour in others else (*others, self.neighbour)


@dataclass(frozen=True)
class PortProbe(AnyProbe):
    """Ranks 0 … q − 1 send k messages each to the ranks q … 2q − 1; rank 0 hears when all came.

    Rank 0 tells the others to begin by messages of a byte; those that have received tell rank q,
    which answers.
    """

    nbytes: int
    senders: int
    k: int

    @property
    def cell(self) -> ProbeSetting:
        """The probe's setting; k is the number of messages from every sender."""
        return ProbeSetting(PORT, self.nbytes, self.k, False)

    @property
    def ranks(self) -> int:
        """How many ranks the probe needs: senders and receivers."""
        return 2 * self.senders

    def operations(self, rank: int) -> list[Operation]:
        """What one rank does, in order."""
        q, block = self.senders, (Block(0, 0, self.nbytes),)
        if rank >= 2 * q:
            return []
        if rank >= q:
            receipts: list[Operation] = [Recv(rank - q, block)] * self.k
            reports: list[Operation] = [Recv(q + i, _WORD) for i in range(1, q) if rank == q]
            return [*receipts, *reports, Send(0 if rank == q else q, _WORD)]
        mine: list[Operation] = [Send(q + rank, block, Slot.OUTPUT if rank else Slot.INPUT)]
        if rank:
            return [Recv(0, _WORD), *mine * self.k]
        begin: list[Operation] = [Send(other, _WORD, Slot.INPUT) for other in range(1, q)]
        return [*begin, *mine * self.k, Recv(q, _WORD)]


@dataclass(frozen=True)
class BesideProbe(AnyProbe):
    """Rank 0 sends a byte to a neighbour, who answers; with k = 2 after a message to another group.

    The difference is how long that message keeps rank 0 itself busy.
    """

    nbytes: int
    neighbour: int
    other: int
    k: int
    until_sent: ClassVar[bool] = False

    @property
    def cell(self) -> ProbeSetting:
        """The probe's setting, the same whichever ranks take part."""
        return ProbeSetting(BESIDE, self.nbytes, self.k, False)

    @property
    def ranks(self) -> int:
        """How many ranks the probe needs: up to the last of the three that take part."""
        return max(self.neighbour, self.other) + 1

    def operations(self, rank: int) -> list[Operation]:
        """What one rank does, in order."""
        block = (Block(0, 0, self.nbytes),)
        if rank == 0:
            sent = [Send(self.other, block, Slot.INPUT)] * (self.k - 1)
            return [*sent, Send(self.neighbour, _WORD, Slot.INPUT), Recv(self.neighbour, _WORD)]
        if rank == self.neighbour:
            return [Recv(0, _WORD), Send(0, _WORD)]
        return [Recv(0, block)] * (self.k - 1) if rank == self.other else []


@dataclass(frozen=True)
class ReadProbe(AnyProbe):
    """Rank 0 tells the ranks 1 … q, and reads k messages that each of them sends then."""

    nbytes: int
    senders: int
    k: int

    @property
    def cell(self) -> ProbeSetting:
        """The probe's setting; k is the number of messages from every sender."""
        return ProbeSetting(READ, self.nbytes, self.k, False)

    @property
    def ranks(self) -> int:
        """How many ranks the probe needs: the senders and rank 0."""
        return self.senders + 1

    def operations(self, rank: int) -> list[Operation]:
        """What one rank does, in order."""
        block, others = (Block(0, 0, self.nbytes),), range(1, self.senders + 1)
        if rank == 0:
            begin: list[Operation] = [Send(other, _WORD, Slot.INPUT) for other in others]
            return [*begin, *(Recv(other, block) for _ in range(self.k) for other in others)]
        return [Recv(0, _WORD), *[Send(0, block, Slot.INPUT)] * self.k] if rank in others else []


def level_team(placement: Placement, level: int) -> tuple[int, ...]:
    """Ranks of which any two meet at a level: the largest such team, of equal ones the first.

    One rank where no two meet there.
    """
    return max((_parts(placement, level, ranks) for ranks in placement.members[level - 1]), key=len)


def port_team(placement: Placement, level: int) -> PortTeam | None:
    """Ranks to measure the port of a level's groups; None where no two can send at once.

    Every sender is in another group of the level below, whose port it has for itself.
    """
    by_group: dict[int, list[tuple[int, ...]]] = {}
    for ranks in placement.members[level - 1]:
        around = placement.group(level + 1, ranks[0])
        by_group.setdefault(around, []).append(_parts(placement, level, ranks))
    pairs = [sorted(own, key=len, reverse=True)[:2] for own in by_group.values() if len(own) > 1]
    best = max(pairs, key=lambda pair: len(pair[1]), default=[(), ()])
    size = min(len(best[1]), MAX_SENDERS)
    if size < 2:
        return None
    first = best[0][0]
    others = (rank for rank in range(placement.ranks) if rank != first)
    neighbour = min(others, key=lambda rank: placement.meeting(first, rank))
    return PortTeam(best[0][:size], best[1][:size], neighbour)


def _parts(placement: Placement, level: int, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Of the ranks of a group, the first in each group of the level below."""
    first: dict[int, int] = {}
    for rank in ranks:
        first.setdefault(placement.group(level - 1, rank) if level > 1 else rank, rank)
    return tuple(first.values())
