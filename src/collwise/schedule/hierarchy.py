"""Groups within groups as teams: who speaks for a group, and programs that run inside each team.

Ranks are virtual here, so the root is 0.  The first rank of every group leads it.  A *team* of
level 1 is the ranks of a node.  A team of level ℓ > 1 is the leaders of the groups of level ℓ − 1
that lie in one group of level ℓ.  A program for a machine with levels is made of programs for
teams: one across the leaders, then one inside each group.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from collwise.errors import NothingApplies
from collwise.model.placement import Placement
from collwise.schedule.operations import Combine, Copy, Operation, Recv, Send, Slot, reads, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Columns, Program, tabulate
from collwise.schedule.trees import Edges, Family, Shape, Tree
from collwise.system.integers import Ints


class Seat(NamedTuple):
    """A rank's place in a team of virtual ranks, ascending."""

    team: tuple[int, ...]
    place: int


class Hierarchy:
    """The teams of every level; outer levels of a single group are left out."""

    def __init__(self, placement: Placement) -> None:
        self.placement, self.ranks = placement, placement.ranks
        self.teams: list[list[tuple[int, ...]]] = []
        self._seats: list[list[Seat | None]] = []
        leaders = list(range(placement.ranks))
        for level in range(1, placement.depth + 1):
            teams: dict[int, list[int]] = {}
            for rank in leaders:
                teams.setdefault(placement.group(level, rank), []).append(rank)
            seats: list[Seat | None] = [None] * placement.ranks
            for team in map(tuple, teams.values()):
                for place, rank in enumerate(team):
                    seats[rank] = Seat(team, place)
            if len(leaders) > 1 or level == 1:
                self.teams.append(list(map(tuple, teams.values())))
                self._seats.append(seats)
            leaders = [team[0] for team in teams.values()]

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.teams)

    def seat(self, level: int, rank: int) -> Seat | None:
        """A rank's seat in its team of a level, if it leads a group of the level below."""
        return self._seats[level - 1][rank]

    def by_seats(self) -> Iterator[tuple[int, Ints]]:
        """For ranks with equal seats, the first of them; and of each, as a row, all its teams."""
        alike: dict[tuple[tuple[int, int] | None, ...], list[int]] = {}
        for rank in range(self.ranks):
            seats = (row[rank] for row in self._seats)
            key = tuple(seat and (len(seat.team), seat.place) for seat in seats)
            alike.setdefault(key, []).append(rank)
        for ranks in alike.values():
            rows = [[seat.team for row in self._seats if (seat := row[rank])] for rank in ranks]
            yield ranks[0], np.array([np.concatenate(row) for row in rows], dtype=np.int64)

    def largest(self, level: int) -> int:
        """The number of members of the largest team of a level."""
        return max(map(len, self.teams[level - 1]))

    @cached_property
    def lines_up(self) -> bool:
        """Whether the ranks of every group follow one another, from the root on."""
        return self.placement.lines_up()


@lru_cache(maxsize=64)
def hierarchy(placement: Placement, root: int = 0) -> Hierarchy:
    """The teams of a placement for a root: the index that schedules of single ranks use."""
    rows = [row[root:] + row[:root] for row in placement.groups]
    return Hierarchy(Placement.of(*rows, ranks=placement.ranks))


def hierarchy_of(problem: Problem) -> Hierarchy:
    """The teams of a problem; raises NothingApplies where it has no placement."""
    if problem.placement is None:
        raise NothingApplies(
            f"{problem.collective} by an algorithm for levels",
            "nothing says which ranks share a node, a rack, …",
            "give a placement, or a machine with levels",
        )
    return hierarchy(problem.placement, problem.root)


def within(
    operations: Sequence[Operation], team: Sequence[int], offset: int = 0
) -> list[Operation]:
    """A member's operations, with the team's ranks as peers.

    offset: what to add to that of every block.
    """
    renamed: list[Operation] = []
    for op in operations:
        if offset:
            op = op._replace(blocks=tuple(b._replace(offset=b.offset + offset) for b in op.blocks))
        renamed.append(op._replace(peer=team[op.peer]) if isinstance(op, Send | Recv) else op)
    return renamed


