"""Rows: a schedule's messages and combines as columns, which is what timing needs.

A row is a message, or a combine on a machine where combining keeps the ports busy.  A row waits
until it is next at its ports, and for the rows that bring the bytes that it reads.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
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

    source, target: ranks; the target of a combine is NONE.   place_at_source, place_at_target:
    positions in these ranks' lists.   nbytes: bytes that are sent or combined.
    begins, needs: row n waits for the rows needs[begins[n]:begins[n + 1]], which its source has to
    have received or combined.  If ranks receive in list order, `needs` may have only the last of
    the rows that row n waits for.
    A send without a matching receive has NONE as place at its target; a receive without a matching
    send is a row with NONE as source.
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
        """Rows, each of which waits for the first few receives and combines of its source rank.

        after: for each row, for how many of these it waits.   A combine is given as a message from
        a rank to itself, with both places equal.
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
    width = int(minor.max(initial=0)) + 2
    if int(major.max(initial=0)) * width > LARGEST - width:
        return np.lexsort((minor, major))
    return np.argsort(major * width + minor, kind="stable")


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

    listed: the operations, rank by rank in list order.
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

    sends, receives: indices in the columns of all operations, two of which are `rank` and `peer`.
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
    """One class of all ranks: if rank 0 has the peer q, then rank r has the peer q + r modulo p."""
    all_ranks = np.arange(ranks, dtype=np.int64)
    return Class(0, all_ranks, lambda peers: np.add.outer(all_ranks, peers) % ranks)


@dataclass(frozen=True)
class Columns:
    """All messages of a schedule as int64 columns; in a `Schedule`, ranks are the user's.

    source, target: ranks.   place_at_source, place_at_target: positions in these ranks' lists.
    offset, length: a block, in bytes of the root's data (or of all sources' data, concatenated).  A
    message of several blocks has several rows with the same places; adjacent blocks may share a
    row.
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    offset: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.source)

    def rows(self) -> list[tuple[int, ...]]:
        """All rows as sorted tuples, with adjacent blocks merged.

        Equal schedules give equal results.
        """
        joined: list[tuple[int, ...]] = []
        for row in sorted(zip(*(c.tolist() for c in vars(self).values()), strict=True)):
            *places, offset, length = row
            *last, begin, before = joined[-1] if joined else (-1, 0, 0)
            if places == last and offset == begin + before:
                joined[-1] = (*last, begin, before + length)
            else:
                joined.append(row)
        return joined

    @staticmethod
    def stack(parts: Sequence["Columns"]) -> "Columns":
        """The rows of all parts, concatenated; empty for no parts."""
        nothing = np.zeros(0, np.int64)
        names = Columns.__dataclass_fields__
        return Columns(*(np.concatenate([nothing, *(getattr(p, n) for p in parts)]) for n in names))


def of_columns(columns: Columns, ranks: int) -> Rows | None:
    """The rows of a schedule that only sends and receives, all of it in the output slot.

    A send waits for the receives that bring its bytes.  None if this could be wrong: if a rank
    receives a byte twice, or lists a send before the receive of its data.
    """
    order = ordered(columns.source, columns.place_at_source)
    columns = replace(columns, **{name: column[order] for name, column in vars(columns).items()})
    new = np.ones(len(columns), dtype=bool)  # the first row of a message
    new[1:] = (np.diff(columns.source) != 0) | (np.diff(columns.place_at_source) != 0)
    first = np.flatnonzero(new)
    message = np.cumsum(new) - 1
    target, at_target = columns.target[first], columns.place_at_target[first]
    receive_order = ordered(target, at_target)
    position = np.empty_like(receive_order)
    position[receive_order] = np.arange(len(receive_order))

    latest = _latest_needed(columns, position[message], ranks)
    if latest is None:
        return None
    needed = np.flatnonzero(latest >= 0)
    if (at_target[receive_order[latest[needed]]] >= columns.place_at_source[needed]).any():
        return None
    latest = _per_message(np.maximum, latest, first)
    ends = np.zeros(len(first) + 1, np.int64)
    np.cumsum(latest >= 0, out=ends[1:])
    return Rows(
        columns.source[first],
        target,
        columns.place_at_source[first],
        at_target,
        _per_message(np.add, columns.length, first),
        ends,
        receive_order[latest[latest >= 0]],
    )


def _per_message(reduction: np.ufunc, values: Ints, first: Ints) -> Ints:
    """For each message, the values of its rows reduced to one number.

    first: the index of the first row of each message.
    """
    if len(first) == len(values):
        return values
    reduced: Ints = reduction.reduceat(values, first)
    return reduced


def _latest_needed(rows: Columns, position: Ints, ranks: int) -> Ints | None:
    """For every row, the position of its source's last receive that brings any of the row's bytes.

    position: for each row, the position of its message in receive order.   A row for which there is
    no such receive gets −1.
    Returns None if a rank receives a byte twice.
    """
    low, high, span = _ranges(rows, ranks)
    full = np.flatnonzero(rows.length)
    begins, ends = rows.target * span + low, rows.target * span + high
    order = full[np.argsort(begins[full], kind="stable")]
    begins, ends, brings = begins[order], ends[order], position[order]
    if (begins[1:] < ends[:-1]).any():
        return None
    wanted = rows.source * span
    start = np.searchsorted(ends, (wanted + low)[full], side="right")
    stop = np.searchsorted(begins, (wanted + high)[full], side="left")
    received = stop > start
    full, start, stop = full[received], start[received], stop[received]
    latest = np.full(len(rows), -1, dtype=np.int64)
    latest[full] = brings[start]
    several = np.flatnonzero(stop - start > 1)
    if len(several):
        bounds = np.column_stack((start[several], stop[several])).ravel()
        ended = np.append(brings, -1)  # a bound may be one past the end
        latest[full[several]] = np.maximum.reduceat(ended, bounds)[::2]
    return latest


def _ranges(rows: Columns, ranks: int) -> tuple[Ints, Ints, int]:
    """The bytes [low, high) of each row, and a number `span` that is greater than all of these.

    So rank * span + byte identifies a byte of a rank.  If this would not fit into int64, low and
    high are indices in the sorted bounds of all rows, in place of bytes.
    """
    low, high = rows.offset, rows.offset + rows.length
    span = int(high.max(initial=0)) + 1
    if ranks * span > LARGEST:
        ends = np.unique(np.concatenate((low, high)))
        low, high, span = np.searchsorted(ends, low), np.searchsorted(ends, high), len(ends)
    return low, high, span
