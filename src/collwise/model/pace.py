"""How soon a port can have received so many bytes, if long messages also travel for long.

No message is received before λ·t0 of its size is over.  So where λ is above 1 the first ones must
be short, and short messages cost most for a byte.

Let t0(x) ≥ a + b·x and the latency ≥ λ·(a + b·x) for all sizes, and let g_i = a + b·x_i for the m
messages that a port receives, counted from the last one back.  Of the time T in which all is done,
r_i is left before the last i have come in: r_0 = T, and r_i ≤ r_(i−1) − g_i, since the port is busy
for t0.  Message i comes in at r_(i−1) at the latest, having travelled for λ·g_i at least, so
g_i ≤ r_(i−1)/λ.  By induction over m the sum of all g_i is at most T·(1 − q^m), q = 1 − 1/λ: it is
g_1 + (T − g_1)·(1 − q^(m−1)) at most, which grows with g_1 ≤ T/λ.  And it is a·m + b·n for n bytes.
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
"""The result is computed in floats, and so much less is claimed."""
LARGEST = 10**15
"""Times in units of a beyond which messages are so long that a does not count."""


class Line(NamedTuple):
    """Costs in exact seconds that no message is below: t0 ≥ a + b·x, and λ of that."""

    a: Fraction
    b: Fraction
    lam: Fraction


def soonest(machine: Machine, sizes: tuple[int, ...], nbytes: Fraction, idle: Fraction) -> Fraction:
    """The least seconds in which a port receives nbytes, and is idle, or busy else, for `idle`.

    sizes: those between which the machine's costs are straight, from the least to the largest.
    0 where ports are not independent, or no bound follows.
    """
    lines = lines_below(machine, sizes) if machine.independent_ports and nbytes else ()
    times = (_soonest(line, nbytes * line.b, idle) for line in lines if line.lam > 1)
    return max(times, default=Fraction(0))


@lru_cache(maxsize=1024)
def lines_below(machine: Machine, sizes: tuple[int, ...]) -> tuple[Line, ...]:
    """The edges of the convex hull below t0, as far as they begin above 0."""
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
    """all_bytes: b·n.   The time falls and then rises with m, so it is searched by thirds."""
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
