"""The small look-up table of α, and the triangles that it comes from.

The numbers of ranks n with equal T_λ(n), each with its optimal α, form a triangle in the plane of
(α, n).  Its top is the largest of these n, N_λ(t), for which only one split is optimal.  For
smaller n more splits are optimal [Bruck1996 §2.5].
"""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import NamedTuple

from collwise.errors import InvalidArgument
from collwise.model.exact import Number
from collwise.model.postal._scaled import latency, reached_scaled, staircase, time_scaled
from collwise.model.postal.growth import log_growth
from collwise.system.integers import checked_integer


@dataclass(frozen=True, slots=True)
class AlphaTable:
    """An optimal α for each number of ranks 2 … tops[-1]; those with equal T_λ share one.

    lam: latency in units of t0.   tops: the values N_λ(t) > 1, ascending.   alphas: N_λ(t−1)/N_λ(t)
    for each top N_λ(t).
    """

    lam: Fraction
    tops: tuple[int, ...]
    alphas: tuple[Fraction, ...]

    # Why N(t−1)/N(t) serves all n of the triangle with top N(t), i.e. n <= N(t) and T(n) = t:
    #   αn <= N(t−1), an integer, so round(αn) <= N(t−1) = n_max <= n − 1;
    #   n − αn = n·N(t−λ)/N(t) <= N(t−λ), so αn >= n − N(t−λ) = n_min, and so is round(αn).
    # And it is in [1/2, 1), as N(t) = N(t−1) + N(t−λ) with N(t−1) >= N(t−λ) >= 1.

    def __len__(self) -> int:
        return len(self.tops)

    def lookup(self, n: int) -> Fraction:
        """An α in [1/2, 1) with which `split` splits n ranks optimally.

        n: number of ranks, 2 <= n <= tops[-1].   O(log len).
        Raises InvalidArgument if n is outside the table.
        """
        n = checked_integer(n, "AlphaTable.lookup(n)", "n", 2)
        largest = self.tops[-1] if self.tops else 1
        if n > largest:
            seen = f"n = {n} in a table for up to {largest}"
            remedy = "call alpha_table(n, lam) for at least as many ranks"
            raise InvalidArgument("AlphaTable.lookup(n)", seen, remedy)
        return self.alphas[bisect_left(self.tops, n)]


def alpha_table(n: int, lam: Number) -> AlphaTable:
    """The look-up table of α for all numbers of ranks up to n, with one entry per value of T_λ.

    n: largest number of ranks, >= 1 (for 1 the table is empty).
    lam: latency in units of t0, >= 1, exact.
    The tops go from 2 to the first top >= n, so that n itself can be looked up.  For λ = 1.293
    there are 35, 136 and 301 tops from 2 to 2^8, 2^16 and 2^24, as in the paper's Fig 9.  Here
    len(table) is one more in each case, since the last triangle goes beyond n.
    Raises InvalidArgument if n < 1 or lam < 1.
    Source: [Bruck1996] §2.4 (Figs 8, 9).

    >>> alpha_table(14, 2).tops
    (2, 3, 5, 8, 13, 21)
    """
    n, lam = checked_integer(n, "alpha_table(n, lam)", "n"), latency(lam)
    grades = staircase(n, lam)
    alphas = tuple(Fraction(grades[top.kept].size, top.size) for top in grades[1:])
    return AlphaTable(lam, tuple(top.size for top in grades[1:]), alphas)


class Corner(NamedTuple):
    """A point of the plane of (α, number of ranks), in which the triangles are drawn."""

    alpha: Fraction
    n: int


class Triangle(NamedTuple):
    """The triangle that the optimal α of all n with equal T_λ(n) form, but for rounding of αn."""

    top: Corner
    left: Corner
    right: Corner


def corners(n: int, lam: Number) -> Triangle:
    """The triangle that the optimal α of all numbers of ranks with the T_λ of n form.

    n: number of ranks, >= 2.   lam: latency in units of t0, >= 1, exact.
    Returns its corners (α, number of ranks).  The top is at N_λ(t), t = T_λ(n); the two bottom
    corners are at the least number of ranks with the same time.  If this number is also N_λ(t), the
    three corners are one point.
    Raises InvalidArgument if n < 2 or lam < 1.
    Source: [Bruck1996] §2.5.
    """
    n = checked_integer(n, "corners(n, lam)", "n", 2)
    num, den = latency(lam).as_integer_ratio()
    t = time_scaled(n, num, den)
    kept, given = reached_scaled(t - den, num, den), reached_scaled(t - num, num, den)
    top, bottom = kept + given, reached_scaled(t - 1, num, den) + 1
    return Triangle(
        top=Corner(Fraction(kept, top), top),
        left=Corner(Fraction(bottom - given, bottom), bottom),
        right=Corner(Fraction(kept, bottom), bottom),
    )


class AsymptoticTriangle(NamedTuple):
    """The limits, as n → ∞, of the α of a `Triangle`'s corners, as floats."""

    top: float
    left: float
    right: float


def asymptotic_corners(lam: Number) -> AsymptoticTriangle:
    """The limits of the α of a triangle's corners as n grows.

    lam: latency in units of t0, >= 1, exact.
    Returns β^f for the top, 1 − β^(u−1) for the left bottom and β^(f−1) for the right bottom, where
    λ = u/f in lowest terms and β = lim N'(t')/N'(t'+1) = γ(λ)^(−1/f).  The paper prints β^(u−1) for
    the right bottom, an erratum: `corners` tends to β^(f−1), which is 1 for integer λ.
    `corners` approaches the limits slowly if f is large: at n = 10^12 within 0.002 for λ = 9/5, and
    within 0.04 for λ = 39/20.
    Raises InvalidArgument if lam < 1.
    Source: [Bruck1996] §2.5.
    """
    value = latency(lam)
    rate, grain = log_growth(float(value)), 1 / value.denominator
    return AsymptoticTriangle(
        top=exp(-rate),
        left=1 - exp(-rate * (float(value) - grain)),
        right=exp(-rate * (1 - grain)),
    )
