"""Cyclic trees for a latency of λ rounds: from piece to piece, one tree is shifted by one rank.

The root sends one piece per round, to the leader of the other n ranks; these ranks pass the piece
down their tree.  In a round, a rank's *row* is (rank − 1 − round) modulo n.  So a node of the tree
receives all pieces in the same row, and sends in this row and the next lower rows, one row for each
child.  No two nodes may receive in the same row, or send in the same row.  Nor may two nodes be the
same rank for one piece.  So no port is used twice at once.
k pieces take (k − 1 + λ + T_λ(p − 1)) t0 or a few t0 more; T_λ(n) t0 is the least time of a
broadcast among n ranks.  If the root sends each piece once, no schedule takes less [Karp1993].
"""

from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

import numpy as np

from collwise.model import postal
from collwise.model.limits import ARRANGED_RANKS
from collwise.schedule.rounds import Rounds
from collwise.system.integers import Ints

MAX_LATER = 6
"""How many deadlines `arrangement` tries for a piece's arrival at all ranks: the earliest possible
round, and the rounds after it."""


class Arrangement(NamedTuple):
    """A tree as arrays; entry i is about the node that receives in row i (see the module)."""

    received: Ints
    """The round by which piece 0 has arrived at the node."""
    parent: Ints
    """The rank that sends piece 0 to the node, less 1; −1 is the root."""


class _Tree(NamedTuple):
    times: list[int]
    """For each node, the round by which it has received the piece; node 0 is the leader."""
    children: list[list[int]]


def _tree(count: int, latency: int, last: int) -> _Tree | None:
    """A broadcast tree of `count` nodes, with the rounds of receipt; None if none is found.

    latency: λ in rounds.   last: the latest round in which a node may receive.
    `count` divides the sum of all rounds: modulo `count`, a node's round is (rank − 1) − row, and
    both rank − 1 and row run from 0 to count − 1.
    """
    times, children = [latency], [list[int]()]
    heap = [(2 * latency, 0)]
    while len(times) < count:
        time, node = heappop(heap)
        children[node].append(len(times))
        heappush(heap, (time + 1, node))
        heappush(heap, (time + latency, len(times)))
        times.append(time)
        children.append([])
    missing = -sum(times) % count
    while missing:  # move a node's last child, if a leaf, to a parent that serves it later
        free: dict[int, list[int]] = {}
        leaves: dict[int, list[int]] = {}
        for node, below in enumerate(children):
            free.setdefault(times[node] + len(below) + latency, []).append(node)
            if below and not children[below[-1]]:
                leaves.setdefault(times[below[-1]], []).append(node)
        moves = (
            (to - time, node, other)
            for time, parents in leaves.items()
            for to, others in free.items()
            if 0 < to - time <= missing and to <= last
            for node in parents[:2]
            for other in others[:3]
            if other not in (node, children[node][-1])
        )
        if (move := max(moves, default=None)) is None:
            return None
        later, node, other = move
        leaf = children[node].pop()
        children[other].append(leaf)
        times[leaf] += later
        missing -= later
    return _Tree(times, children)


def _rows(tree: _Tree, random: Random) -> list[int] | None:
    """The row of every node of the tree, by one random attempt; None if the attempt fails."""
    times, children = tree
    count = len(times)
    rows, used, free = [-1] * count, [0] * count, list[int]()
    inner = [node for node in range(count) if children[node]]
    inner.sort(key=lambda node: random.random())
    row, spare = count - 1, True
    while inner:
        fits = (i for i, node in enumerate(inner) if not used[(row + times[node]) % count])
        if (place := next(fits, None)) is not None:
            node = inner.pop(place)
            used[(row + times[node]) % count] = 1
            rows[node] = row
            free += range(row - len(children[node]) + 1, row)
            row -= len(children[node])
        elif spare:
            spare = False
            free.append(row)
            row -= 1
        else:
            return None
    free += [row] * spare
    leaf = dict(zip(free, (node for node in range(count) if not children[node]), strict=True))
    for row, node in leaf.items():
        used[(row + times[node]) % count] += 1
    twice = [row for row, node in leaf.items() if used[(row + times[node]) % count] > 1]
    holes = [place for place in range(count) if not used[place]]
    for _ in range(25 * count):  # swap the rows of two leaves, to fill a hole
        if not holes:
            for row, node in leaf.items():
                rows[node] = row
            return rows
        at, place = int(random.random() * len(twice)), holes[int(random.random() * len(holes))]
        row = twice[at]
        node = leaf[row]
        if used[before := (row + times[node]) % count] < 2:
            twice[at] = twice[-1]
            twice.pop()
            continue
        to = (place - times[node]) % count
        other = leaf.get(to)
        if other is None:
            continue
        left, filled = (to + times[other]) % count, (row + times[other]) % count
        leaf[row], leaf[to] = other, node
        for index, change in ((before, -1), (left, -1), (place, 1), (filled, 1)):
            used[index] += change
        holes = [hole for hole in (*holes, left) if not used[hole]]
        twice += [row] * (used[filled] > 1)
    return None


@lru_cache(maxsize=256)
def arrangement(count: int, latency: int) -> Arrangement | None:
    """A tree of `count` ranks besides the root, for `CyclicTrees`; None if none is found.

    None, too, unless 0 < count < ARRANGED_RANKS.   latency: λ in rounds.   All ranks find the same.
    """
    if not 0 < count < ARRANGED_RANKS:
        return None
    random = Random(count * 1024 + latency)  # the same seed on all ranks
    least = latency + int(postal.broadcast_time(count, latency))
    for last in range(least, least + MAX_LATER):
        if (tree := _tree(count, latency, last)) is None:
            continue
        for _ in range(min(20, 4096 // count)):
            if (rows := _rows(tree, random)) is not None:
                return _by_row(tree, rows)
    return None


def _by_row(tree: _Tree, rows: list[int]) -> Arrangement:
    count = len(rows)
    columns = Arrangement(*(np.full(count, -1, dtype=np.int64) for _ in range(2)))
    for node, row in enumerate(rows):
        columns.received[row] = tree.times[node]
        for child in tree.children[node]:
            columns.parent[rows[child]] = (row + tree.times[node]) % count
    return columns


@dataclass(frozen=True)
class CyclicTrees(Rounds):
    """The rounds of a pipelined broadcast of `count` pieces.

    All pieces use the same tree over the ranks other than the root, rotated by one rank from piece
    to piece.  The class is only for numbers of ranks and latencies for which `arrangement` finds
    such a tree.
    """

    def every(self) -> list[tuple[Ints, Ints, Ints]]:  # noqa: D102
        if self.ranks == 1 or not self.count:
            return []
        n, ranks, found = self.ranks - 1, np.arange(1, self.ranks), []
        rows = arrangement(n, self.latency)
        assert rows is not None
        for number in range(self.count + int(rows.received.max()) - self.latency):
            row = (ranks - 1 - number - self.latency) % n
            piece, parent = number + self.latency - rows.received[row], rows.parent[row]
            source = np.where(parent < 0, 0, (parent + piece) % n + 1)
            gets = (piece >= 0) & (piece < self.count)
            found.append((source[gets], ranks[gets], piece[gets]))
        return found
