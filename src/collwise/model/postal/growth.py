"""Growth of broadcasts: how many ranks are reached (N_λ), how soon (T_λ), and the rate γ.

N_λ(t) = N_λ(t−1) + N_λ(t−λ) for t >= λ, and 1 before [Bruck1996 (1)].  T_λ(n) is the least t with
N_λ(t) >= n, and γ(λ) is the growth of N_λ per unit of time.
"""

from fractions import Fraction
from math import exp, log1p

from collwise.errors import InvalidArgument
from collwise.model.exact import Number, exact
from collwise.model.postal._scaled import SMALLEST_LATENCY, latency, reached_scaled, time_scaled
from collwise.system.integers import checked_integer


def reached(t: Number, lam: Number) -> int:
    """N_λ(t): the most ranks, the source included, that can hold the message at time t.

    t: time in units of t0, >= 0, exact (a float is its shortest decimal).
    lam: latency in units of t0, >= 1/1024, exact (below 1 in LogP, where a gap may be longer).
    Returns a number of ranks: Σ_j C(⌊t − jλ⌋ + j, j) over 0 <= j <= t/λ.
    Raises InvalidArgument if t < 0 or lam < 1/1024.
    Source: [BarNoyKipnis1994], [Bruck1996] §2.1 (recursion); the sum counts paths of j hops.

    >>> [reached(t, 2) for t in range(8)]
    [1, 1, 2, 3, 5, 8, 13, 21]
    """
    time = exact(t, "the time t")
    num, den = latency(lam, SMALLEST_LATENCY).as_integer_ratio()
    if time < 0:
        raise InvalidArgument("reached(t, lam)", f"t = {time}", "t is a time in t0, at least 0")
    return reached_scaled(time.numerator * den // time.denominator, num, den)


def broadcast_time(n: int, lam: Number) -> Fraction:
    """T_λ(n): least time to inform n ranks from one, in the postal model.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1/1024, exact (below 1 in LogP).
    Returns the time in units of t0; multiply by the machine's t0_s for seconds.
    Raises InvalidArgument if n < 1 or lam < 1/1024.
    Source: [BarNoyKipnis1994], [Bruck1996] §2.1.

    >>> broadcast_time(64, "1.8")
    Fraction(46, 5)
    """
    num, den = latency(lam, SMALLEST_LATENCY, most=None).as_integer_ratio()
    n = checked_integer(n, "broadcast_time(n, lam)", "n")
    return Fraction(time_scaled(n, num, den), den)


def scaling(lam: Number) -> tuple[int, int]:
    """The integers (f, u) of the scaled recursion N'(t') = N'(t' − f) + N'(t' − u), t' = f·t.

    lam: latency in units of t0, >= 1, exact.
    Returns f = lcm(1, λ)/λ and u = lcm(1, λ): λ = u/f in lowest terms, and gcd(1, λ) = 1/f.
    Raises InvalidArgument if lam < 1.
    Source: [Bruck1996] §2.5 (2).

    >>> scaling(1.8)
    (5, 9)
    """
    value = latency(lam)
    return value.denominator, value.numerator


def growth(lam: Number) -> float:
    """γ(λ): the factor by which N_λ grows per t0 in the long run; the root of x^λ = x^(λ−1) + 1.

    lam: latency in units of t0, >= 1, any rational.
    Returns a float in (1, 2], a few units in the last place from the irrational root.
    Raises InvalidArgument if lam < 1.
    Source: [Bruck1996] §3.2, §3.3, Table 1.
    """
    return 1 + exp(_log_excess(float(latency(lam))))


def log_growth(lam: float) -> float:
    """The logarithm of γ(λ), without loss of digits for γ close to 1 (large λ)."""
    return log1p(exp(_log_excess(lam)))


def _log_excess(lam: float) -> float:
    """ln(γ(λ) − 1): the root w of (λ−1)·ln(1 + e^w) + w, by Newton's method.

    The function is increasing and convex, so the steps from w = 0, right of the root, only go left.
    They end when rounding would reverse them.
    """
    w = 0.0
    while True:
        value = (lam - 1) * log1p(exp(w)) + w
        slope = 1 + (lam - 1) * exp(w) / (1 + exp(w))
        following = w - value / slope
        if following >= w:
            return w
        w = following


def break_even(k: int) -> float:
    """The λ in (k, k+1), in units of t0, at which delay-send and delay-receive grow equally fast.

    k: ⌊λ⌋, >= 1.  Below the result delay-send (the census for ⌊λ⌋) is faster for many ranks, and
    above it delay-receive (the census for ⌈λ⌉).  For few ranks this may differ.
    Returns k·ln γ(k) / ln γ(k+1), a float.
    Raises InvalidArgument if k is no integer or k < 1.
    Source: [Bruck1996] §3.3, Table 2.
    """
    k = checked_integer(k, "break_even(k)", "k")
    return k * log_growth(k) / log_growth(k + 1)
