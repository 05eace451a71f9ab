"""Two binary trees at full bandwidth, one for even pieces and one for odd pieces [Sanders2009].

The ranks other than the root are numbered 1 … n in the first tree, from left to right, so every odd
rank is a leaf.  The second tree is its mirror image, in which even ranks are leaves: every rank
has children in at most one tree.  Rounds have two colours, even and odd, so that no port is used
twice at once: a rank receives from its two parents in rounds of different colours, and serves its
two children in rounds of different colours.  A rank computes all of this from its number, by
following its path down both trees.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from collwise.schedule.rounds import Round, Rounds
from collwise.system.integers import Ints

Numbers: TypeAlias = Any
"""One integer, or an array of integers; functions with such an argument accept both."""


class _Place(NamedTuple):
    """Where a rank is in one of the two trees; for several ranks, each field is an array."""

    parent: Numbers
    """Number of the parent's position in the tree, 0 if the parent is the root; in the results
    of `places`, the parent's rank.
    """
    colour: Numbers
    """0 if the rank receives in even rounds, 1 if in odd ones."""
    first: Numbers
    """The round in which the rank receives the tree's first piece."""


@dataclass(frozen=True)
class TwoTrees(Rounds):
    """The rounds of a broadcast in which even pieces go down one tree, and odd pieces the other.

    Places in a tree are numbered 1 … n from left to right, so inner nodes have even numbers.
    """

    def _mirror(self, place: Numbers) -> Numbers:
        """The rank at a place of the second tree; given a rank, the same formula gives its place.

        If n = p − 1 is odd, n is its own mirror image.
        """
        even = self.ranks - 1 & -2
        return place + (even + 1 - 2 * place) * (place <= even)

    def _down(self, place: Numbers, tree: int, leaf: Numbers = 0) -> _Place:
        """Where the given places are in a tree, found by walking down from its root.

        place: a number in the tree.   tree: 0 for the first, 1 for the second.   leaf: the colour
        of a place that is a leaf.
        """
        n = self.ranks - 1
        step = 1 << n.bit_length() - 1
        at, above = place * 0 + step, place * 0
        colour, first = above + tree, above + tree
        while step > 1:
            step //= 2
            left = place < at
            below = at + step - 2 * step * left
            moves = (place != at) & (below <= n)
            chosen = colour ^ left ^ (n // 2 & 1)
            chosen = chosen + (leaf - chosen) * (step == 1)
            after = first + self.latency
            above = above + (at - above) * moves
            colour = colour + (chosen - colour) * moves
            first = first + (after + ((after ^ chosen) & 1) - first) * moves
            at = at + (below - at) * moves
        return _Place(above, colour, first)

    def _colour(self, rank: Numbers) -> Numbers:
        """The parity of the rounds in which ranks receive in the first tree: 0 for even, 1 for odd.

        In the second tree each rank has the other parity.
        """
        n = self.ranks - 1
        even = n & -2
        # If n is odd, rank n alone has no children in either tree: it takes the colours that its
        # siblings do not have.
        last = (rank == n) * (n > even > 0)
        beside = rank + (even - (even & -even) // 2 - rank) * last
        inner = beside + (self._mirror(beside) - beside) * (beside & 1)
        return self._down(inner, 0).colour ^ last

    def places(self, rank: Numbers) -> tuple[_Place, _Place]:
        """Where ranks other than the root are in both trees.

        In the results `parent` is a rank, not a place.
        """
        colour = self._colour(rank)
        first = self._down(rank, 0, colour)
        second = self._down(self._mirror(rank), 1, 1 - colour)
        return first, second._replace(parent=self._mirror(second.parent) * (second.parent > 0))

    def _children(self, rank: int, own: tuple[_Place, ...]) -> list[tuple[int, int, int]]:
        """The children of a rank, each as (rank, tree, round in which it receives the first piece).

        own: where the rank is in both trees; empty for the root.
        """
        n, tree = self.ranks - 1, rank & 1
        if not rank:
            top = 1 << n.bit_length() - 1
            return [(top, 0, 0), (self._mirror(top), 1, 1)]
        place = self._mirror(rank) if tree else rank
        if place & 1:
            return []
        reach = place & -place
        children, right = [place - reach // 2], min(reach - 1, n - place)
        if right:
            children.append(place + (1 << right.bit_length() - 1))
        if tree:
            children = [self._mirror(child) for child in children]
        after = own[tree].first + self.latency
        colours = tree ^ self._colour(children[0]), tree ^ 1 ^ self._colour(children[0])
        return [
            (child, tree, after + ((after ^ colour) & 1))
            for child, colour in zip(children, colours, strict=False)
        ]

    @cached_property
    def _all(self) -> tuple[_Place, _Place]:
        return self.places(np.arange(1, self.ranks))

    @cached_property
    def later(self) -> int:
        """An upper bound on the rounds from the first to the last send of the last piece."""
        if self.ranks == 1:
            return 0
        return max(int(place.first.max()) - tree for tree, place in enumerate(self._all))

    def of(self, rank: int) -> Iterator[Round]:  # noqa: D102
        if self.ranks == 1:
            return
        sent: dict[int, tuple[int, int]] = {}
        got: dict[int, tuple[int, int]] = {}
        own = self.places(rank) if rank else ()
        incoming = [(place.parent, tree, place.first) for tree, place in enumerate(own)]
        for messages, ends in ((sent, self._children(rank, own)), (got, incoming)):
            for peer, tree, first in ends:
                for piece in range(tree, self.count, 2):
                    messages[first + piece - tree] = peer, piece
        for number in range(max((*sent, *got), default=-1) + 1):
            yield Round(*sent.get(number, (0, None)), *got.get(number, (0, None)))

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        if self.ranks == 1 or not self.count:
            return []
        ranks, rounds = np.arange(1, self.ranks), []
        for number in range(self.count + self.later):
            parts = []
            for tree, place in enumerate(self._all):
                piece = number - place.first + tree
                gets = (piece >= tree) & ((piece - tree) % 2 == 0) & (piece < self.count)
                parts.append((place.parent[gets], ranks[gets], piece[gets]))
            source, target, sent = map(np.concatenate, zip(*parts, strict=True))
            rounds.append((source, target, sent))
        return rounds
