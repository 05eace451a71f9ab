"""Lanes: the i-th ranks of all nodes are a team, which carries the i-th part of the bytes.

So several ranks of a node send at the same time, where one alone cannot fill the node's card.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from collwise.schedule.data_movement import pieces
from collwise.schedule.hierarchy import Hierarchy, InTeams, Teams, columns_of, moved, within
from collwise.schedule.operations import (
    Block,
    Combine,
    Copy,
    Operation,
    Recv,
    Send,
    Slot,
    scratch,
)
from collwise.schedule.program import Program
from collwise.schedule.rows import Columns


@dataclass(frozen=True)
class Lanes:
    """As many as the smallest node has ranks, as far as there are elements.

    Ranks are virtual; the root is the first of the first node.
    """

    teams: Hierarchy
    nbytes: int
    itemsize: int = 1

    @property
    def nodes(self) -> Teams:
        """The ranks of every node."""
        return self.teams.teams[0]

    @cached_property
    def parts(self) -> list[Block]:
        """The bytes of every lane."""
        items = -(-self.nbytes // (self.itemsize * int(self.nodes.sizes.min())))
        return pieces(self.nbytes, items * self.itemsize or None)

    def lane(self, number: int) -> "Lane":
        """Its ranks."""
        return Lane(self.nodes, number)


class Lane(Sequence[int]):
    """The ranks at one place of all nodes."""

    def __init__(self, nodes: Teams, number: int) -> None:
        self.nodes, self.number = nodes, number

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, node: int) -> int: ...
    @overload
    def __getitem__(self, node: slice) -> list[int]: ...
    def __getitem__(self, node: int | slice) -> int | list[int]:
        if isinstance(node, slice):
            return [self[n] for n in range(len(self))[node]]
        return self.nodes.member(node, self.number)


@dataclass(frozen=True)
class InEveryLane(Program):
    """The ranks of each lane run a program on its bytes.   program: by the bytes of the lane."""

    lanes: Lanes
    program: Callable[[int], Program]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        nodes, parts = self.lanes.nodes, self.lanes.parts
        if (number := nodes.place(rank)) >= len(parts):
            return []
        own = self.program(parts[number].length).operations(nodes.number(rank))
        return within(own, self.lanes.lane(number), parts[number].offset)

    def columns(self) -> Columns:  # noqa: D102
        nodes, made = self.lanes.nodes, list[Columns]()
        for number, part in enumerate(self.lanes.parts):
            one = columns_of(self.program(part.length), len(nodes))
            members, offset = nodes.members[nodes.begins + number], one.offset + part.offset
            ends = {"source": members[one.source], "target": members[one.target]}
            made.append(replace(one, **ends, offset=offset))
        return Columns.stack(made)


@dataclass(frozen=True)
class InTeam(Program):
    """One team runs a program, on the bytes from an offset on."""

    team: tuple[int, ...]
    program: Program
    offset: int = 0

    @cached_property
    def _places(self) -> dict[int, int]:
        return {rank: place for place, rank in enumerate(self.team)}

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        place = self._places.get(rank)
        if place is None:
            return []
        return within(self.program.operations(place), self.team, self.offset)

    def columns(self) -> Columns:  # noqa: D102
        columns = columns_of(self.program, len(self.team))
        members = np.array(self.team, dtype=np.int64)
        source, target = members[columns.source], members[columns.target]
        return replace(columns, source=source, target=target, offset=columns.offset + self.offset)


@dataclass(frozen=True)
class OfOneVector(Program):
    """An s-to-p broadcast whose contributions are the parts of one vector, one after another.

    begins: where that of each source begins.   has_all: the first rank had everything before, and
    is sent nothing.
    """

    program: Program
    begins: dict[int, int]
    has_all: bool = False

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations: list[Operation] = []
        for op in self.program.operations(rank):
            assert isinstance(op, Send | Recv)
            if self.has_all and (op.peer == 0 if isinstance(op, Send) else rank == 0):
                continue
            blocks = (Block(0, self.begins[b.owner] + b.offset, b.length) for b in op.blocks)
            operations.append(op._replace(blocks=tuple(blocks)))
        return operations

    def columns(self) -> Columns | None:  # noqa: D102
        return None if self.has_all else self.program.columns()


@dataclass(frozen=True)
class ReduceScatter(Program):
    """In every node the i-th rank combines the i-th part, which all others send to it."""

    lanes: Lanes

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        return self.with_value(rank)[0]

    def with_value(self, rank: int) -> tuple[list[Operation], int, int]:
        """The list, the slot of the rank's part in the end, and the next unused scratch."""
        seat = self.lanes.teams.seat(1, rank)
        assert seat is not None
        operations, value = self.in_node(seat.place, len(seat.team))
        return within(operations, seat.team), value, len(seat.team)

    def in_node(self, own: int, size: int) -> tuple[list[Operation], int]:
        """The list by the place in a node of so many ranks, and the slot of its part in the end."""
        parts, operations, value = self.lanes.parts, list[Operation](), int(Slot.INPUT)
        for step in range(1, size):
            to, source = (own + step) % size, (own - step) % size
            if to < len(parts):
                operations.append(Send(to, (parts[to],), Slot.INPUT))
            if own < len(parts):
                part, received = (parts[own],), scratch(step)
                operations.append(Recv(source, part, received))
                left, right, into = value, received, received
                if source < own:
                    left, right, into = received, value, scratch(0)
                operations.append(Combine(left, right, into, part))
                value = into
        return operations, value


@dataclass(frozen=True)
class InLanes(Program):
    """Reduce-scatter in the nodes, allreduce the parts across, collect in every node.

    across: None if there is one node only.
    """

    lanes: Lanes
    across: InEveryLane | None
    collect: InTeams

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        operations, value, unused = ReduceScatter(self.lanes).with_value(rank)
        seat = self.lanes.teams.seat(1, rank)
        assert seat is not None
        if self.across is not None:
            lane = self.across.operations(rank)
            operations += moved(lane, value, Slot.OUTPUT, unused)[0]
        elif seat.place < len(self.lanes.parts):
            operations.append(Copy(value, Slot.OUTPUT, (self.lanes.parts[seat.place],)))
        return operations + self.collect.operations(rank)
