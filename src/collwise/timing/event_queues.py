"""The messages of a schedule as columns, as they queue at the ports: for playing millions of them.

A rank's sends wait in one queue and its receives in another, both in list order.  All queues of
sends, one after another, are the *order of sending*; those of receives the *order of receiving*.
"""

from dataclasses import dataclass

import numpy as np

from collwise.schedule.program import Columns, Schedule
from collwise.system.integers import Ints

LARGEST = 2**63 - 1
"""The largest int64."""


@dataclass(frozen=True, eq=False)
class Queues:
    """All messages of a schedule, in the order of sending; one row of int64 columns for each.

    source, target: ranks.   place_at_source, place_at_target: position in that rank's list.
    nbytes: bytes.
    sends, receives: per rank, and one more: where its queue begins in the order of sending, of
    receiving.   inbound: the messages in the order of receiving.   turn: where a message is there.
    need: how far its source has to be with receiving before it has what it sends, and has sent
    before (the first position in the order of receiving that is not needed).
    """

    source: Ints
    target: Ints
    place_at_source: Ints
    place_at_target: Ints
    nbytes: Ints
    sends: Ints
    receives: Ints
    inbound: Ints
    turn: Ints
    need: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def waits(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Whether a message waits for anything that its source receives."""
        return self.need > self.receives[self.source]


def queues(schedule: Schedule) -> Queues | None:
    """The queues of a schedule that only sends and receives, all of it in the output.

    None if a rank receives a byte twice, or lists a send before it receives what it sends: what a
    send waits for is found from the bytes alone.
    """
    columns, ranks = schedule.columns(), schedule.ranks
    order = _ordered(columns.source, columns.place_at_source)
    columns = Columns(*(column[order] for column in vars(columns).values()))
    new = np.ones(len(columns), dtype=bool)  # the first row of a message
    new[1:] = (np.diff(columns.source) != 0) | (np.diff(columns.place_at_source) != 0)
    first = np.flatnonzero(new)
    message = np.cumsum(new) - 1
    source, target = columns.source[first], columns.target[first]
    at_source, at_target = columns.place_at_source[first], columns.place_at_target[first]
    inbound = _ordered(target, at_target)
    turn = np.empty_like(inbound)
    turn[inbound] = np.arange(len(inbound))
    receives = _begins(target, ranks)

    waited = _latest_needed(columns, turn[message], ranks)
    if waited is None:
        return None
    needed = np.flatnonzero(waited >= 0)
    if (at_target[inbound[waited[needed]]] >= columns.place_at_source[needed]).any():
        return None
    need = _largest(np.maximum(waited + 1, receives[columns.source]), first)
    return Queues(
        source,
        target,
        at_source,
        at_target,
        _sums(columns.length, first),
        _begins(source, ranks),
        receives,
        inbound,
        turn,
        np.maximum.accumulate(need),  # ranks come one after another here as there
    )


def _ordered(major: Ints, minor: Ints) -> Ints:
    """The order by two columns of numbers >= 0."""
    width = int(minor.max(initial=0)) + 1
    if int(major.max(initial=0)) * width > LARGEST - width:
        return np.lexsort((minor, major))
    return np.argsort(major * width + minor, kind="stable")


def _begins(rank: Ints, ranks: int) -> Ints:
    """Where each rank's rows begin if they are put in order of ranks."""
    begins = np.zeros(ranks + 1, dtype=np.int64)
    np.cumsum(np.bincount(rank, minlength=ranks), out=begins[1:])
    return begins


def _largest(values: Ints, first: Ints) -> Ints:
    """The largest of each group of rows."""
    return values if len(first) == len(values) else np.maximum.reduceat(values, first)


def _sums(values: Ints, first: Ints) -> Ints:
    """The sum of each group of rows."""
    return values if len(first) == len(values) else np.add.reduceat(values, first)


def _latest_needed(rows: Columns, turn: Ints, ranks: int) -> Ints | None:
    """For every row, the position of the latest receive of its source that brings any of its bytes.

    turn: the position of each row's message in the order of receiving.   -1 where there is none;
    None if a rank receives a byte twice.
    """
    low, high, span = _ranges(rows, ranks)
    full = np.flatnonzero(rows.length)
    begins, ends = rows.target * span + low, rows.target * span + high
    order = full[np.argsort(begins[full], kind="stable")]
    begins, ends, brings = begins[order], ends[order], turn[order]
    if (begins[1:] < ends[:-1]).any():
        return None
    wanted = rows.source * span
    here = np.searchsorted(ends, (wanted + low)[full], side="right")
    stop = np.searchsorted(begins, (wanted + high)[full], side="left")
    found = stop > here
    full, here, stop = full[found], here[found], stop[found]
    latest = np.full(len(rows), -1, dtype=np.int64)
    latest[full] = brings[here]
    several = np.flatnonzero(stop - here > 1)
    if len(several):
        bounds = np.column_stack((here[several], stop[several])).ravel()
        ended = np.append(brings, -1)  # so that every bound is a position
        latest[full[several]] = np.maximum.reduceat(ended, bounds)[::2]
    return latest


def _ranges(rows: Columns, ranks: int) -> tuple[Ints, Ints, int]:
    """The bytes of each row, [low, high), and the `span` that one rank takes in rank * span + byte.

    Bytes so many that this would not fit are numbered by the rows' ends only.
    """
    low, high = rows.offset, rows.offset + rows.length
    span = int(high.max(initial=0)) + 1
    if ranks * span > LARGEST:
        ends = np.unique(np.concatenate((low, high)))
        low, high, span = np.searchsorted(ends, low), np.searchsorted(ends, high), len(ends)
    return low, high, span
