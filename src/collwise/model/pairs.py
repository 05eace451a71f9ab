"""The least time in which all pairs of ranks are connected, byte by byte: fewer rounds cost more.

A byte that is combined and known everywhere in log2 p rounds goes to every rank in each of them;
if it has twice as many rounds, it goes to every rank twice.  What is in between, this argument
bounds, for any schedule, in rounds or not.

Let a message of x bytes keep a port of either end busy for δ = a + b·x at least, and arrive no
earlier than δ after its start.  All is done at time T.  Take a byte and any two of the p ranks, at
random, and a way that the first one's contribution to the byte takes to the second.  When a
message with this byte leaves the rank at which the way is, the way goes along or stays.  That is a
decision forwards, of one bit at most; it takes δ.  So does one backwards: when such a message has
come to the rank at which the way is, the way came along or was there.  Neither two forwards nor
two backwards are at the same time.

1. Of the p² pairs let a message be met by the part m, and let r be the mean number of decisions
   backwards before it, and forwards from its own on.  They tell the pair, so log2(p²·m) <= r.  The
   same holds for the messages met backwards, with their own decision among those backwards.
2. Let a message cost its time at the sender, with the weight s/T² at time s, and its time at the
   receiver with the weight (T − s)/T².  The weights sum to 1/T, so all messages cost at most p; if
   n bytes are combined p − 1 times, in c seconds each, with both ports busy, they cost at most p·g,
   where g = 1 − n·(p − 1)·c/(p·T).  Each of x bytes pays an x-th of the cost w of its message.  So
   some byte pays p·g/n at most.
3. It pays Σ w/x of all messages at least, which is the mean over all ways of Σ w/(x·m) of their
   decisions, and p²·Σ w·2^(−log2 x − r) at least.  Let M be the mean of Σ w, and J that
   of Σ w·(log2 x + r).  The exponential is convex, so that is p²·M·2^(−J/M) at least.
4. A decision forwards from s on counts in r of those before it.  Their costs are at most s/T, and
   its own is w = δ·(s + δ/2)/T².  Together that is w·(T/δ + 1) − δ/(2T), and so it is backwards.
   Hence J <= M·(v + 1) − e, where v is the most that log2 x + T/(a + b·x) can be, and all
   decisions of a way take 2·e·T in the mean.
5. From 1 to 4, log2(p·n/g) <= v + 1 − e/M − log2 M.  A way from one rank ends at any of p ranks,
   so it has log2 p decisions in the mean, and e >= a·log2(p)/T.  The cost of times without
   decisions is the most late forwards and early backwards, so M >= e².  The right side is at its
   largest for the least e, and for M = max(e², e·ln 2).

The bound is the least T for which this is true.  If ports had to decide all the time (e = M = 1),
it would be the least R·(a + b·n·p/2^R) for R >= log2 p: in R rounds, the part p/2^R of all ranks
is busy with each byte.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log, log2, sqrt

from collwise.model.pace import LARGEST, SAFE, Line


def all_connected(
    lines: Sequence[Line], ranks: int, nbytes: int, combining_per_byte: Fraction
) -> Fraction:
    """The least seconds of an allreduce, by that argument.   lines: costs that no message is below.

    combining_per_byte: seconds.   0 where no bound follows.
    """
    share = Fraction(ranks - 1, ranks) * nbytes * combining_per_byte
    return max((_connected(line, ranks, nbytes, share) for line in lines), default=Fraction(0))


def _connected(line: Line, ranks: int, nbytes: int, share: Fraction) -> Fraction:
    """share: seconds of combining of one rank, in the mean.   All that follows is in units of a."""
    if max(nbytes * line.b, share) > LARGEST * line.a or nbytes * line.b * LARGEST < line.a:
        return Fraction(0)
    volume, combining = float(nbytes * line.b / line.a), float(share / line.a)
    decisions = log2(ranks)

    def too_soon(time: float) -> bool:
        if time <= max(combining, decisions):
            return True
        needed = decisions + log2(volume) - log2(1 - combining / time)
        return needed > _most(time, volume) + _resting(decisions / time)

    late = 1.0
    while too_soon(late):
        late *= 2
    soon = late / 2
    for _ in range(60):
        middle = (soon + late) / 2
        soon, late = (middle, late) if too_soon(middle) else (soon, middle)
    return line.a * Fraction(soon * SAFE)


def _most(time: float, volume: float) -> float:
    """The largest log2 x + time/(1 + x) for 0 < x <= volume: at its end, or where it is level."""
    most = log2(volume) + time / (1 + volume)
    if (slope := log(2) * time - 2) >= 2:
        level = 2 / (slope + sqrt(slope**2 - 4))  # the smaller root of x² − slope·x + 1
        if level < volume:
            most = max(most, log2(level) + time / (1 + level))
    return most


def _resting(busy: float) -> float:
    """What ports gain that decide nothing for a part of the time.   busy: e of the argument."""
    mass = max(busy**2, busy * log(2))
    return 1 - busy / mass - log2(mass)
