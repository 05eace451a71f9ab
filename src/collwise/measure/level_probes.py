"""What to time on a machine with levels, and on which ranks.

The usual experiments (`probes`) measure t0 and λ of a level, on ranks any two of which meet at that
level: they are in one group of the level, and in different groups of the level below.  A sender
also waits for the port of its group, which each message keeps busy for a time g, so the experiments
measure the longer of t0 and g.

To measure g, q ranks of one group send k messages each to q ranks of another.  The time grows by
max(t0, q·g) when k grows by 1.  If g is longer than t0, `BesideProbe` measures t0: the time by
which a message out of the group delays a message to a neighbour, which answers.

To measure a read of shared memory, q ranks publish k messages each, and rank 0 reads them.  The
time grows by q reads, or by t0 if that is longer, when k grows by 1.

To see whether reads run side by side, rank 0 publishes k messages, each for q ranks that read it.
By the law the time grows by t0, or by a read if that is longer, whatever q is.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from collwise.measure.probes import AnyProbe
from collwise.model.placement import Placement
from collwise.schedule.operations import Block, Operation, Recv, Send, Slot, scratch

MAX_SENDERS = 8
"""The largest number of ranks of a group that send at once when its port is measured."""
_WORD = (Block(0, 0, 1),)


class PortTeam(NamedTuple):
    """The ranks that measure the port of a group: some of the group, and as many of another group.

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
    """A probe in which ranks 0 … q − 1 send k messages each to ranks q … 2q − 1, all at once.

    Rank 0 starts the other senders by messages of one byte.  Ranks that have received all of their
    messages tell rank q, which then answers rank 0.
    """

    nbytes: int
    senders: int
    k: int
    experiment: int = 3

    @property
    def ranks(self) -> int:
        """The number of ranks that the probe needs: senders and receivers."""
        return 2 * self.senders

    def operations(self, rank: int) -> list[Operation]:
        """The operations of one rank, in order."""
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
    """A probe in which rank 0 sends a byte to a neighbour, which answers.

    With k = 2, rank 0 first sends a message of nbytes to a rank of another group.  The difference
    to k = 1 is the time for which that message keeps rank 0 itself busy.
    """

    nbytes: int
    neighbour: int
    other: int
    k: int
    experiment: int = 4
    until_sent: ClassVar[bool] = False

    @property
    def ranks(self) -> int:
        """The number of ranks that the probe needs: one more than the highest rank in it."""
        return max(self.neighbour, self.other) + 1

    def operations(self, rank: int) -> list[Operation]:
        """The operations of one rank, in order."""
        block = (Block(0, 0, self.nbytes),)
        if rank == 0:
            sent = [Send(self.other, block, Slot.INPUT)] * (self.k - 1)
            return [*sent, Send(self.neighbour, _WORD, Slot.INPUT), Recv(self.neighbour, _WORD)]
        if rank == self.neighbour:
            return [Recv(0, _WORD), Send(0, _WORD)]
        return [Recv(0, block)] * (self.k - 1) if rank == self.other else []


@dataclass(frozen=True)
class ReadProbe(AnyProbe):
    """Rank 0 signals ranks 1 … q to send k messages each, and reads these messages."""

    nbytes: int
    senders: int
    k: int
    experiment: int = 5

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


@dataclass(frozen=True)
class ReadersProbe(AnyProbe):
    """Rank 0 publishes k messages, and each of ranks 1 … q reads all of them.

    The ranks tell rank 1 that they have read, and rank 1 answers rank 0.
    """

    nbytes: int
    readers: int
    k: int

    @property
    def experiment(self) -> int:  # type: ignore[override]
        """6 with one reader, 7 with several: cells of samples have no number of readers."""
        return 6 if self.readers == 1 else 7

    @property
    def ranks(self) -> int:
        """How many ranks the probe needs: the readers and rank 0."""
        return self.readers + 1

    def operations(self, rank: int) -> list[Operation]:
        """What one rank does, in order; a message has one slot for all who read it."""
        block, readers = (Block(0, 0, self.nbytes),), range(1, self.readers + 1)
        if rank == 0:
            every = [Send(one, block, scratch(n)) for n in range(self.k) for one in readers]
            return [*every, Recv(1, _WORD)]
        if rank not in readers:
            return []
        reports = [Recv(one, _WORD) for one in readers[1:] if rank == 1]
        return [*[Recv(0, block)] * self.k, *reports, Send(0 if rank == 1 else 1, _WORD)]


def level_team(placement: Placement, level: int) -> tuple[int, ...]:
    """The largest set of ranks of one group of `level`, all in different groups of the level below.

    A single rank if each group has one inner group only.  In a tie the first group counts.
    """
    return max((_parts(placement, level, ranks) for ranks in placement.members[level - 1]), key=len)


def port_team(placement: Placement, level: int) -> PortTeam | None:
    """The ranks that measure the port of a group of `level`: some of it, and as many of another.

    Those of one group are in different groups of the level below, so no two share a port of that
    level.  None unless two groups inside one outer group have at least two such ranks each.
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
    """The first rank of each group of the level below.   ranks: all ranks of a group."""
    first: dict[int, int] = {}
    for rank in ranks:
        first.setdefault(placement.group(level - 1, rank) if level > 1 else rank, rank)
    return tuple(first.values())