@dataclass(frozen=True)
class InTeams(Program):
    """Every team of a level runs a program of its own size.

    program: by the number of members, for two and more.
    """

    teams: Hierarchy
    level: int
    program: Callable[[int], Program]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        seat = self.teams.seat(self.level, rank)
        if seat is None or len(seat.team) == 1:
            return []
        return within(self.program(len(seat.team)).operations(seat.place), seat.team)

    def columns(self) -> Columns:  # noqa: D102
        by_size: dict[int, list[tuple[int, ...]]] = {}
        for team in self.teams.teams[self.level - 1]:
            by_size.setdefault(len(team), []).append(team)
        parts = [tabulate([])]
        for size, teams in by_size.items():
            if size == 1:
                continue
            program = self.program(size)
            one = program.columns()
            if one is None:
                one = tabulate(program.every(size))
            members = np.array(teams, dtype=np.int64)
            source, target = (members[:, ends].ravel() for ends in (one.source, one.target))
            others = (one.place_at_source, one.place_at_target, one.offset, one.length)
            parts.append(Columns(source, target, *(np.tile(c, len(teams)) for c in others)))
        return Columns.stack(parts)


@dataclass(frozen=True)
class TeamTree(Tree):
    """A tree in every team; a leader serves the teams of outer levels first.

    tree: of a level and a number of members.
    """

    teams: Hierarchy
    tree: Callable[[int, int], Tree]

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of ranks."""
        return self.teams.ranks

    def family(self, rank: int) -> Family:  # noqa: D102
        children: list[int] = []
        parent, place = -1, 0
        for level in range(self.teams.depth, 0, -1):
            if (seat := self.teams.seat(level, rank)) is None:
                continue
            team = seat.team
            family = self.tree(level, len(team)).family(seat.place)
            if seat.place:
                parent, place = team[family.parent], family.place
                for outer in range(level + 1, self.teams.depth + 1):
                    if (above := self.teams.seat(outer, parent)) is not None:
                        shape = self.tree(outer, len(above.team))
                        place += len(shape.family(above.place).children)
            children += [team[child] for child in family.children]
        return Family(parent, place, children)

    def edges(self) -> Edges:  # noqa: D102
        parent = np.full(self.size, -1, dtype=np.int64)
        place = np.zeros(self.size, dtype=np.int64)
        served = np.zeros(self.size, dtype=np.int64)  # children at outer levels
        for level in range(self.teams.depth, 0, -1):
            by_size: dict[int, list[tuple[int, ...]]] = {}
            for team in self.teams.teams[level - 1]:
                by_size.setdefault(len(team), []).append(team)
            for size, teams in by_size.items():
                members: Ints = np.array(teams, dtype=np.int64)
                edges = self.tree(level, size).edges()
                above = members[:, edges.parent]
                parent[members[:, 1:]] = above
                place[members[:, 1:]] = edges.place + served[above]
                served[members] += np.bincount(edges.parent, minlength=size)
        return Edges(parent[1:], place[1:])

    @property
    def root_shape(self) -> Shape:  # noqa: D102
        return 0

    def child_shapes(self, shape: Shape) -> tuple[Shape, ...]:
        """A subtree is named by its root."""
        assert isinstance(shape, int)
        return tuple(self.family(shape).children)


def moved(
    operations: Sequence[Operation], value: int, result: int, unused: int
) -> tuple[list[Operation], int]:
    """A list that combines, with the input in the slot `value` and the output in `result`.

    unused: the number of the first scratch that it may use; returns the next one after it.
    What a combine would use up as its right operand, and is read again, is copied first.
    """

    def at(slot: int) -> int:
        return value if slot == Slot.INPUT else result if slot == Slot.OUTPUT else slot + unused

    most = max((max(_slots(op)) for op in operations), default=0) - Slot.SCRATCH + 1
    free = unused + max(most, 0)
    written: list[Operation] = []
    for step, op in enumerate(operations):
        match op:
            case Send() | Recv():
                written.append(op._replace(slot=at(op.slot)))
            case Copy():
                written.append(op._replace(source=at(op.source), into=at(op.into)))
            case Combine():
                right = at(op.right)
                kept = op.right < Slot.SCRATCH <= right and op.right != op.into
                if kept and any(op.right in reads(later) for later in operations[step + 1 :]):
                    written.append(Copy(right, scratch(free), op.blocks))
                    right, free = scratch(free), free + 1
                written.append(Combine(at(op.left), right, at(op.into), op.blocks))
    return written, free


def _slots(op: Operation) -> tuple[int, ...]:
    match op:
        case Send() | Recv():
            return (op.slot,)
        case Copy():
            return (op.source, op.into)
        case Combine():
            return (op.left, op.right, op.into)
