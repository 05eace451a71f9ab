"""What each rank does, in list order, from the rows of a schedule."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule
from collwise.schedule.rows import NONE, Rows, ordered
from collwise.system.integers import Ints

MOST_EXPORTED = 1 << 22
"""Messages; in text they take some hundred megabytes."""


class Listed(NamedTuple):
    """One operation of a rank.

    kind: "send", "recv" or "calc".   place: in the rank's list; it names the operation.   peer: the
    other rank of a message.   tag: how many messages between the two came before.   needs: the
    places of the receives and calcs that it waits for.
    """

    kind: str
    place: int
    peer: int
    nbytes: int
    tag: int
    needs: tuple[int, ...]


def rows_for_export(schedule: Schedule, machine: Machine) -> Rows:
    """All messages, with everything that each of them waits for; combines if they take time.

    Raises InvalidArgument for more than MOST_EXPORTED messages.
    """
    check_exportable(schedule)
    return schedule.rows(combines=machine.combine(1) is not None, in_order=False)


def check_exportable(schedule: Schedule) -> None:
    """Raise InvalidArgument for more than MOST_EXPORTED messages."""
    if (about := schedule.about_messages()) > MOST_EXPORTED:
        remedy = f"export {MOST_EXPORTED:,} at most: choose fewer ranks, or another algorithm"
        raise InvalidArgument("an export of the schedule", f"about {about:,} messages", remedy)


def by_rank(rows: Rows, ranks: int) -> Iterator[list[Listed]]:
    """The operations of every rank, one rank after the other."""
    tags = _tags(rows)
    messages = np.flatnonzero(~rows.combines)
    row = np.concatenate((np.arange(len(rows)), messages))
    receives = np.arange(len(row)) >= len(rows)
    rank = np.where(receives, rows.target[row], rows.source[row])
    place = np.where(receives, rows.place_at_target[row], rows.place_at_source[row])
    order = ordered(rank, place)
    begins = np.searchsorted(rank[order], np.arange(ranks + 1)).tolist()
    # A row that another one waits for is named by its place on the rank that waits.
    at = np.where(rows.combines, rows.place_at_source, rows.place_at_target).tolist()
    ends, needs = rows.begins.tolist(), rows.needs.tolist()
    columns = (rows.source, rows.target, rows.nbytes, tags)
    source, target, nbytes, tag = (column.tolist() for column in columns)
    row_of, is_receive, place_of = (c[order].tolist() for c in (row, receives, place))
    for first, last in pairwise(begins):
        listed = []
        for n in range(first, last):
            r, here = row_of[n], place_of[n]
            if is_receive[n]:
                listed.append(Listed("recv", here, source[r], nbytes[r], tag[r], ()))
                continue
            waits = tuple(at[need] for need in needs[ends[r] : ends[r + 1]])
            kind = "calc" if target[r] == NONE else "send"
            listed.append(Listed(kind, here, target[r], nbytes[r], tag[r], waits))
        yield listed


def _tags(rows: Rows) -> Ints:
    """For each message, how many its source sends to its target before it; 0 for combines."""
    order = np.lexsort((rows.place_at_source, rows.target, rows.source))
    pair = np.column_stack((rows.source, rows.target))[order]
    new = np.ones(len(order), bool)
    new[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    position = np.arange(len(order))
    tags = np.zeros(len(order), np.int64)
    tags[order] = position - np.maximum.accumulate(np.where(new, position, 0))
    return np.where(rows.combines, 0, tags)
