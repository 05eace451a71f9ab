"""The postal model in integers, on which all of `collwise.model.postal` is built.

With λ = num/den in lowest terms, N_λ changes only at multiples of 1/den [Bruck1996 §2.5].  So times
here are numbers of 1/den ("scaled"): a send takes den, and a message arrives after num. λ may be
below 1, as in LogP: a message may arrive before its sender can send the next one.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import NamedTuple

from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.exact import Number, exact

LARGEST_LATENCY = 10**98
"""The largest λ that is accepted, except for T_λ(n); far larger λ would fill the memory."""


SMALLEST_LATENCY = Fraction(1, 1024)
"""The least λ that any function accepts; below it, up to 1024 ranks would form a chain."""


def latency(
    lam: Number, least: Fraction = Fraction(1), most: int | None = LARGEST_LATENCY
) -> Fraction:
    """Return λ as an exact fraction, in units of t0.

    Raises InvalidArgument if lam < least, BeyondLimits if lam > most (None: no limit).
    """
    value = exact(lam, "the latency lam")
    if value < least:
        remedy = f"lam is in units of t0 and at least {least}"
        raise InvalidArgument("the latency lam", f"lam = {value}", remedy)
    if most is not None and value > most:
        raise BeyondLimits("the latency lam", f"λ is above {float(most):.0e}", "give less")
    return value


def reached_scaled(t: int, num: int, den: int) -> int:
    """N_λ(t/den), the largest number of ranks that can hold the message at time t/den, t >= 0.

    Consider a rank j hops below the source.  Let the j senders of its path send i other messages
    first.  The rank is reached at i + jλ.  These i messages can be spread over the j senders in
    C(i + j − 1, j − 1) ways, each for a different rank.  Summed over all i <= m = ⌊t − jλ⌋, this
    makes C(m + j, j) ranks.
    """
    total = hops = 0
    while t >= 0:
        total += comb(t // den + hops, hops)
        t -= num
        hops += 1
    return total


@lru_cache(maxsize=1 << 14)
def time_scaled(n: int, num: int, den: int) -> int:
    """T_λ(n)·den, the scaled least time to reach n >= 1 ranks, by bisection.

    T_λ(1) is 0.  For n >= 2, T_λ(n) is at least λ and ⌈log2 n⌉·min(1, λ).  It is at most
    ⌈log2 n⌉·max(1, λ), and at most n − 2 + λ, the time in which one rank sends n − 1 messages.
    """
    if n == 1:
        return 0
    rounds = (n - 1).bit_length()
    low = max(num, min(num, den) * rounds)
    high = min(max(num, den) * rounds, num + den * (n - 2))
    while low < high:
        middle = (low + high) // 2
        if reached_scaled(middle, num, den) >= n:
            high = middle
        else:
            low = middle + 1
    return low


class Grade(NamedTuple):
    """A step of N_λ: the tree of all ranks that are reached by `time`, from two smaller trees.

    time: in units of t0.   size: N_λ(time), the number of ranks.   kept, given: indices of the two
    smaller trees in the list of all grades.  When the first send begins, the source goes on with
    `kept` 1 later, and the receiver with `given` λ later.   Grade 0 is one rank; both are 0.
    """

    time: Fraction
    size: int
    kept: int
    given: int


def staircase(n: int, lam: Fraction) -> list[Grade]:
    """The steps of N_λ up to the first size >= n, n >= 1; takes time linear in their number.

    N_λ grows exactly at i + jλ with i >= 0, j >= 1: at λ, and at 1 and λ after each time at which
    it grows.  Two indices, p and q, follow the end of the list.  The next time is the earlier of
    times[p] + 1 and times[q] + λ.  The steps just before p and q are those at t − 1 and t − λ,
    whose sizes are added by the recursion of [Bruck1996] (1).  Up to time t (in t0) there are at
    most min(den·t, (t+1)²/2λ) steps.
    """
    grades = [Grade(Fraction(0), 1, 0, 0)]
    if n == 1:
        return grades
    num, den = lam.as_integer_ratio()
    times = [0, num]
    grades.append(Grade(lam, 2, 0, 0))
    p = q = 1
    while grades[-1].size < n:
        by_send, by_hop = times[p] + den, times[q] + num
        times.append(min(by_send, by_hop))
        p += by_send == times[-1]
        q += by_hop == times[-1]
        size = grades[p - 1].size + grades[q - 1].size
        grades.append(Grade(Fraction(times[-1], den), size, p - 1, q - 1))
    return grades
