"""The laws without links, vectorised: everything that can be settled at once is.  Exact.

The laws are those of `timing.laws` and, without a topology, `timing.wormhole`.  Times are ticks, as
int64, or as Python's integers where those might overflow.

step: per message, from the start of its send to that of the next one.   reach: to its receipt.
Every function returns per message when it is sent and when it is received, or None if it cannot
tell; it raises OverflowError where int64 might not do.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collwise.schedule.program import Columns
from collwise.system.integers import Ints
from collwise.timing.port_queues import LARGEST, PortQueues

Ticks: TypeAlias = NDArray[Any]
"""int64, or object for Python's integers; those of one schedule are of one kind."""
Times: TypeAlias = tuple[Ticks, Ticks]
"""Per message: when it is sent, and when it is received."""
LONG_RUN = 32
"""Runs longer than this, or than there are runs, are worth array operations of their own."""


def in_ticks(
    rows: Sequence[Sequence[Fraction]], others: Sequence[Fraction] = ()
) -> tuple[list[list[int]], Fraction]:
    """Times in ticks, column by column, and the tick in exact seconds: as few ticks as possible."""
    ratios = [x.as_integer_ratio() for row in (*rows, others) for x in row]
    unit = Fraction(gcd(*(n for n, _ in ratios)), lcm(*(d for _, d in ratios))) or Fraction(1)
    return [[int(x / unit) for x in column] for column in zip(*rows, strict=True)], unit


def down_trees(queues: PortQueues, step: Ticks, reach: Ticks) -> Times | None:
    """Pointer doubling, where every rank receives at most once and sends only after that.

    log2(depth) iterations.  None if that is not so, or if ranks wait for each other in a circle.
    """
    sends = np.diff(queues.send_begins)
    both = np.flatnonzero((np.diff(queues.receive_begins) > 0) & (sends > 0))
    if len(queues.receive_order) > np.count_nonzero(np.diff(queues.receive_begins)):
        return None
    if (queues.ready_at[queues.send_begins[both]] == queues.receive_begins[both]).any():
        return None
    check_overflow(step, longest(queues) * int(step.max()) + int(reach.max()))
    senders = np.flatnonzero(sends)
    steps_before = np.roll(step, 1)
    after = chained(np.zeros_like(step), steps_before, queues.send_begins[senders], sends[senders])
    # When each message is received, counted from the receipt of the one `above` it in the tree.
    time, above = after + reach, np.full(len(queues), -1, dtype=np.int64)
    below = np.flatnonzero(queues.forwards)
    above[below] = queues.receive_order[queues.receive_begins[queues.source[below]]]
    for _ in range(len(queues).bit_length() + 1):
        if not len(below):
            return time - reach, time
        check_overflow(time, 2 * int(time.max()))
        time[below] += time[above[below]]
        above[below] = above[above[below]]
        below = below[above[below] >= 0]
    return None


def up_tree(
    rows: Columns, step: int, reach: int, adding: int, *, rendezvous: bool
) -> tuple[Ticks, Ticks, Ticks, Ticks]:
    """Whole vectors combined up a tree, all ranks of one depth at once, the deepest first.

    adding: ticks that a combine keeps both ports busy.   rendezvous: as in Hockney's law.
    Returns per row when it starts, is sent and received; and per rank, when it finishes.
    """
    child, parent = rows.source, rows.target
    ranks = len(rows) + 1
    depth, above = np.ones(ranks, dtype=np.int64), np.empty(ranks, dtype=np.int64)
    root = int(np.flatnonzero(np.bincount(child, minlength=ranks) == 0)[0])
    above[child], above[root], depth[root] = parent, root, 0
    while (above != root).any():
        depth += depth[above]
        above = above[above]
    order = np.lexsort((rows.place_at_target, parent, -depth[child]))
    most = int(np.bincount(parent).max())
    fits = int(depth.max()) * most * (step + reach + adding) <= LARGEST
    ready = np.zeros(ranks, np.int64 if fits else object)  # when all below has been combined
    received = np.zeros(len(rows), ready.dtype)
    gap = np.full(len(rows), step + adding, ready.dtype)
    bounds = np.flatnonzero(np.diff(depth[child[order]], prepend=-1, append=-1))
    for begin, end in pairwise(bounds.tolist()):
        edges = order[begin:end]
        begins = np.flatnonzero(np.diff(parent[edges], prepend=-1))
        lengths = np.diff(begins, append=len(edges))
        combined = chained(ready[child[edges]] + (reach + adding), gap[edges], begins, lengths)
        received[edges] = combined - adding
        ready[parent[edges[begins]]] = combined[begins + lengths - 1]
    start = received - reach if rendezvous else ready[child]
    finish = ready.copy()
    finish[child] = np.maximum(finish[child], start + step)
    return start, start + step, received, finish


