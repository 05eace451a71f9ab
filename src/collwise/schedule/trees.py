"""Broadcast trees on virtual ranks 0 … n−1, rooted at 0: one rank's family, or all edges.

A `SplitTree` is the recursion of Bruck et al. [Bruck1996 §2.4]: the leader of n ranks keeps some of
them and gives the others to a new leader.  A `HeapTree` is the complete k-ary heap (a chain for
k = 1, flat for k = n − 1).  `LastFirst` is the flat tree in which the last rank is served first.
Each class gives one rank's family without building the tree, or all edges as NumPy columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.system.integers import Ints


class Family(NamedTuple):
    """A rank's parent and children in a tree."""

    parent: int
    """The parent's rank, −1 for the root."""
    place: int
    """The rank's index among its parent's children, 0 for the one served first; 0 for the root."""
    children: Sequence[int]
    """The children's ranks, in the order in which they are served."""


class Edges(NamedTuple):
    """All edges of a tree as two columns; entry v is about rank v + 1.

    parent: the parent of rank v + 1.   place: the index of rank v + 1 among its parent's children.
    """

    parent: Ints
    place: Ints


Shape: TypeAlias = Hashable
"""A key for the form of a subtree, whatever the numbers of its ranks; subtrees with equal keys take
the same time."""


class Tree(ABC):
    """A rooted tree over virtual ranks 0 … size − 1."""

    size: int

    @abstractmethod
    def family(self, rank: int) -> Family:
        """Parent, place and children of one rank, without building the tree."""

    @abstractmethod
    def edges(self) -> Edges:
        """All edges of the tree, as columns."""

    @property
    def root_shape(self) -> Shape:
        """The shape of the whole tree."""
        return 0

    def about_shapes(self) -> int:
        """An estimated upper bound on the number of distinct shapes of subtrees."""
        return self.size

    def child_shapes(self, shape: Shape) -> tuple[Shape, ...]:
        """The shapes of the subtrees of a root's children, in the order of service.

        shape: the shape of the root's tree.  In this base class, a shape is the root's rank.
        """
        assert isinstance(shape, int)
        return tuple(self.family(shape).children)


class Part(NamedTuple):
    """The ranks that one leader has to serve, the leader included.

    size: their number.   state: what else a `Rule` needs (for the λ-tree: the time that is left).
    """

    size: int
    state: int = 0


Rule: TypeAlias = Callable[[Part], tuple[Part, Part]]
"""A function that splits a part of 2 or more ranks in two: the part that its leader keeps, and the
part that a new leader gets."""


