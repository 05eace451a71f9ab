"""Rows: a schedule's messages and combines as columns, which is what timing needs.

A row is a message, or a combine on a machine where combining keeps the ports busy.  A row waits
until it is next at its ports, and for the rows that bring the bytes that it reads.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collwise.schedule.dependencies import Listed, rows_of_lists
from collwise.schedule.operations import Combine, Operation, Recv, Send
from collwise.system.integers import Ints

NONE = -1
"""Stands for no rank, no place or no row in a column."""
LARGEST = 2**63 - 1
"""The largest int64."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Messages, and combines that take time, as int64 columns.

    source, target: ranks.   place_at_source, place_at_target: positions in these ranks' lists.
    A combine has NONE in both columns of the target.   nbytes: bytes that are sent or combined.
    begins, needs: row n waits for the rows needs[begins[n]:begins[n + 1]], which its source has to
    have received or combined.  If ranks receive in list order, `needs` may have only the last of
    the rows that row n waits for.
    A send without a matching receive has NONE as place at its target; a receive without a matching
    send is a row with NONE as source and as place there.
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    nbytes: Ints
    begins: Ints
    needs: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def combines(self) -> NDArray[np.bool_]:
        """A mask of the rows that are combines."""
        return np.equal(self.target, NONE)

    @classmethod
    def counted(
        cls,
        source: Ints,
        target: Ints,
        place_at_source: Ints,
        place_at_target: Ints,
        nbytes: Ints,
        after: Ints,
    ) -> "Rows":
        """Make rows that wait for receives and combines of their source ranks.

        after: for each row, the number of receives and combines, from the first on, for which it
        waits.   A combine is given as a message from a rank to itself, with both places equal.
        """
        order = ordered(target, place_at_target)
        begins = np.searchsorted(target[order], source)
        waits = after > 0
        ends = np.zeros(len(source) + 1, np.int64)
        np.cumsum(waits, out=ends[1:])
        is_combine = source == target
        return cls(
            source,
            np.where(is_combine, NONE, target),
            place_at_source,
            np.where(is_combine, NONE, place_at_target),
            nbytes,
            ends,
            order[(begins + after - 1)[waits]],
        )

    def renamed(self, ranks: Callable[[Ints], Ints]) -> "Rows":
        """The rows with other rank numbers; `ranks` maps old numbers to new ones."""
        source, target = (
            np.where(ends == NONE, NONE, ranks(ends)) for ends in (self.source, self.target)
        )
        return Rows(source, target, *(getattr(self, field.name) for field in fields(self)[2:]))


def ordered(major: Ints, minor: Ints) -> Ints:
    """Indices that sort by `major`, then by `minor`; both hold numbers >= −1."""
    return np.argsort(major * (int(minor.max(initial=0)) + 2) + minor, kind="stable")


def of_lists(
    lists: Sequence[Sequence[Operation]], *, combines: bool, in_order: bool = True
) -> Rows:
    """The rows of all ranks' lists.

    combines: whether combining takes time.   in_order: whether every rank receives in list order,
    so that waiting for several receives means waiting for the last one.
    """
    return matched(rows_of_lists(lists, combines=combines, last_only=in_order))


def matched(listed: Listed) -> Rows:
    """The rows of operations; the k-th send from rank a to rank b matches b's k-th receive from a.

    listed: the operations, rank by rank in list order, without copies.
    """
    rank, place, kind, peer, nbytes, begins, needs = listed
    sends, receives = (np.flatnonzero(kind == KINDS.index(k)) for k in (Send, Recv))
    by_pair = sends[np.lexsort((sends, peer[sends], rank[sends]))]
    heard = receives[np.lexsort((receives, rank[receives], peer[receives]))]
    if len(sends) != len(receives) or not (
        np.array_equal(rank[by_pair], peer[heard]) and np.array_equal(peer[by_pair], rank[heard])
    ):
        by_pair, heard = _partners(by_pair, heard, rank, peer)
    left = np.setdiff1d(receives, heard)
    kept = np.flatnonzero(kind != KINDS.index(Recv))
    row_of = np.full(len(kind), NONE, np.int64)
    row_of[kept] = np.arange(len(kept))
    row_of[left] = len(kept) + np.arange(len(left))
    row_of[heard] = row_of[by_pair]
    at_target = np.full(len(kept), NONE, np.int64)
    at_target[row_of[by_pair]] = place[heard]
    target = np.where(kind[kept] == KINDS.index(Send), peer[kept], NONE)
    nobody = np.full(len(left), NONE, np.int64)
    ends = np.append(begins[kept], np.full(len(left) + 1, begins[-1]))
    columns = [rank[kept], target, place[kept], at_target, nbytes[kept]]
    if len(left):
        others = [nobody, rank[left], nobody, place[left], nbytes[left]]
        columns = [np.concatenate(both) for both in zip(columns, others, strict=True)]
    columns += [ends, row_of[needs]]
    return Rows(*columns)


KINDS = (Send, Recv, Combine)


def _partners(sends: Ints, receives: Ints, rank: Ints, peer: Ints) -> tuple[Ints, Ints]:
    """The sends and the receives that match, as two arrays; all others are left out.

    sends, receives: indices of operations.   rank, peer: columns of all operations.
    """
    waiting: dict[tuple[int, int], list[int]] = {}
    for receive in receives[::-1].tolist():
        waiting.setdefault((int(peer[receive]), int(rank[receive])), []).append(receive)
    pairs = [
        (send, queue.pop())
        for send in sends.tolist()
        if (queue := waiting.get((int(rank[send]), int(peer[send]))))
    ]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class Class(NamedTuple):
    """Ranks whose operation lists are equal up to renumbered peers.

    representative: one of these ranks.   members: all of these ranks.   peers: maps an array of the
    representative's peers to a table whose rows are the members' peers, in the same order.
    """

    representative: int
    members: Ints
    peers: Callable[[Ints], Ints]


def of_classes(
    classes: Iterable[Class], operations: Callable[[int], Sequence[Operation]], *, combines: bool
) -> Rows:
    """The rows of all ranks, from the lists that `operations` gives for the representatives."""
    parts, needed = list[Listed](), 0
    for representative, members, peers in classes:
        listed = rows_of_lists([operations(representative)], combines=combines, last_only=True)
        count, number = len(members), len(listed.rank)
        ends = (
            np.add.outer(np.arange(count) * len(listed.needs), listed.begins[1:]).ravel() + needed
        )
        several = np.repeat(np.arange(count) * number, len(listed.needs))
        before = sum(len(part.rank) for part in parts)
        parts.append(
            Listed(
                np.repeat(members, number),
                np.tile(listed.place, count),
                np.tile(listed.kind, count),
                peers(listed.peer).ravel(),
                np.tile(listed.nbytes, count),
                ends,
                np.tile(listed.needs, count) + several + before,
            )
        )
        needed += len(listed.needs) * count
    *columns, begins, needs = map(np.concatenate, zip(*parts, strict=True))
    return matched(Listed(*[*columns, np.append(0, begins), needs]))


def around_a_circle(ranks: int) -> Class:
    """All ranks as one `Class`: if rank 0 has the peer q, rank r has the peer q + r modulo p."""
    all_ranks = np.arange(ranks, dtype=np.int64)
    return Class(0, all_ranks, lambda peers: np.add.outer(all_ranks, peers) % ranks)
