"""How soon a port can have received n bytes, if long messages also travel for long.

No message is received before λ·t0 of its size is over.  So where λ is above 1 the first messages
must be short, and short messages cost most per byte.

Let t0(x) ≥ a + b·x and the latency ≥ λ·(a + b·x) for all sizes, and let g_i = a + b·x_i for the m
messages that a port receives, counted from the last one back.  All is done in time T, and r_i is
the part of T before the port receives the last i messages: r_0 = T, and r_i ≤ r_(i−1) − g_i, since
the port is busy for t0.  Message i comes in at r_(i−1) at the latest, having travelled for λ·g_i at
least, so g_i ≤ r_(i−1)/λ.  By induction over m the sum of all g_i is at most T·(1 − q^m),
q = 1 − 1/λ: it is g_1 + (T − g_1)·(1 − q^(m−1)) at most, which grows with g_1 ≤ T/λ.  And it is
a·m + b·n for n bytes.
So T is at least the smallest of (a·m + b·n)/(1 − q^m) over all m; and of a·m + b·n + idle, if the
port does something else, or nothing, for so long.  Backwards in time all this is true of sending.

Both hold for averages over the ranks, too, since q^m is convex in m; so m may be any number ≥ 1.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, expm1, log
from typing import NamedTuple

from collwise.model.machine import Machine

SAFE = 1 - 1e-9
"""The factor by which the bound is lowered, since it is computed in floats."""
LARGEST = 10**15
"""If b·n or the idle time is more than so many a, then a does not count, and no bound is given."""


class Line(NamedTuple):
    """A lower bound of message costs, in exact seconds: t0 ≥ a + b·x, latency ≥ λ·(a + b·x)."""

    a: Fraction
    b: Fraction
    lam: Fraction


def soonest(machine: Machine, sizes: tuple[int, ...], nbytes: Fraction, idle: Fraction) -> Fraction:
    """A lower bound of the seconds in which a port receives (or sends) nbytes.

    idle: seconds in which the port meanwhile does something else, or nothing.   sizes: the least
    size of a message, the largest, and all between them at which costs change their slope.
    Returns 0 where ports are not independent, or no bound follows.
    """
    lines = lines_below(machine, sizes) if machine.independent_ports and nbytes else ()
    times = (_soonest(line, nbytes * line.b, idle) for line in lines if line.lam > 1)
    return max(times, default=Fraction(0))


@lru_cache(maxsize=1024)
def lines_below(machine: Machine, sizes: tuple[int, ...]) -> tuple[Line, ...]:
    """The edges of the lower convex hull of t0 over the sizes that have a > 0, b > 0 and λ ≥ 1."""
    costs = {x: machine.message(x) for x in sorted(sizes)}
    hull: list[tuple[int, Fraction]] = []

    def slope(one: tuple[int, Fraction], other: tuple[int, Fraction]) -> Fraction:
        return (other[1] - one[1]) / (other[0] - one[0])

    for x, (gap, _) in costs.items():
        while len(hull) > 1 and slope(hull[-2], hull[-1]) >= slope(hull[-1], (x, gap)):
            hull.pop()
        hull.append((x, gap))
    lines = []
    for one, other in pairwise(hull):
        b = slope(one, other)
        if (a := one[1] - b * one[0]) > 0:
            lam = min(latency / (a + b * x) for x, (_, latency) in costs.items())
            lines.append(Line(a, b, lam))
    return tuple(line for line in lines if line.lam >= 1 and line.b > 0)


def _soonest(line: Line, all_bytes: Fraction, idle: Fraction) -> Fraction:
    """The lower bound of `soonest`, in seconds, from one line of costs a + b·x.

    all_bytes: b times the number of bytes, in seconds.

    The bound first falls and then rises with the number m of messages, so a ternary search finds
    its minimum.
    """
    if max(all_bytes, idle) > LARGEST * line.a:
        return Fraction(0)
    volume, more = float(all_bytes / line.a), float(idle / line.a)
    decay = log(1 - 1 / float(line.lam))

    def time(power: float) -> float:
        sent = exp(power) + volume
        return max(sent + more, sent / -expm1(exp(power) * decay))

    low, high = 0.0, log(2.0 * LARGEST)
    for _ in range(100):
        third = (high - low) / 3
        if time(low + third) <= time(high - third):
            high -= third
        else:
            low += third
    return line.a * Fraction(time(low) * SAFE)
