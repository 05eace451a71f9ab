"""The postal model in integers: the core under all of `collwise.model.postal`.

With λ = num/den in lowest terms, N_λ changes only at multiples of 1/den [Bruck1996 §2.5].  So times
here are whole multiples of 1/den, "scaled": a send takes den, a message arrives after num.
Nothing here needs λ >= 1: in LogP a message may arrive before the next one can be sent.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import NamedTuple

from collwise.errors import BeyondLimits, InvalidArgument
from collwise.model.exact import Number, exact

LARGEST_LATENCY = 10**98
"""The largest λ that is accepted; far larger ones would fill the memory."""


SMALLEST_LATENCY = Fraction(1, 1024)
"""The least λ that is accepted; below it, every broadcast of a realistic size goes down a chain."""


def latency(
    lam: Number, least: Fraction = Fraction(1), most: int | None = LARGEST_LATENCY
) -> Fraction:
    """λ as an exact fraction, in units of t0.

    Raises InvalidArgument if lam < least, BeyondLimits if it is above most.
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

    A rank j hops below the source, on whose path i other messages were sent first, is reached at
    i + jλ.  The i are spread over the j senders of the path in C(i + j − 1, j − 1) ways, each a
    different rank; summed over all i <= m = ⌊t − jλ⌋ these are C(m + j, j) ranks.
    """
    total = hops = 0
    while t >= 0:
        total += comb(t // den + hops, hops)
        t -= num
        hops += 1
    return total


@lru_cache(maxsize=1 << 14)
def time_scaled(n: int, num: int, den: int) -> int:
    """T_λ(n)·den for n >= 1, by bisection; the bounds are ⌈log2 n⌉ rounds of a binomial tree.

    Such a round costs 1 or λ, or something in between; n − 1 sends of one rank are another upper
    bound.
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
    """A step of N_λ: the λ-tree of all that can be reached by `time`, as two smaller trees.

    time: in units of t0.   size: N_λ(time), the number of ranks.   kept: the index of the grade
    with which the source goes on, 1 after its send began.   given: that of the grade which the
    receiver starts, λ after it.   Grade 0 is a rank alone, and refers to itself.
    """

    time: Fraction
    size: int
    kept: int
    given: int


def staircase(n: int, lam: Fraction) -> list[Grade]:
    """The steps of N_λ up to the first size >= n, n >= 1, in time linear in their number.

    N_λ grows exactly at i + jλ with i >= 0, j >= 1: at λ, and 1 and λ after each time at which it
    grows.  Two indices, p and q, advance behind the end of the list: the next time is the earlier
    of times[p] + 1 and times[q] + λ, and the steps just before p and q are those that hold at t − 1
    and at t − λ, whose sizes the recursion of [Bruck1996] (1) adds.  In t0, there are at most
    min(den·t, (t+1)²/2λ) steps up to time t.
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
