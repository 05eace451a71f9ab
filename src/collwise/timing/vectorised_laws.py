"""Messages played in waves: whatever can be settled at once is, by array operations.  Exact.

The laws are those of `collwise.schedule.timing`, which plays one event after another.  Times are
ticks, as int64, or as Python's integers where those might overflow.

step: per message, from the start of its send to the next one's.   reach: to its receipt.
Every function returns, per message, when it is sent and when it is received, None if it cannot; and
raises OverflowError where int64 might not do.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.system.integers import Ints
from collwise.timing.event_queues import LARGEST, Queues

Ticks: TypeAlias = NDArray[Any]
"""int64, or object for Python's integers; those of one schedule are of one kind."""
Played: TypeAlias = tuple[Ticks, Ticks]
LONG = 32
"""Runs longer than this, or than there are runs, are worth array operations of their own."""


def down_trees(queues: Queues, step: Ticks, reach: Ticks) -> Played | None:
    """Where every rank receives once at most, and sends only then: pointer doubling.

    log2(depth) turns, whatever the depth.  None if that is not so, or ranks wait in a circle.
    """
    sends = np.diff(queues.sends)
    both = np.flatnonzero((np.diff(queues.receives) > 0) & (sends > 0))
    if len(queues.inbound) > np.count_nonzero(np.diff(queues.receives)):
        return None
    if (queues.need[queues.sends[both]] == queues.receives[both]).any():
        return None
    _check(step, _longest(queues) * int(step.max()) + int(reach.max()))
    senders = np.flatnonzero(sends)
    after = _chained(np.zeros_like(step), _before(step), queues.sends[senders], sends[senders])
    # When each message is received, counted from when the one `above` it is.
    time, above = after + reach, np.full(len(queues), -1, dtype=np.int64)
    below = np.flatnonzero(queues.waits)
    above[below] = queues.inbound[queues.receives[queues.source[below]]]
    for _ in range(len(queues).bit_length() + 1):
        if not len(below):
            return time - reach, time
        _check(time, 2 * int(time.max()))
        time[below] += time[above[below]]
        above[below] = above[above[below]]
        below = below[above[below] >= 0]
    return None


def postal(queues: Queues, step: Ticks, reach: Ticks) -> Played | None:
    """Each rank in turn sends all that it has, and receives all that has come, in list order.

    About as many waves as ranks pass a message on, one to the next: the depth of a tree, p for a
    ring; a chain of p ranks in segments takes p waves of some 0.2 ms.  None if ranks wait in a
    circle.
    """
    start = np.zeros_like(step)
    there = np.zeros_like(step)  # in the order of receiving: when it has come, or was received
    come = np.zeros(len(queues), dtype=bool)
    waiting = np.zeros(len(queues.sends) - 1, dtype=np.int64)  # come, but not received
    next_send, next_receive = queues.sends[:-1].copy(), queues.receives[:-1].copy()
    free = np.zeros(len(waiting), dtype=step.dtype)
    waits = queues.waits
    rise = 2 * _longest(queues) * int(step.max()) + int(reach.max())  # at most, in a wave
    ranks = np.arange(len(waiting))
    latest = 0
    while True:
        low = next_send[ranks]
        stop = np.searchsorted(queues.need, next_receive[ranks], side="right")
        stop = np.minimum(stop, queues.sends[ranks + 1])
        able = stop > low
        ranks, low, stop = ranks[able], low[able], stop[able]
        if not len(ranks):
            break
        _check(step, latest + rise)
        m, begins = _runs(low, stop - low)
        held = np.where(waits[m], there[queues.need[m] - 1], 0)
        held[begins] = np.maximum(held[begins], free[ranks])
        start[m] = begun = _chained(held, step[m - 1], begins, stop - low)
        free[ranks] = start[stop - 1] + step[stop - 1]
        next_send[ranks] = stop
        there[queues.turn[m]] = arrival = begun + reach[m]
        come[queues.turn[m]] = True
        latest = max(latest, int(arrival.max()))

        targets, counts = np.unique(queues.target[m], return_counts=True)
        waiting[targets] += counts
        ranks = targets[come[next_receive[targets]]]
        if not len(ranks):
            break
        low = next_receive[ranks]
        lengths = _until_missing(come, low, waiting[ranks])
        turns, begins = _runs(low, lengths)
        came, gap = there[turns], step[queues.inbound[turns]]
        again = low > queues.receives[ranks]
        came[begins] = np.where(
            again, np.maximum(came[begins], there[low - 1] + gap[begins]), came[begins]
        )
        there[turns] = received = _chained(came, gap, begins, lengths)
        latest = max(latest, int(received.max()))
        next_receive[ranks] += lengths
        waiting[ranks] -= lengths
    if (next_receive < queues.receives[1:]).any():
        return None
    return start, there[queues.turn]


