"""A lower bound of the time in which a port receives n bytes, if long messages travel long.

No message is received before λ·t0 of its size is over.  So where λ is above 1, the first messages
must be short, and short messages cost most per byte.

Let t0(x) ≥ a + b·x and the latency ≥ λ·(a + b·x) for all sizes x.  A port receives m messages.
Message i, counted from the last one back, has x_i bytes, and g_i = a + b·x_i.  Let T be the time in
which all are received, and r_i the part of T before the port receives the last i messages.  So r_0
= T.  The port is busy for t0, so r_i ≤ r_(i−1) − g_i.  Message i is received at r_(i−1) at the
latest and has travelled for at least λ·g_i, so g_i ≤ r_(i−1)/λ.
Let q = 1 − 1/λ.  By induction over m the sum of all g_i is at most T·(1 − q^m): it is at most g_1 +
(T − g_1)·(1 − q^(m−1)), which grows with g_1 ≤ T/λ.  For n bytes the sum is a·m + b·n.
So T is at least the smallest of (a·m + b·n)/(1 − q^m) over all m.  It is also at least a·m + b·n +
idle, if the port is idle or does something else for that time.  Both bounds hold for sending, too,
which is receiving reversed in time.

Both bounds also hold for averages over the ranks, since q^m is convex in m.  So m may be any number
≥ 1.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, expm1, log
from typing import NamedTuple

from collwise.model.machine import Machine

SAFE = 1 - 1e-9
"""The factor that lowers the bound, which is computed in floats."""
LARGEST = 10**15
"""No bound is given if b·n or the idle time exceeds a this many times: a then hardly counts."""


class Line(NamedTuple):
    """A lower bound of the costs of messages of x bytes: t0 ≥ a + b·x, and latency ≥ λ·(a + b·x).

    a: exact seconds.   b: exact seconds per byte.   lam: λ.
    """

    a: Fraction
    b: Fraction
    lam: Fraction


def soonest(machine: Machine, sizes: tuple[int, ...], nbytes: Fraction, idle: Fraction) -> Fraction:
    """A lower bound of the seconds in which a port receives (or sends) nbytes.

    sizes: the least and the largest size of a message, and all sizes between them at which costs
    change their slope.   idle: seconds in which the port is idle or does something else.
    Returns 0 if the machine's ports are not independent, or if no bound follows.
    """
    lines = lines_below(machine, sizes) if machine.independent_ports and nbytes else ()
    times = (_soonest(line, nbytes * line.b, idle) for line in lines if line.lam > 1)
    return max(times, default=Fraction(0))


@lru_cache(maxsize=1024)
def lines_below(machine: Machine, sizes: tuple[int, ...]) -> tuple[Line, ...]:
    """The edges with a > 0, b > 0 and λ ≥ 1 of the lower convex hull of t0 over the sizes."""
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
