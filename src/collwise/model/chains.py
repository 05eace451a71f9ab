"""A lower bound of an allreduce's time: every byte of every rank must reach all other ranks.

In an allreduce each rank's contribution to each of n bytes reaches all p − 1 others through a chain
of messages with this byte.  Each message leaves the rank that received the previous message, after
its arrival.  Take one chain for each byte and each other rank.  A chain ends at one rank.  Let its
messages have x_1 … x_g bytes.  The chain is taken for no more bytes than the least x_i, and so for
no more than the geometric mean of all x_i.  Hence the geometric means of all chains from one
rank add up to n·(p − 1) at least.

Let a message of x bytes keep its sender busy for a + b·x at least, and arrive no earlier than
λ·(a + b·x) after its start.  Weigh a chain with the product of w(x) = (x/n)^(1/g) over its
messages, and let Y_h(t) be the most that chains of h messages from one rank can weigh together, all
of which begin and end within t, whatever is sent.  Y_0 is 1.  A rank's first message begins the
chains that go on from its receiver; the later messages of the rank begin the others.  So Y_h(t) is
the largest w(x)·Y_(h−1)(t − λ·(a + b·x)) + Y_h(t − a − b·x) of all x, or Y_h of less time.  The
bound is the least t for which the sum of Y_g(t) over all g, each with its own w, is p − 1 at least.

If all messages had x bytes, the sum would be x/n·(N_λ(t/(a + b·x)) − 1): N_λ(…) − 1 ranks can be
reached in such messages, and each has the byte with the probability x/n.  The time of receiving and
combining is not counted.

Time is counted in steps of a small part of a, and both costs are rounded down to whole steps.
Messages on a port have taken their whole steps at least, so no more whole steps are left than are
counted.  All sizes of an interval weigh as much as its largest, and cost as much as its smallest.
Long chains hardly count, so several lengths share the exponent of the longest of them: as x/n is at
most 1, they weigh more with it than with their own.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from collwise.model import postal
from collwise.model.pace import SAFE, Line

STEPS, MOST_STEPS, LATEST = 64, 1 << 18, 1 << 10
"""Time a has STEPS steps, or fewer, so that all steps × the number of chain lengths × the longest
length stay within MOST_STEPS.  If the bound might exceed LATEST · a, none is computed."""
SIZES = 64
"""About the number of intervals of message sizes; fewer where their costs are equal in steps."""
SHORTEST, LONGEST = Fraction(1, 50), 64
"""The bound is computed only for b·n between these, in units of a; elsewhere it is useless."""
EACH = 6
"""Each chain length up to this has its own exponent; beyond, several lengths share one."""


def all_chained(lines: Iterable[Line], ranks: int, nbytes: int, known: Fraction) -> Fraction:
    """Return a lower bound of an allreduce's time in seconds, by the chains of this module.

    The result is 0 if no bound is computed, or if it cannot exceed `known` (seconds).
    lines: lower bounds of the costs of messages.
    """
    times = [
        line.a * _chained(line.lam, ranks - 1, nbytes * line.b / line.a, known / line.a)
        for line in lines
    ]
    return max(times, default=Fraction(0))


def _chained(lam: Fraction, others: int, volume: Fraction, known: Fraction) -> Fraction:
    """Return the bound for the costs t0 ≥ a + b·x and latency ≥ λ·(a + b·x), in units of a.

    lam: λ.   others: p − 1.   volume: b·n in units of a.   known: a bound to exceed, in units of a.
    """
    if not SHORTEST <= volume <= LONGEST:
        return Fraction(0)
    equal = min(
        gap * postal.broadcast_time(floor(others * volume / (gap - 1)) + 2, lam)
        for gap in (1 + volume * Fraction(k, 16) for k in range(1, 17))
    )  # the bound for equally long messages: the one for all messages is no later
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
    """Return for each interval of message sizes x the least cost in steps, and the largest x/n."""
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
    """Return the first step at which all chains together weigh `enough`, but at most `horizon`.

    gaps, latencies: the least t0 and λ·t0 of each interval of sizes, in steps.   shares: the
    largest x/n of each interval.   lengths: the chain lengths with an exponent of their own.
    """
    weights = shares ** (1 / np.array(lengths))[:, None]
    number = np.arange(lengths[-1] + 1)
    counts = (np.array([0, *lengths[:-1]])[:, None] < number) & (
        number <= np.array(lengths)[:, None]
    )
    block = gaps[0]  # no step depends on one less than this before it
    most = np.zeros((*counts.shape, 1 + horizon + block))  # Y_h(t) is entry 1 + t
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
    """The chain lengths with an exponent of their own; other lengths use that of the next."""
    lengths = [1]
    while lengths[-1] < longest:
        lengths.append(min(lengths[-1] + 1 + lengths[-1] // EACH, longest))
    return lengths
