"""The least time in which every byte of every rank finds a way to every other rank.

In an allreduce each rank's contribution to each of n bytes reaches all p − 1 others through a chain
of messages with this byte: each leaves the rank that the one before came to, after it came.  Take
one chain for each byte and each other rank.  A chain ends at one rank, and is taken for no more
bytes than all of its messages have: if they are of x_1 … x_g bytes, for no more than the least of
them, nor than their geometric mean.  So these means of all chains from one rank are n·(p − 1) in
sum at least.

Let a message of x bytes keep its sender busy for a + b·x at least, and arrive no earlier than
λ·(a + b·x) after its start.  Weigh a chain with the product of w(x) = (x/n)^(1/g) over its
messages, and let Y_h(t) be the most that chains of h messages from one rank can weigh together, all
of which begin and end within t, whatever is sent.  Y_0 is 1.  With its first message a rank begins
chains that go on from where it comes to; what follows on the port begins the others.  So Y_h(t) is
the largest w(x)·Y_(h−1)(t − λ·(a + b·x)) + Y_h(t − a − b·x) of all x, or Y_h of less time.  The
bound is the least t for which the sum of Y_g(t) over all g, each with its own w, is p − 1 at least.

If all messages were equally long, the sum would be x/n·(N_λ(t/(a + b·x)) − 1): so many ranks can
be reached in messages of x bytes, and each has the byte with the probability x/n.  What receiving
and combining takes is not counted.

Time is counted in steps of a small part of a, and both costs are rounded down to whole steps.
Messages on a port have taken their whole steps at least, so no more whole steps are left than are
counted.  Sizes in an interval weigh as much as its end, and cost as its beginning does.  Of long
chains, which hardly count, several lengths have the exponent of the longest of them: as x/n is at
most 1, they weigh more.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from collwise.model import postal
from collwise.model.pace import SAFE, Line

STEPS, MOST_STEPS, LATEST = 64, 1 << 18, 1 << 10
"""Steps of a; fewer where there would be more than so many in all, each for every number of
messages of every chain.  Beyond the latest time, in units of a, nothing is counted."""
SIZES = 64
"""Sizes of messages that are told apart."""
SHORTEST, LONGEST = Fraction(1, 50), 64
"""What a vector's bytes cost in units of a: less costs nothing, more counts by itself."""
EACH = 6
"""Chains of up to so many messages are counted length by length."""


def all_chained(lines: Iterable[Line], ranks: int, nbytes: int, known: Fraction) -> Fraction:
    """The least seconds of an allreduce by that argument; 0 where it is not above a known bound.

    lines: costs that no message is below.
    """
    times = [
        line.a * _chained(line.lam, ranks - 1, nbytes * line.b / line.a, known / line.a)
        for line in lines
    ]
    return max(times, default=Fraction(0))


def _chained(lam: Fraction, others: int, volume: Fraction, known: Fraction) -> Fraction:
    """In units of a, as are volume (that of n bytes) and known."""
    if not SHORTEST <= volume <= LONGEST:
        return Fraction(0)
    equal = min(
        gap * postal.broadcast_time(floor(others * volume / (gap - 1)) + 2, lam)
        for gap in (1 + volume * Fraction(k, 16) for k in range(1, 17))
    )  # what equally long messages take, so what follows is no later
    if not known < equal <= LATEST:
        return Fraction(0)
    lengths = _lengths(floor(equal / lam))
    steps = min(STEPS, floor(MOST_STEPS / (equal * len(lengths) * lengths[-1])))
    if not steps:  # not even whole units of a can be counted
        return Fraction(0)
    gaps, shares = _sizes(float(volume), steps)
    latencies = [floor(lam * gap) for gap in gaps]
    first = _first(gaps, shares, latencies, lengths, others, floor(equal * steps))
    return Fraction(first, steps)


def _sizes(volume: float, steps: int) -> tuple[list[int], Any]:
    """The costs in steps of messages at the beginning of each interval, and x/n at its end."""
    costs = 1 + volume * np.array([0, *np.geomspace(0.01, 1, SIZES)])
    gaps = np.unique(np.floor(costs * steps * SAFE).clip(steps)).astype(int)
    ends = (gaps[1:] / steps - 1) / volume
    return gaps.tolist(), np.append(np.minimum(ends / SAFE, 1), 1)


def _first(
    gaps: Sequence[int],
    shares: Any,
    latencies: Sequence[int],
    lengths: Sequence[int],
    enough: int,
    horizon: int,
) -> int:
    """The first step at which all chains weigh enough; the horizon, if none is before."""
    weights = shares ** (1 / np.array(lengths))[:, None]
    number = np.arange(lengths[-1] + 1)
    counts = (np.array([0, *lengths[:-1]])[:, None] < number) & (
        number <= np.array(lengths)[:, None]
    )
    block = gaps[0]  # nothing depends on what was less than that ago
    most = np.zeros((*counts.shape, 1 + horizon + block))  # one step later, as none is before 0
    most[:, 0, 1:] = 1
    for begin in range(0, horizon, block):
        now, where = begin + np.arange(block)[:, None], slice(begin + 1, begin + 1 + block)
        longest = min(lengths[-1], (begin + block) // latencies[0])
        stays = most[:, 1 : longest + 1, np.maximum(now - gaps, -1) + 1]
        goes = most[:, :longest, np.maximum(now - latencies, -1) + 1]
        best = (stays + weights[:, None, None] * goes).max(axis=3)
        best[:, :, 0] = np.maximum(best[:, :, 0], most[:, 1 : longest + 1, begin])
        most[:, 1 : longest + 1, where] = np.maximum.accumulate(best, axis=2)
        weigh = np.einsum("dht,dh->t", most[:, :, where], counts.astype(float))
        if (heavy := np.flatnonzero(weigh >= enough * SAFE)).size:
            return min(begin + int(heavy[0]), horizon)
    return horizon


def _lengths(longest: int) -> list[int]:
    """Numbers of messages, up to the longest, of which each has its exponent."""
    lengths = [1]
    while lengths[-1] < longest:
        lengths.append(min(lengths[-1] + 1 + lengths[-1] // EACH, longest))
    return lengths