@dataclass(frozen=True)
class SplitTree(Tree):
    """The tree of a recursive broadcast: `rule` splits every part of two or more ranks.

    A part is an interval of ranks.  Its first rank leads it and gives the upper end away, so the
    subtree of any rank v is an interval [v, v + span(v)).   start: the part of all ranks.
    """

    rule: Rule
    start: Part
    _split: dict[Part, tuple[Part, Part]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of ranks."""
        return self.start.size

    def split(self, part: Part) -> tuple[Part, Part]:
        """The part that the leader keeps, and the part that it gives to a new leader; cached."""
        halves = self._split.get(part)
        if halves is None:
            halves = self._split[part] = self.rule(part)
        return halves

    def family(self, rank: int) -> Family:  # noqa: D102
        return self._descend(rank)[0]

    def span(self, rank: int) -> int:
        """Number of ranks in the subtree of `rank`, including `rank`."""
        return self._descend(rank)[1]

    def _descend(self, rank: int) -> tuple[Family, int]:
        low, part, parent, place = 0, self.start, -1, 0
        served = 0
        while low != rank:  # narrow down to the part that `rank` leads
            kept, given = self.split(part)
            if rank >= low + kept.size:
                parent, place, served = low, served, 0
                low, part = low + kept.size, given
            else:
                part, served = kept, served + 1
        span = part.size
        children = []
        while part.size > 1:
            part, _ = self.split(part)
            children.append(low + part.size)
        return Family(parent, place, children), span

    def edges(self) -> Edges:  # noqa: D102
        return self._expanded[0]

    def spans(self) -> Ints:
        """For every rank, the number of ranks in its subtree, including the rank."""
        return self._expanded[1]

    @cached_property
    def _expanded(self) -> tuple[Edges, Ints]:
        parts, kept, given = self._closure
        sizes = np.array([part.size for part in parts], dtype=np.int64)
        parent = np.full(self.size, -1, dtype=np.int64)
        place = np.zeros(self.size, dtype=np.int64)
        span = np.full(self.size, self.size, dtype=np.int64)
        # Each iteration splits all parts of 2 or more ranks.  Arrays have an entry for each
        # part: its leader, its index in `parts`, and the number of children its leader has served.
        low, index, served = (np.zeros(1, dtype=np.int64) for _ in range(3))
        while True:
            open_ = sizes[index] > 1
            if not open_.any():
                return Edges(parent[1:], place[1:]), span
            low, index, served = low[open_], index[open_], served[open_]
            leader = low + sizes[kept[index]]
            parent[leader] = low
            place[leader] = served
            span[leader] = sizes[given[index]]
            low = np.concatenate([low, leader])
            served = np.concatenate([served + 1, np.zeros_like(served)])
            index = np.concatenate([kept[index], given[index]])

    @cached_property
    def _closure(self) -> tuple[list[Part], Ints, Ints]:
        """All distinct parts, and for each the indices of the two parts into which it is split.

        The leader keeps the first of the two.  For a part of one rank, both indices are 0.
        """
        parts, index = [self.start], {self.start: 0}
        halves: list[tuple[int, int]] = []
        for part in parts:
            if part.size == 1:
                halves.append((0, 0))
                continue
            pair = self.split(part)
            for half in pair:
                if half not in index:
                    index[half] = len(parts)
                    parts.append(half)
            halves.append((index[pair[0]], index[pair[1]]))
        table = np.array(halves, dtype=np.int64)
        return parts, table[:, 0], table[:, 1]

    def about_shapes(self) -> int:  # noqa: D102
        return min(self.size, self.size.bit_length() ** 2)

    @property
    def root_shape(self) -> Shape:  # noqa: D102
        return self.start

    def child_shapes(self, shape: Shape) -> tuple[Shape, ...]:  # noqa: D102
        part = shape
        shapes: list[Shape] = []
        while isinstance(part, Part) and part.size > 1:
            part, given = self.split(part)
            shapes.append(given)
        return tuple(shapes)


def keeping(ranks: int, kept: Callable[[int], int]) -> SplitTree:
    """The tree in which the leader of n >= 2 ranks serves `kept(n)` of them, itself included.

    It gives the others to a new leader, its child.   kept: gives a number from 1 to n − 1.
    """

    def rule(part: Part) -> tuple[Part, Part]:
        keeps = kept(part.size)
        return Part(keeps), Part(part.size - keeps)

    return SplitTree(rule, Part(ranks))


@dataclass(frozen=True)
class LastFirst(Tree):
    """The flat tree: rank 0 serves all other ranks itself, the last rank first."""

    size: int

    def family(self, rank: int) -> Family:  # noqa: D102
        if rank:
            return Family(0, self.size - 1 - rank, ())
        return Family(-1, 0, range(self.size - 1, 0, -1))

    def edges(self) -> Edges:  # noqa: D102
        place = np.arange(self.size - 2, -1, -1, dtype=np.int64)
        return Edges(np.zeros_like(place), place)


@dataclass(frozen=True)
class HeapTree(Tree):
    """The complete k-ary heap: rank v serves ranks kv + 1 … kv + k, as far as they exist."""

    size: int
    k: int

    def family(self, rank: int) -> Family:  # noqa: D102
        parent, place = divmod(rank - 1, self.k) if rank else (-1, 0)
        first = self.k * rank + 1
        return Family(parent, place, range(first, max(first, min(first + self.k, self.size))))

    def edges(self) -> Edges:  # noqa: D102
        before = np.arange(self.size - 1, dtype=np.int64)
        return Edges(before // self.k, before % self.k)

    @property
    def root_shape(self) -> Shape:  # noqa: D102
        return self.size

    def child_shapes(self, shape: Shape) -> tuple[Shape, ...]:
        """The sizes of the subtrees under the root of a heap of `shape` ranks, in the order served.

        Every subtree is a complete heap, whose size determines its form: so sizes serve as shapes.
        """
        assert isinstance(shape, int)
        if self.k == 1:
            return (shape - 1,) if shape > 1 else ()
        return tuple(self._below(child, shape) for child in range(1, min(self.k + 1, shape)))

    def about_shapes(self) -> int:  # noqa: D102
        return self.size if self.k == 1 else min(self.size, self.k * self.size.bit_length() ** 2)

    def _below(self, rank: int, size: int) -> int:
        """Number of ranks in the subtree of `rank` in a heap of `size` ranks."""
        number, first, last = 0, rank, rank
        while first < size:
            number += min(last + 1, size) - first
            first, last = self.k * first + 1, self.k * (last + 1)
        return number