def hockney(queues: Queues, step: Ticks, reach: Ticks) -> Played | None:
    """All messages at once that are the next both at their source and at their target.

    About as many waves as there are messages one after another at the busiest ports.  None if
    ranks wait in a circle.
    """
    start, end = np.zeros_like(step), np.zeros_like(step)
    send_free, receive_free = (np.zeros(len(queues.sends) - 1, dtype=step.dtype) for _ in range(2))
    next_send, next_receive = queues.sends[:-1].copy(), queues.receives[:-1].copy()
    waits = queues.waits
    rise, latest = int(reach.max()), 0
    ranks = np.arange(len(send_free))
    while True:
        sending = ranks[next_send[ranks] < queues.sends[ranks + 1]]
        receiving = ranks[next_receive[ranks] < queues.receives[ranks + 1]]
        m = np.concatenate((next_send[sending], queues.inbound[next_receive[receiving]]))
        source, target = queues.source[m], queues.target[m]
        able = (next_send[source] == m) & (next_receive[target] == queues.turn[m])
        m = np.unique(m[able & (queues.need[m] <= next_receive[source])])
        if not len(m):
            break
        _check(step, latest + rise)
        source, target = queues.source[m], queues.target[m]
        held = np.where(waits[m], end[queues.inbound[queues.need[m] - 1]], 0)
        begun = np.maximum(np.maximum(held, send_free[source]), receive_free[target])
        start[m] = begun
        end[m] = send_free[source] = receive_free[target] = ended = begun + reach[m]
        latest = max(latest, int(ended.max()))
        next_send[source] += 1
        next_receive[target] += 1
        ranks = np.unique(np.concatenate((source, target)))
    if (next_receive < queues.receives[1:]).any():
        return None
    return start, end


def _check(ticks: Ticks, largest: int) -> None:
    """Raise OverflowError if these ticks cannot hold a number."""
    if ticks.dtype != object and largest > LARGEST:
        raise OverflowError(f"{largest} is too large for int64")


def _longest(queues: Queues) -> int:
    """The number of messages in the longest queue."""
    return int(max(np.diff(queues.sends).max(), np.diff(queues.receives).max()))


def _before(values: Ticks) -> Ticks:
    """At every place the value of the place before."""
    return np.roll(values, 1)


def _runs(low: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """The numbers low[i] … low[i] + lengths[i] − 1 of all i, and where those of each i begin."""
    begins = np.cumsum(lengths) - lengths
    return np.repeat(low - begins, lengths) + np.arange(int(lengths.sum())), begins


def _until_missing(come: NDArray[np.bool_], low: Ints, most: Ints) -> Ints:
    """How many in a row have come, from each of `low` on; at least one, and `most` at most."""
    places, begins = _runs(low, most)
    missing = np.where(come[places], len(places), np.arange(len(places)))
    return np.minimum(most, np.minimum.reduceat(missing, begins) - begins)


def _chained(least: Ticks, gap: Ticks, begins: Ints, lengths: Ints) -> Ticks:
    """In every run, one after another: at `least`, and `gap` after the one before."""
    times = least
    long = lengths > min(LONG, len(lengths))
    for begin, length in zip(begins[long].tolist(), lengths[long].tolist(), strict=True):
        run = slice(begin, begin + length)
        behind = np.cumsum(gap[run])
        times[run] = np.maximum.accumulate(least[run] - behind) + behind
    begins, lengths = begins[~long], lengths[~long]
    for place in range(1, int(lengths.max(initial=0))):
        here = begins[lengths > place] + place
        times[here] = np.maximum(times[here], times[here - 1] + gap[here])
    return times
