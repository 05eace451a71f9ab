"""Where to split: the optimal first splits of n ranks, and the α that give them.

The source of n ranks sends to a second rank, the leader.  The source then informs n' of the ranks,
itself included, and the leader the other n'' = n − n'. The rule n' = round(αn) needs no tree in
memory [Bruck1996 §2.4]; this module says which α are optimal.
"""

from fractions import Fraction
from typing import TypeAlias

from collwise.errors import InvalidArgument
from collwise.model.exact import Number, exact
from collwise.model.postal._scaled import latency, reached_scaled, staircase, time_scaled
from collwise.system.integers import checked_integer

AlphaRange: TypeAlias = tuple[Fraction, Fraction]
"""A half-open range [low, high) of α."""

_ONE = Fraction(1)


def split(n: int, alpha: Number) -> int:
    """How many of n ranks the source keeps: min(round(αn), n − 1), halves rounded up.

    n: number of ranks, >= 2.   alpha: in [1/2, 1), exact (a float is its shortest decimal); 1/2 is
    the binomial tree.
    Returns n', 1 <= n' <= n − 1; the leader gets the other n − n'.
    Raises InvalidArgument if n < 2 or alpha is outside [1/2, 1).
    Source: [Bruck1996] §2.4 (its `round` is round-half-up: 2.5 becomes 3).

    >>> split(13, "0.6"), split(5, 0.5), split(2, 0.99)
    (8, 3, 1)
    """
    n = checked_integer(n, "split(n, alpha)", "n", 2)
    ratio = exact(alpha, "the ratio alpha")
    num, den = ratio.as_integer_ratio()
    if not den <= 2 * num < 2 * den:
        raise InvalidArgument("split(n, alpha)", f"alpha = {ratio}", "give an alpha in [1/2, 1)")
    # At least 1, since αn >= 1 for α >= 1/2 and n >= 2.
    return min((2 * num * n + den) // (2 * den), n - 1)


def partitions(n: int, lam: Number) -> tuple[int, int]:
    """(n_min, n_max): the fewest and the most ranks that the source keeps in an optimal split.

    n: number of ranks, >= 2.   lam: latency in units of t0, >= 1, exact.
    If both parts are then informed optimally, a split (n', n − n') finishes at T_λ(n) if and only
    if n_min <= n' <= n_max.
    Raises InvalidArgument if n < 2 or lam < 1.
    Source: [Bruck1996] §2.4, §2.5.

    >>> partitions(13, 2), partitions(14, 2)
    ((8, 8), (6, 13))
    """
    n = checked_integer(n, "partitions(n, lam)", "n", 2)
    num, den = latency(lam).as_integer_ratio()
    t = time_scaled(n, num, den)
    # Both are within 1 … n−1: n > N(t − 1/den) >= N(t−1) >= N(t−λ), as 1/den <= 1 <= λ.
    return n - reached_scaled(t - num, num, den), reached_scaled(t - den, num, den)


def alpha_range(n: int, lam: Number) -> AlphaRange:
    """(low, high): exactly the α in [low, high) split n ranks optimally.

    n: number of ranks, >= 2.   lam: latency in units of t0, >= 1, exact.
    Returns exact ratios: for α < 1, min(round(αn), n − 1) is an optimal n' if and only if
    low <= α < high.  If n' = n − 1 is optimal (`partitions` tells), high is 1.  low can be below
    1/2 (11/28 for λ = 2, n = 14), but high cannot.
    `split` accepts every α in [max(low, 1/2), high).
    Raises InvalidArgument if n < 2 or lam < 1.
    Source: [Bruck1996] §2.4, §2.5.
    """
    n = checked_integer(n, "alpha_range(n, lam)", "n", 2)
    return _rounding_range(n, *partitions(n, lam))


def _rounding_range(n: int, n_min: int, n_max: int) -> AlphaRange:
    """The range [low, high) of α < 1 with n_min <= min(round_half_up(αn), n − 1) <= n_max."""
    high = _ONE if n_max == n - 1 else Fraction(2 * n_max + 1, 2 * n)
    return Fraction(2 * n_min - 1, 2 * n), high


def alpha_intersection(n: int, lam: Number) -> AlphaRange | None:
    """(low, high): each α in [low, high) splits any 2 … n ranks optimally; None if no α does.

    n: the largest number of ranks, >= 2.   lam: latency in units of t0, >= 1, exact.
    The bounds are exact.  Finding them takes time linear in the number of values T_λ, about log² n.
    Raises InvalidArgument if n < 2 or lam < 1.
    Source: [Bruck1996] §2.4 (Figs 6, 7), §2.5.

    >>> alpha_intersection(250, 2) == (Fraction(287, 466), Fraction(289, 466))
    True
    >>> alpha_intersection(21, 1.95) is None
    True
    """
    n = checked_integer(n, "alpha_intersection(n, lam)", "n", 2)
    grades = staircase(n, latency(lam))
    low, high = Fraction(0), _ONE
    # Only the largest m of each triangle counts.  While T_λ(m) = t stays the same, so do
    # K = N(t−1) and G = N(t−λ), and
    #   low(m) = (m − G − 1/2)/m = 1 − (G + 1/2)/m    rises with m;
    #   high(m) = (K + 1/2)/m                         falls with m, and is below 1 for m > K + 1;
    # all m of the triangle are > K, so high(m) = 1 can only be at its first m, K + 1, and it
    # counts only if the triangle has no second m.
    for _, size, kept, given in grades[1:]:
        m = min(size, n)
        low_m, high_m = _rounding_range(m, m - grades[given].size, grades[kept].size)
        low, high = max(low, low_m), min(high, high_m)
        if low >= high:
            return None
    return low, high
