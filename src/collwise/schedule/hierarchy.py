"""Teams on a machine with levels: the ranks of a node, the leaders of a rack's nodes, and so on.

Ranks are virtual here, so the root is 0.  The first rank of every group leads it.  A *team* of
level 1 is the ranks of a node.  A team of level ℓ > 1 is the leaders of the groups of level ℓ − 1
that lie in one group of level ℓ.  A program for a machine with levels is made of programs for
teams: in a broadcast, one across the leaders, then one inside each group.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from collwise.errors import NothingApplies
from collwise.model.placement import Placement
from collwise.schedule.problem import Problem
from collwise.schedule.rows import Class
from collwise.schedule.trees import Edges, Family, Tree
from collwise.system.integers import Ints


class Seat(NamedTuple):
    """A rank's team, as ascending virtual ranks, and the rank's index in the team (`place`)."""

    team: tuple[int, ...]
    place: int


class Teams:
    """Disjoint teams of ranks; team number n is the tuple teams[n], built on first use.

    members: the ranks of all teams, team by team.   begins: where each team begins in `members`.
    sizes: number of ranks in each team.   places: every rank's index in its team, −1 without team.
    """

    def __init__(self, ranks: Ints, groups: Ints) -> None:
        """Teams of the given ranks.

        ranks: the ranks that have a team, in order.   groups: the team number of every rank.
        """
        team = groups[ranks]
        self.members = ranks[np.argsort(team, kind="stable")]
        self.sizes = np.bincount(team)
        self.begins = np.cumsum(self.sizes) - self.sizes
        self._team, self.places = np.full((2, len(groups)), -1, dtype=np.int64)
        self._team[ranks] = team
        self.places[self.members] = np.arange(len(ranks)) - np.repeat(self.begins, self.sizes)
        self._made: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self.begins)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> tuple[int, ...]:
        if number not in self._made:
            begin = self.begins[number]
            self._made[number] = tuple(self.members[begin : begin + self.sizes[number]].tolist())
        return self._made[number]

    def number(self, rank: int) -> int:
        """The number of a rank's team, −1 if the rank is in no team."""
        return int(self._team[rank])

    def place(self, rank: int) -> int:
        """A rank's index in its team, −1 if the rank is in no team."""
        return int(self.places[rank])

    def leader(self, number: int) -> int:
        """The first rank of a team."""
        return int(self.members[self.begins[number]])

    def by_size(self) -> Iterator[tuple[int, Ints]]:
        """Yield every size of team, with a table that has one team of this size per row."""
        for size in np.unique(self.sizes).tolist():
            begins = self.begins[self.sizes == size]
            yield size, self.members[begins[:, np.newaxis] + np.arange(size)]


class Hierarchy:
    """The teams of every level of a placement; teams[ℓ − 1] are the teams of level ℓ.

    A team of level 1 is the ranks of an innermost group.  A team of a higher level is the leaders
    of the groups directly inside one group.  Once a single leader is left, no more levels follow.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement, self.ranks = placement, placement.ranks
        self.teams: list[Teams] = []
        leaders = np.arange(placement.ranks)
        for groups in (*placement.table, np.zeros(placement.ranks, np.int64)):
            teams = Teams(leaders, groups)
            if len(leaders) > 1 or not self.teams:
                self.teams.append(teams)
            leaders = teams.members[teams.begins]

    @property
    def depth(self) -> int:
        """The number of levels that have teams."""
        return len(self.teams)

    def seat(self, level: int, rank: int) -> Seat | None:
        """A rank's team and place at a level; None if the rank leads no group one level below."""
        teams = self.teams[level - 1]
        number = teams.number(rank)
        return None if number < 0 else Seat(teams[number], teams.place(rank))

    @cached_property
    def by_seats(self) -> list[Class]:
        """Classes of ranks with the same index in teams of the same size, at the same levels.

        They hold if peers are members of a rank's teams, and teams of one level and size act alike.
        """
        alike: dict[tuple[tuple[int, int, int], ...], list[list[tuple[int, ...]]]] = {}
        first: list[int] = []
        for rank in range(self.ranks):
            all_seats = ((n, self.seat(n, rank)) for n in range(1, self.depth + 1))
            seats = [(level, seat) for level, seat in all_seats if seat is not None]
            key = tuple((level, len(seat.team), seat.place) for level, seat in seats)
            if key not in alike:
                first.append(rank)
            alike.setdefault(key, []).append([seat.team for _, seat in seats])
        classes = []
        for rank, rows in zip(first, alike.values(), strict=True):
            teams = np.array([np.concatenate(row) for row in rows], dtype=np.int64)
            classes.append(_class_of_seats(rank, teams))
        return classes

    def largest(self, level: int) -> int:
        """Size of the largest team of a level."""
        return int(self.teams[level - 1].sizes.max())

    @cached_property
    def lines_up(self) -> bool:
        """Whether every group consists of consecutive virtual ranks."""
        return self.placement.lines_up()


def _class_of_seats(representative: int, teams: Ints) -> Class:
    """The class of ranks with equal places in teams of equal sizes, one of them `representative`.

    teams: a table with a row for each rank of the class: the members of all its teams.  The first
    row is the representative's.
    """
    order = np.argsort(teams[0], kind="stable")
    seats = np.searchsorted(teams[0][order], representative)
    members = teams[:, order[seats]]

    def peers(of_first: Ints) -> Ints:
        table: Ints = teams[:, order[np.searchsorted(teams[0], of_first, sorter=order)]]
        return table

    return Class(representative, members, peers)


@lru_cache(maxsize=64)
def hierarchy(placement: Placement, root: int = 0) -> Hierarchy:
    """The teams of a placement in virtual ranks; rank `root` is virtual rank 0.  Cached."""
    return Hierarchy(placement.from_rank(root))


def hierarchy_of(problem: Problem) -> Hierarchy:
    """The teams of a problem's placement; raises NothingApplies if it has none."""
    if problem.placement is None:
        raise NothingApplies(
            f"{problem.collective} by an algorithm for levels",
            "nothing says which ranks share a node, a rack, …",
            "give a placement, or a machine with levels",
        )
    return hierarchy(problem.placement, problem.root)


@dataclass(frozen=True)
class TeamTree(Tree):
    """A tree of all ranks, made of a tree in every team; ranks serve their outermost team first.

    tree: maps (level, team size) to the tree of a team.
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
        served = np.zeros(self.size, dtype=np.int64)  # [rank]: its children at outer levels
        for level in range(self.teams.depth, 0, -1):
            for size, members in self.teams.teams[level - 1].by_size():
                edges = self.tree(level, size).edges()
                above = members[:, edges.parent]
                parent[members[:, 1:]] = above
                place[members[:, 1:]] = edges.place + served[above]
                served[members] += np.bincount(edges.parent, minlength=size)
        return Edges(parent[1:], place[1:])
