"""Placements: the node, rack and site of every rank.

Level 0 is the rank itself.  A group of level 1 (a node) holds some ranks, one of level 2 (a rack)
holds some groups of level 1, and so on.  The last level is one group of all ranks.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import TypeVar

import numpy as np

from collwise.errors import InvalidArgument, shown
from collwise.model.kept_hash import KeptHash
from collwise.system.integers import Ints, checked_integer

T = TypeVar("T")

ASKED = "a placement of ranks"
MAX_RANKS = 1 << 20
"""The most ranks of a placement, which stores a number for each."""


def _checked_number(ranks: int | None) -> int:
    number = checked_integer(ranks, ASKED, "p")
    if number > MAX_RANKS:
        raise InvalidArgument(ASKED, f"{number} ranks are too many", f"give at most {MAX_RANKS}")
    return number


def _listed(values: Iterable[T], name: str) -> list[T]:
    try:
        return list(values)
    except TypeError:
        raise InvalidArgument(ASKED, f"{name} = {shown(values)}", "give a list") from None


@dataclass(frozen=True)
class Placement(KeptHash):
    """The places of ranks: for every level but the last, the number of each rank's group.

    ranks: p.   groups: these numbers by level, the innermost first, and by rank.
    Groups are numbered in the order of their first ranks, so equivalent placements are equal.
    Build a placement with `of`, `regular`, `nodes` or `of_members`.
    """

    ranks: int
    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != self.ranks for row in self.groups):
            seen = "a level does not have as many ranks"
            raise InvalidArgument(ASKED, seen, "build it with Placement.of")

    @staticmethod
    def of(*labels: Sequence[Hashable], ranks: int | None = None) -> "Placement":
        """A placement from a label for every rank, such as its node's name.

        labels: for each level, the innermost first, a sequence of labels by rank.   ranks: p,
        needed only without labels; then all ranks are one group.
        Raises InvalidArgument if labels are no sequences or differ in length, and for groups that
        overlap (two ranks of one node in different racks).

        >>> Placement.of(["a", "b", "a", "b"]).groups
        ((0, 1, 0, 1),)
        """
        listed = [_listed(row, f"level {level}") for level, row in enumerate(labels, 1)]
        number = _checked_number(len(listed[0]) if ranks is None and listed else ranks)
        rows = []
        for level, row in enumerate(listed, 1):
            if len(row) != number:
                seen = f"level {level} has {len(row)} ranks, and there are {number}"
                raise InvalidArgument(ASKED, seen, "give a group for every rank at every level")
            first: dict[Hashable, int] = {}
            try:
                rows.append(tuple(first.setdefault(label, len(first)) for label in row))
            except TypeError:
                seen = f"a label of level {level} cannot be compared"
                raise InvalidArgument(ASKED, seen, "give numbers or names") from None
        for level, (inner, outer) in enumerate(pairwise(rows), 1):
            above: dict[int, int] = {}
            for rank, (group, around) in enumerate(zip(inner, outer, strict=True)):
                if above.setdefault(group, around) != around:
                    seen = (
                        f"groups overlap: rank {rank} shares a group of level {level} with rank"
                        f" {inner.index(group)}, but not one of level {level + 1}"
                    )
                    raise InvalidArgument(ASKED, seen, "put whole groups into the groups around")
        return Placement(number, tuple(rows))

    @staticmethod
    def regular(*sizes: int, round_robin: bool = False) -> "Placement":
        """A placement in equal groups: sizes 2, 4, 16 mean 2 racks of 4 nodes of 16 ranks.

        round_robin: whether rank r is on node r modulo the number of nodes; otherwise ranks fill
        one node after another.   Raises InvalidArgument for a size that is no integer >= 1.

        >>> Placement.regular(2, 3).groups, Placement.regular(2, 3, round_robin=True).groups
        (((0, 0, 0, 1, 1, 1),), ((0, 1, 0, 1, 0, 1),))
        """
        sizes = tuple(checked_integer(n, ASKED, "a number of groups or ranks") for n in sizes)
        if len(sizes) < 2:
            return Placement.of(ranks=prod(sizes))
        _checked_number(prod(sizes))
        nodes = sizes[-1:] * prod(sizes[:-1])
        return Placement.nodes(nodes, sizes[:-2], round_robin=round_robin)

    @staticmethod
    def nodes(
        sizes: Sequence[int], around: Sequence[int] = (), *, round_robin: bool = False
    ) -> "Placement":
        """A placement on nodes, of which node i has sizes[i] ranks.

        around: numbers of groups above the nodes, the outermost level first: 2, 3 means 2 groups of
        3 groups of equally many nodes.   round_robin: whether nodes get one rank each in turn until
        they are full; otherwise ranks fill one node after another.
        Raises InvalidArgument for an empty node, and if the nodes cannot be divided equally.
        """
        sizes, around = _listed(sizes, "the nodes"), _listed(around, "the groups around")
        sizes = [checked_integer(size, ASKED, "the ranks of a node", 0) for size in sizes]
        around = [checked_integer(number, ASKED, "a number of groups") for number in around]
        if 0 in sizes:
            raise InvalidArgument(ASKED, "a node has no ranks", "leave it out")
        _checked_number(sum(sizes))
        node = np.repeat(np.arange(len(sizes)), sizes)
        if round_robin:
            first = np.cumsum(sizes) - sizes
            node = node[np.argsort(np.arange(len(node)) - first[node], kind="stable")]
        rows = [node]
        for groups in reversed(list(accumulate(around, lambda a, b: a * b))):
            if len(sizes) % groups:
                seen = f"{len(sizes)} nodes are not {groups} equal groups"
                raise InvalidArgument(ASKED, seen, "give a number that divides them")
            rows.append(node * groups // len(sizes))
        return _numbered(rows)

    @staticmethod
    def of_members(levels: Sequence[Sequence[Iterable[int]]], ranks: int) -> "Placement":
        """A placement from the list of ranks of each group.

        levels: the groups of each level but the last, the innermost level first.   ranks: p.
        Raises InvalidArgument for a level without groups, a group without ranks, a rank in two
        groups of a level or in none, and for arguments that are no lists.
        """
        rows, ranks = [], _checked_number(ranks)
        for level, given in enumerate(_listed(levels, "levels"), 1):
            groups = _listed(given, f"level {level}")
            if not groups:
                raise InvalidArgument(ASKED, f"level {level} has no members", "leave it out")
            row: list[int | None] = [None] * ranks
            for number, members in enumerate(groups):
                name = f"group {number} of level {level}"
                own = [
                    checked_integer(rank, ASKED, "a rank", 0, ranks - 1)
                    for rank in _listed(members, name)
                ]
                if not own:
                    raise InvalidArgument(ASKED, f"{name} has no members", "leave it out")
                for rank in own:
                    if row[rank] is not None:
                        seen = f"groups overlap: rank {rank} is in two of level {level}"
                        raise InvalidArgument(ASKED, seen, "put every rank into one of them")
                    row[rank] = number
            if None in row:
                seen = f"rank {row.index(None)} is in no group of level {level}"
                raise InvalidArgument(ASKED, seen, "put every rank into one of them")
            rows.append(row)
        return Placement.of(*rows, ranks=ranks)

    def part(self, ranks: Sequence[int]) -> "Placement":
        """The placement of the given ranks alone, renumbered 0, 1, … in the given order.

        Raises InvalidArgument for a rank that does not exist.
        """
        ranks = [self._rank(rank) for rank in _listed(ranks, "the ranks of a part")]
        return Placement.of(
            *([row[rank] for rank in ranks] for row in self.groups), ranks=len(ranks)
        )

    def from_rank(self, rank: int) -> "Placement":
        """The placement with ranks renumbered cyclically, so that `rank` becomes rank 0."""
        rank = self._rank(rank)
        if not rank or not self.groups:
            return self
        return _numbered([np.roll(row, -rank) for row in self.table])

    def _rank(self, rank: int) -> int:
        return checked_integer(rank, ASKED, "a rank", 0, self.ranks - 1)

    def _level(self, level: int) -> int:
        return checked_integer(level, ASKED, "a level", 1, self.depth)

    @property
    def depth(self) -> int:
        """The number of levels, the last one included."""
        return len(self.groups) + 1

    def meeting(self, one: int, other: int) -> int:
        """The innermost level at which two ranks share a group; 0 if both are the same rank."""
        one, other = self._rank(one), self._rank(other)
        if one == other:
            return 0
        rows = enumerate(self.groups, 1)
        return next((level for level, row in rows if row[one] == row[other]), self.depth)

    def meetings(self, ones: Ints, others: Ints) -> Ints:
        """For each i, the innermost level at which the ranks ones[i] != others[i] share a group."""
        levels = np.full(len(ones), self.depth, dtype=np.int64)
        for level, row in reversed(list(enumerate(self.table, 1))):
            levels[row[ones] == row[others]] = level
        return levels

    @cached_property
    def table(self) -> tuple[Ints, ...]:
        """The group numbers in `groups` as arrays, one for each level."""
        return tuple(np.array(row, dtype=np.int64) for row in self.groups)

    @cached_property
    def members(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each level, the last included, the ascending ranks of each group."""
        members = []
        for row in (*self.groups, (0,) * self.ranks):
            lists: list[list[int]] = [[] for _ in range(max(row) + 1)]
            for rank, group in enumerate(row):
                lists[group].append(rank)
            members.append(tuple(map(tuple, lists)))
        return tuple(members)

    def group(self, level: int, rank: int) -> int:
        """The number of the group of `rank` at a level >= 1."""
        level, rank = self._level(level), self._rank(rank)
        return self.groups[level - 1][rank] if level < self.depth else 0

    def sizes(self, level: int) -> list[int]:
        """How many groups of the next inner level (ranks at level 1) each group of a level has."""
        level = self._level(level)
        if self.depth == 1:
            return [self.ranks]
        leaders = np.arange(self.ranks)
        if level > 1:
            leaders = np.unique(self.table[level - 2], return_index=True)[1]
        around = self.table[level - 1][leaders] if level < self.depth else np.zeros_like(leaders)
        counts: list[int] = np.bincount(around).tolist()
        return counts

    def lines_up(self) -> bool:
        """Whether every group consists of consecutive ranks."""
        return all((np.diff(row) >= 0).all() for row in self.table)  # numbered by first ranks

    def describe(self, names: Sequence[str] = ()) -> str:
        """The placement as text: "2 racks × 4 nodes × 16 ranks", or "3 nodes × 2 to 5 ranks".

        names: words for groups at each level but the last, the innermost first; without them only
        ranks are named ("2 × 4 × 16 ranks").
        """
        return " × ".join(reversed(list(self._words(names or [""] * len(self.groups)))))

    def _words(self, names: Sequence[str]) -> Iterator[str]:
        for level, name in enumerate(("rank", *names), 1):
            least, most = min(sizes := self.sizes(level)), max(sizes)
            word = f" {name}{'s' * (most > 1)}" if name else ""
            yield (f"{least}" if least == most else f"{least} to {most}") + word


