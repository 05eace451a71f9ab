"""Lists what each rank does, in list order, from the rows of a schedule."""

from collections import Counter
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.schedule.program import Schedule
from collwise.schedule.rows import NONE, ordered

MOST_EXPORTED = 1 << 20
"""The largest number of messages to export; as text they take some ten megabytes."""
NANOSECONDS = 10**9


class Listed(NamedTuple):
    """One operation of a rank.

    kind: "send", "recv" or "calc" (it computes).   place: the operation's number in the rank's
    list, unique.   peer: the other rank of a message, or NONE.   size: bytes of a message, or
    nanoseconds of a calc, rounded.   tag: how many messages the sender sent to the receiver before
    this one.   needs: the places of the receives and calcs that the operation waits for.
    """

    kind: str
    place: int
    peer: int
    size: int
    tag: int
    needs: tuple[int, ...]


def check_exportable(schedule: Schedule) -> None:
    """Raise InvalidArgument for more than MOST_EXPORTED messages."""
    if (about := schedule.about_messages()) > MOST_EXPORTED:
        remedy = f"export {MOST_EXPORTED:,} at most: choose fewer ranks, or another algorithm"
        raise InvalidArgument("an export of the schedule", f"about {about:,} messages", remedy)


def by_rank(schedule: Schedule, machine: Machine) -> list[list[Listed]]:
    """The operations of every rank in list order; combines are calcs, left out if they are free.

    Raises InvalidArgument for more than MOST_EXPORTED messages.
    """
    check_exportable(schedule)
    rows = schedule.rows(combines=machine.combine(1) is not None, in_order=False)
    # If a row waits for another row, `needs` has the other's place on the rank that waits.
    named = np.where(rows.combines, rows.place_at_source, rows.place_at_target)
    columns = rows.source, rows.target, rows.place_at_source, named, rows.nbytes
    ends = np.column_stack(columns).tolist()
    begins, needed = rows.begins.tolist(), named[rows.needs].tolist()
    listed: list[list[Listed]] = [[] for _ in range(schedule.ranks)]
    sent = Counter[tuple[int, int]]()
    for row in ordered(rows.source, rows.place_at_source).tolist():
        source, target, place, place_there, nbytes = ends[row]
        needs = tuple(needed[begins[row] : begins[row + 1]])
        if target == NONE:
            calc_ns = round((machine.combine(nbytes) or 0) * NANOSECONDS)
            listed[source].append(Listed("calc", place, NONE, calc_ns, 0, needs))
            continue
        tag = sent[source, target]
        sent[source, target] += 1
        listed[source].append(Listed("send", place, target, nbytes, tag, needs))
        listed[target].append(Listed("recv", place_there, source, nbytes, tag, ()))
    for operations in listed:
        operations.sort(key=attrgetter("place"))
    return listed