def hockney(queues: PortQueues, step: Ticks, reach: Ticks) -> Times | None:
    """In each iteration all messages pass that are next both at their source and at their target.

    About as many iterations as the busiest port has messages.  None if ranks wait for each other in
    a circle.
    """
    start, end = np.zeros_like(step), np.zeros_like(step)
    next_send, next_receive = queues.send_begins[:-1].copy(), queues.receive_begins[:-1].copy()
    send_free, receive_free = (np.zeros(len(next_send), dtype=step.dtype) for _ in range(2))
    waits = queues.forwards
    rise, latest = int(reach.max()), 0
    ranks = np.arange(len(send_free))
    while True:
        sending = ranks[next_send[ranks] < queues.send_begins[ranks + 1]]
        receiving = ranks[next_receive[ranks] < queues.receive_begins[ranks + 1]]
        m = np.concatenate((next_send[sending], queues.receive_order[next_receive[receiving]]))
        source, target = queues.source[m], queues.target[m]
        able = (next_send[source] == m) & (next_receive[target] == queues.receive_position[m])
        m = np.unique(m[able & (queues.ready_at[m] <= next_receive[source])])
        if not len(m):
            break
        check_overflow(step, latest + rise)
        source, target = queues.source[m], queues.target[m]
        held = np.where(waits[m], end[queues.receive_order[queues.ready_at[m] - 1]], 0)
        begun = np.maximum(np.maximum(held, send_free[source]), receive_free[target])
        start[m] = begun
        end[m] = send_free[source] = receive_free[target] = ended = begun + reach[m]
        latest = max(latest, int(ended.max()))
        next_send[source] += 1
        next_receive[target] += 1
        ranks = np.unique(np.concatenate((source, target)))
    if (next_receive < queues.receive_begins[1:]).any():
        return None
    return start, end


def check_overflow(ticks: Ticks, largest: int) -> None:
    """Raise OverflowError if these ticks cannot hold a number."""
    if ticks.dtype != object and largest > LARGEST:
        raise OverflowError(f"{largest} is too large for int64")


def longest(queues: PortQueues) -> int:
    """The number of messages in the longest queue."""
    return int(max(np.diff(queues.send_begins).max(), np.diff(queues.receive_begins).max()))


def runs(low: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """The numbers low[i] … low[i] + lengths[i] − 1 of all i, and where those of each i begin."""
    begins = np.cumsum(lengths) - lengths
    return np.repeat(low - begins, lengths) + np.arange(int(lengths.sum())), begins


def chained(least: Ticks, gap: Ticks, begins: Ints, lengths: Ints) -> Ticks:
    """In every run, one after another: at `least`, and `gap` after the one before."""
    times = least
    long = lengths > min(LONG_RUN, len(lengths))
    for begin, length in zip(begins[long].tolist(), lengths[long].tolist(), strict=True):
        run = slice(begin, begin + length)
        behind = np.cumsum(gap[run])
        times[run] = np.maximum.accumulate(least[run] - behind) + behind
    begins, lengths = begins[~long], lengths[~long]
    for place in range(1, int(lengths.max(initial=0))):
        at = begins[lengths > place] + place
        times[at] = np.maximum(times[at], times[at - 1] + gap[at])
    return times