def _numbered(rows: Sequence[Ints]) -> Placement:
    """A placement from each level's group numbers; groups are renumbered by their first ranks."""
    groups = []
    for row in rows:
        first = np.zeros(row.max() + 1, np.int64)
        # Of several ranks of a group, the one written last counts: the first rank.
        first[row[::-1]] = np.arange(len(row) - 1, -1, -1)
        number = np.empty_like(first)
        number[np.argsort(first)] = np.arange(len(first))
        groups.append(tuple(number[row].tolist()))
    return Placement(len(rows[0]), tuple(groups))


def checked_placement(placement: object, asked: str) -> Placement:
    """Return `placement` if it is a Placement.

    asked: what the placement is for, in the error.   Raises InvalidArgument for anything else.
    """
    if isinstance(placement, Placement):
        return placement
    remedy = "give a collwise.Placement, such as Placement.regular makes"
    raise InvalidArgument(asked, f"placement = {shown(placement)}", remedy)


def check_placement(placement: object, ranks: int) -> None:
    """Raise InvalidArgument unless `placement` is a Placement of `ranks` ranks."""
    if (seen := checked_placement(placement, ASKED).ranks) != ranks:
        raise InvalidArgument(f"{ranks} ranks", f"the placement has {seen}", "give as many to both")
