"""All messages of a schedule as columns, in the queues of the ports: for millions of messages.

A rank's sends form one queue and its receives another, both in list order.  The send queues of all
ranks, one after another, are the *send order*; the receive queues are the *receive order*.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collwise.schedule.messages import Messages, Rows
from collwise.schedule.program import Columns, Schedule
from collwise.system.integers import Ints

LARGEST = 2**63 - 1
"""The largest int64."""


@dataclass(frozen=True, eq=False)
class PortQueues(Messages):
    """The same in send order, and the queues.

    send_begins, receive_begins: per rank, and one more: where its queue begins in send order, in
    receive order.   receive_order: the messages in receive order.   receive_position: the position
    of each message there.
    ready_at: the position in receive order to which its source has to come before it can send the
    message: everything that it and the sends before it read was received at earlier positions.
    """

    send_begins: Ints
    receive_begins: Ints
    receive_order: Ints
    receive_position: Ints
    ready_at: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def forwards(self) -> NDArray[np.bool_]:
        """Whether a message waits for anything that its source receives."""
        return self.ready_at > self.receive_begins[self.source]


def port_queues(schedule: Schedule) -> PortQueues | None:
    """The queues of a schedule that only sends and receives, all of it in the output.

    None if a rank receives a byte twice, or lists a send before it receives what it sends: what a
    send waits for is derived from the bytes alone.
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
    receive_order = _ordered(target, at_target)
    receive_position = np.empty_like(receive_order)
    receive_position[receive_order] = np.arange(len(receive_order))
    receive_begins = _begins(target, ranks)

    latest = _latest_needed(columns, receive_position[message], ranks)
    if latest is None:
        return None
    needed = np.flatnonzero(latest >= 0)
    if (at_target[receive_order[latest[needed]]] >= columns.place_at_source[needed]).any():
        return None
    ready_at = _reduced(np.maximum, np.maximum(latest + 1, receive_begins[columns.source]), first)
    return PortQueues(
        source,
        target,
        at_source,
        at_target,
        _reduced(np.add, columns.length, first),
        _begins(source, ranks),
        receive_begins,
        receive_order,
        receive_position,
        np.maximum.accumulate(ready_at),  # ranks come one after another in both orders
    )


def queues_of(rows: Rows, ranks: int) -> PortQueues:
    """The queues of messages of which it is known what they wait for."""
    order = _ordered(rows.source, rows.place_at_source)
    columns = Rows(*(column[order] for column in vars(rows).values()))
    receive_order = _ordered(columns.target, columns.place_at_target)
    receive_position = np.empty_like(receive_order)
    receive_position[receive_order] = np.arange(len(receive_order))
    receive_begins = _begins(columns.target, ranks)
    return PortQueues(
        columns.source,
        columns.target,
        columns.place_at_source,
        columns.place_at_target,
        columns.nbytes,
        _begins(columns.source, ranks),
        receive_begins,
        receive_order,
        receive_position,
        np.maximum.accumulate(receive_begins[columns.source] + columns.after),
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


def _reduced(reduction: np.ufunc, values: Ints, first: Ints) -> Ints:
    """Each message's rows reduced to one number; first: where its rows begin."""
    if len(first) == len(values):
        return values
    reduced: Ints = reduction.reduceat(values, first)
    return reduced


def _latest_needed(rows: Columns, position: Ints, ranks: int) -> Ints | None:
    """For every row, the position of the latest receive of its source that brings any of its bytes.

    position: of each row's message in receive order.   -1 where there is none; None if a rank
    receives a byte twice.
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
