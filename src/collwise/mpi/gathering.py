"""Everybody's data, whole contributions, to everybody: into one receive buffer in pieces.

A rank sends its own contribution from its send buffer, and copies it into place while messages are
on their way.  What others gave goes out of the receive buffer: nothing is packed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mpi4py import MPI

from collwise.errors import InvalidArgument
from collwise.mpi.buffers import Buffer
from collwise.mpi.channel import Channel
from collwise.mpi.memory import Memory, Unit
from collwise.mpi.operands import for_ranks, is_in_place
from collwise.mpi.persistent import Persistent
from collwise.mpi.pieces import Pieces, Placing
from collwise.mpi.route import Route, route
from collwise.mpi.workspace import Workspace
from collwise.schedule.operations import Copy, Operation, Send, Slot
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule


class Gathering:
    """One rank's part of a schedule that gathers, whatever the buffers.

    own: this rank's contribution, None if it has none.   lengths: bytes by rank.
    """

    def __init__(self, schedule: Schedule, channel: Channel) -> None:
        self.problem: Problem = for_ranks(schedule, channel)
        self.channel, self.rank = channel, channel.rank
        self._operations = schedule.rank(channel.rank)
        given = {block.owner: block for block in self.problem.gathered}
        self.own = given.get(channel.rank)
        self.lengths = tuple(
            given[rank].length if rank in given else 0 for rank in range(channel.size)
        )
        self._ways: dict[bool, Route] = {}
        self._placing = Placing(channel.size)

    def way(self, in_place: bool) -> Route:
        """The route where this rank's own contribution is in its place, or has yet to get there."""
        if in_place not in self._ways:
            apart = not in_place and self.own is not None
            operations = tuple(self._apart()) if apart else self._operations
            self._ways[in_place] = route(operations)
        return self._ways[in_place]

    def _apart(self) -> Iterator[Operation]:
        assert self.own is not None
        own = (self.own,)
        yield Copy(Slot.INPUT, Slot.OUTPUT, own)
        for op in self._operations:
            yield op._replace(slot=Slot.INPUT) if isinstance(op, Send) and op.blocks == own else op

    def place(self, recvbuf: Any) -> Pieces:
        """Where the pieces of a buffer are, which must have the schedule's bytes."""
        pieces = self._placing.place(recvbuf)
        if pieces.places.lengths != self.lengths:
            rank, theirs, ours = next(
                (rank, seen, planned)
                for rank, (seen, planned) in enumerate(
                    zip(pieces.places.lengths, self.lengths, strict=True)
                )
                if seen != planned
            )
            raise InvalidArgument(
                f"a schedule for {ours} bytes from rank {rank}",
                f"the receive buffer of rank {self.rank} has {theirs} for it",
                "plan for the counts that all ranks pass, or correct counts and type",
            )
        return pieces

    def given(self, sendbuf: Any) -> Buffer:
        """The contribution of this rank, which must have the schedule's bytes."""
        buffer = Buffer(sendbuf, writable=False)
        if buffer.nbytes != self.lengths[self.rank]:
            raise InvalidArgument(
                f"{self.lengths[self.rank]} bytes from rank {self.rank}, as the counts say",
                f"its send buffer has {buffer.nbytes}",
                "correct the count of the send buffer, or the counts of the receive buffer",
            )
        return buffer

    def work(
        self,
        given: Memory | None,
        pieces: Pieces,
        tag: int,
        *,
        keep: Any = None,
        types: Sequence[MPI.Datatype] = (),
    ) -> Workspace:
        """What the list works on; nothing is given where it is in its place.

        keep, types: as `Workspace`; the pieces keep what they belong to.
        """
        slots: dict[int, Memory] = {Slot.OUTPUT: pieces.memory}
        if given is not None:
            slots[Slot.INPUT] = given
        way, keep = self.way(given is None), [keep, pieces.keep]
        return Workspace(way.operations, slots, self.channel.comm, tag, keep=keep, types=types)


def compiled(gathering: Gathering, sendbuf: Any, recvbuf: Any) -> Persistent:
    """A persistent request on these buffers."""
    pieces = gathering.place(recvbuf)
    given = None if is_in_place(sendbuf) else gathering.given(sendbuf)
    types: list[MPI.Datatype] = []  # the user may free theirs
    if given is not None and not (given.unit.plain and pieces.unit.plain):
        types = [unit.datatype.Dup() for unit in (given.unit, pieces.unit)]
        given.unit, unit = map(Unit.of, types)
        pieces = pieces._replace(unit=unit)
    channel = gathering.channel
    tag = channel.take_tag()
    memory = None if given is None else given.elements
    work = gathering.work(memory, pieces, tag, keep=given, types=types)
    return Persistent(channel, gathering.way(given is None), work, tag)
