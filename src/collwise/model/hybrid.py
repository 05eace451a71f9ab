"""Exact theory of combining on a hypercube: whole vectors, halves, and hybrids [vandeGeijn1991].

2^d ranks combine vectors of n items.  A message of m items takes α + mβ.  The two messages of an
exchange travel at once, and a rank has one partner at a time.  Combining two vectors of m items
takes mγ.  In each direction j, from d−1 down to 0, a strategy S says what ranks exchange: the whole
current vector (S_j = 0) or half of it (S_j = 1).  Halves are put together again on the way back.

There are two kinds of functions. `time`, `best` and the closed forms are the paper's: they take
α, β, γ, and a half is exactly n/2. `time_for` and `best_for` take any cost curves, and items are
whole.  Returned times have the unit of α or of the cost curve.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeAlias

import numpy as np

from collwise.errors import InvalidArgument, shown
from collwise.model.exact import Number, exact
from collwise.system.integers import checked_integer

MAX_DIMENSIONS = 1024
"""The most dimensions of a cube: more than any machine has, and few enough to be quick."""

Strategy: TypeAlias = tuple[int, ...]
"""(S_0, …, S_(d−1)): S_j is 1 if vectors are halved in direction j, 0 if exchanged whole."""

Curve: TypeAlias = Callable[[int], Number]
"""A function from a number of items to an exact cost >= 0 that never falls."""


class _Steps(NamedTuple):
    """The costs, by the number of halvings from 0 to d, of one exchange.

    transfer: a message.   combine: combining.   back: sending a half back (entry 0 is not used).
    """

    transfer: list[Fraction]
    combine: list[Fraction]
    back: list[Fraction]


def version1(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> Fraction:
    """Time to combine up a spanning tree and broadcast down it: 2d(α + nβ) + dnγ.

    nitems: items of the vector, >= 0.   d: dimensions of the cube, >= 0; it has 2^d ranks.
    alpha: per message.   beta: per item sent.   gamma: per item combined.   All >= 0, exact.
    Returns the time in the unit of alpha; it exceeds `version2` by d(α + nβ).
    Raises InvalidArgument if d is no integer from 0 to MAX_DIMENSIONS, or another argument is
    negative or not finite.
    Source: [vandeGeijn1991] §3.1.

    >>> version1(8, 3, 525, 2, "0.35")
    Fraction(16272, 5)
    """
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    return 2 * d * (alpha + n * beta) + d * n * gamma


def version2(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> Fraction:
    """Time to exchange and combine whole vectors in every direction: d(α + nβ + nγ).

    Arguments, unit and errors are those of `version1`.
    Source: [vandeGeijn1991] §3.2; it is T(S, n, d) for S = (0, …, 0).
    """
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    return d * (alpha + n * beta + n * gamma)


def version3(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> Fraction:
    """Time to halve in every direction and then double: 2dα + (p−1)/p·n(2β + γ), p = 2^d.

    Arguments, unit and errors are those of `version1`.
    Source: [vandeGeijn1991] §3.3; it is T(S, n, d) for S = (1, …, 1).
    """
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    return 2 * d * alpha + (1 - Fraction(1, 1 << d)) * n * (2 * beta + gamma)


def time(
    strategy: Iterable[int], nitems: Number, alpha: Number, beta: Number, gamma: Number
) -> Fraction:
    """T(S, n, d): time to combine on all 2^d ranks by the strategy S, d = len(strategy).

    strategy: (S_0, …, S_(d−1)); in direction j ranks exchange half of the current vector if S_j is
    1, all of it if S_j is 0.  Direction d−1 comes first, direction 0 last.
    The other arguments and the unit are those of `version1`.   Raises InvalidArgument for another
    S_j, and for a number that is negative or not finite.
    Source: [vandeGeijn1991] §3.4 (the recursion ends at d = 0; "d < 0" is a misprint).

    >>> time((0, 0, 1), 8, 525, 2, "0.35")
    Fraction(10681, 5)
    """
    chosen = checked_strategy(strategy)
    return _total(chosen, _hockney(nitems, len(chosen), alpha, beta, gamma))


def to_root_time(
    strategy: Iterable[int], nitems: Number, alpha: Number, beta: Number, gamma: Number
) -> Fraction:
    """Time to combine to one root of 2^d ranks by the strategy S, d = len(strategy).

    Where S_j = 0, one rank of each pair sends its vector and is done.  Where S_j = 1, both ranks
    combine halves, which are gathered at the end.  The root receives and combines as much as if all
    ranks got the result.  So the time is that of `time`, and `best` is optimal here too.  (0, …, 0)
    is the spanning tree, and (1, …, 1) is halving and gathering.
    nitems, alpha, beta, gamma: >= 0, or InvalidArgument.   Returns the time in alpha's unit.
    Source: [vandeGeijn1991] §5.  In its Fig 6 every rank sends in the gather.  Here a rank sends
    only if its bits below the direction are all 0 (31 messages instead of 36 at d = 3).
    """
    return time(strategy, nitems, alpha, beta, gamma)


def best(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> Strategy:
    """S̄, the fastest of all 2^d strategies: it halves in directions d−1 … k, and below k never.

    k is the least integer, 0 <= k < d, with n(k(β + γ) + γ) >= 2^(d−k)·α, or d if there is none.  A
    k for which the factor k(β + γ) + γ is 0 does not count, since halving gains nothing then.
    Returns (S_0, …, S_(d−1)); S_j = 1 means halving.  Of equally fast strategies it is the one that
    halves most often, but for halvings that do not count (if α = γ = 0: the last; all if β = 0).
    Arguments and errors are those of `version1`.
    Source: [vandeGeijn1991] Theorem 1, Note 3.

    >>> [sum(best(n, 6, 525, 2, ".35")) for n in (64, 128, 256, 1024, 2048, 8192, 96000)]
    [0, 1, 2, 3, 4, 5, 6]
    """
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    k = _first_halved(n, d, alpha, beta, gamma)
    return (0,) * k + (1,) * (d - k)


def corollary4(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> Fraction:
    """T(S̄, n, d), the time of `best`: 2(d−k)α + (1 − 2^(k−d))n(2β + γ) + k(α + 2^(k−d)n(β + γ)).

    d: dimensions of the cube.   k: the last direction in which S̄ halves, or d.   All are >= 0.
    Source: [vandeGeijn1991] Corollary 4.
    """
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    k = _first_halved(n, d, alpha, beta, gamma)
    left = Fraction(1, 1 << (d - k))
    halving = 2 * (d - k) * alpha + (1 - left) * n * (2 * beta + gamma)
    return halving + k * (alpha + left * n * (beta + gamma))


def time_for(
    strategy: Iterable[int], cost: Curve, combine: Curve, nitems: int, *, to_root: bool = False
) -> Fraction:
    """T(S, n, d): time to combine on 2^d ranks by the strategy S (see `time`), d = len(strategy).

    cost: from a number of items >= 1 to the time of a message, start-up included.
    combine: from a number of items >= 1 to the time of combining two such vectors.
    Neither cost may fall as the number grows.   nitems: items of the vector, >= 0.
    to_root: whether the result goes to one root only (see `to_root_time`).
    Returns the time in the unit of the curves.  If a number of items is odd, the larger half
    counts.  Rank 0 always keeps the larger half, ⌈n/2^h⌉ items after h halvings, and no rank does
    more.  A root also keeps the larger halves, and gathers the smaller ones.  0 items take no time.
    Raises InvalidArgument if S has values other than 0 and 1, nitems is no integer >= 0, to_root is
    no bool, a curve is no function, or one of its values is negative or not finite.
    Source: [vandeGeijn1991] §3.4, §6.
    """
    chosen = checked_strategy(strategy)
    return _total(chosen, _measured(cost, combine, nitems, len(chosen), to_root))


def best_for(
    cost: Curve, combine: Curve, nitems: int, d: int, *, to_root: bool = False
) -> Strategy:
    """The fastest of all 2^d strategies for any cost curves, by dynamic programming.

    cost, combine: from a number of items >= 1 to the time of a message, or of combining; not
    falling.   nitems: >= 0.   d: dimensions of the cube, >= 0.   to_root: one root gets the result.
    Returns the strategy of the least `time_for`; it halves if that is as fast (but not 0 items).
    For costs α + mβ and mγ with α > 0, and n a multiple of 2^d, the result is that of `best`.
    O(d²) steps, O(d) values of the curves.   Raises InvalidArgument for values out of range.
    Source: our own, for the rule of [vandeGeijn1991] §6 (`short_message_rule`).

    >>> start_up = lambda m: (419 if m <= 25 else 480) + 2 * m
    >>> best_for(start_up, lambda m: Fraction(35, 100) * m, 100, 6)
    (0, 0, 0, 0, 1, 1)
    """
    d = _dimensions(d)
    steps = _measured(cost, combine, nitems, d, to_root)
    return _fastest(steps) if nitems else (0,) * d


def short_message_rule(
    nitems: int, d: int, alpha: Number, beta: Number, gamma: Number, short: int = 25
) -> Strategy:
    """The paper's strategy where messages of up to `short` items start up faster than α.

    If n > short·2^d, the result is `best`; else it halves until at most `short` items are left.
    All arguments >= 0; nitems, d and short are integers.   Raises InvalidArgument for others.
    The strategy is never faster than that of `best_for`, and often slower.
    Source: [vandeGeijn1991] §6.
    """
    chosen = best(nitems, d, alpha, beta, gamma)
    n, short = _count(nitems, "nitems"), _count(short, "short")
    if n > short << len(chosen):
        return chosen
    halvings = next(h for h in range(d + 1) if -(-n >> h) <= short)
    return (0,) * (d - halvings) + (1,) * halvings


def checked_strategy(strategy: Iterable[int], d: int | None = None) -> Strategy:
    """Return the strategy as a tuple of 0 and 1.

    Raises InvalidArgument for other values, or for a length other than d (None: any length).
    """
    try:
        chosen = tuple(strategy)
    except TypeError:
        remedy = "give S_0 … S_(d−1), such as (0, 1)"
        raise InvalidArgument("a hybrid strategy", f"it is {shown(strategy)}", remedy) from None
    for j, choice in enumerate(chosen):
        if not isinstance(choice, int | float | np.integer) or choice not in (0, 1):
            remedy = "give 1 where vectors are halved, 0 where they are exchanged whole"
            raise InvalidArgument("a hybrid strategy", f"S_{j} = {choice!r}", remedy)
    if d is not None and len(chosen) != _dimensions(d):
        seen = f"{len(chosen)} choices for {d} directions"
        remedy = f"{1 << d} ranks are a cube of dimension {d}: give S_0 … S_(d−1)"
        raise InvalidArgument("a hybrid strategy", seen, remedy)
    return tuple(map(int, chosen))


def _total(strategy: Strategy, steps: _Steps) -> Fraction:
    """The time of a strategy; in a direction that halves, a half is also sent back."""
    total, halvings = Fraction(0), 0
    for halves in reversed(strategy):
        halvings += halves
        total += steps.transfer[halvings] + steps.combine[halvings]
        total += steps.back[halvings] if halves else 0
    return total


def _fastest(steps: _Steps) -> Strategy:
    """The strategy for which `_total` is least, computed with integers, which is faster."""
    unit = lcm(*(cost.denominator for costs in steps for cost in costs))
    transfer, combine, back = ([int(cost * unit) for cost in costs] for costs in steps)
    step = [sent + combined for sent, combined in zip(transfer, combine, strict=True)]
    # After h halvings: the least time for directions j−1 … 0, and the choices S_0 … S_(j−1).
    left: list[tuple[int, Strategy]] = [(0, ())] * len(step)
    for j in range(1, len(step)):
        following = []
        for h in range(len(step) - j):
            (time_whole, whole), (time_halved, halved) = left[h], left[h + 1]
            time_whole += step[h]
            time_halved += step[h + 1] + back[h + 1]
            by_halving, by_exchange = (time_halved, (*halved, 1)), (time_whole, (*whole, 0))
            following.append(by_halving if time_halved <= time_whole else by_exchange)
        left = following
    return left[0][1]


def _first_halved(n: Fraction, d: int, alpha: Fraction, beta: Fraction, gamma: Fraction) -> int:
    """The k of Theorem 1: the last direction in which vectors are halved; d if none is."""
    for k in range(d):
        gain = k * (beta + gamma) + gamma
        if gain and n * gain >= (1 << (d - k)) * alpha:
            return k
    return d


def _hockney(nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number) -> _Steps:
    """The steps for α + mβ and mγ, with exactly m = n/2^h items after h halvings."""
    n, d, alpha, beta, gamma = _checked(nitems, d, alpha, beta, gamma)
    sizes = [n / (1 << h) for h in range(d + 1)]
    transfer = [alpha + m * beta for m in sizes]
    return _Steps(transfer, [m * gamma for m in sizes], transfer)


def _measured(cost: Curve, combine: Curve, nitems: int, d: int, to_root: bool) -> _Steps:
    """The steps for any curves, with ⌈n/2^h⌉ whole items after h halvings."""
    n = _count(nitems, "nitems")
    if not isinstance(to_root, bool | np.bool_):
        raise InvalidArgument("to_root", f"it is {shown(to_root)}", "give True or False")
    sizes = [-(-n >> h) for h in range(d + 1)]
    transfer = [_of(cost, "cost", m) for m in sizes]
    gathered = [_of(cost, "cost", m // 2) for m in sizes[:-1]] if to_root else []
    back = [transfer[0], *gathered] if to_root else transfer
    return _Steps(transfer, [_of(combine, "combine", m) for m in sizes], back)


def _of(curve: Curve, name: str, m: int) -> Fraction:
    """The curve's value for m items, 0 for m = 0.  Raises InvalidArgument unless in [0, ∞)."""
    if not callable(curve):
        remedy = "give a function from a number of items to a time"
        raise InvalidArgument(name, f"it is {shown(curve)}", remedy)
    return _amount(curve(m), f"{name}({m})") if m else Fraction(0)


def _checked(
    nitems: Number, d: int, alpha: Number, beta: Number, gamma: Number
) -> tuple[Fraction, int, Fraction, Fraction, Fraction]:
    """The arguments as exact numbers.  Raises InvalidArgument if one is negative or no number."""
    n, d, alpha = _amount(nitems, "nitems"), _dimensions(d), _amount(alpha, "alpha")
    return n, d, alpha, _amount(beta, "beta"), _amount(gamma, "gamma")


def _amount(x: Number, name: str) -> Fraction:
    """The number x, exact.  Raises InvalidArgument if it is negative or no finite number."""
    value = exact(x, name)
    if value < 0:
        raise InvalidArgument(name, f"{name} = {x}", "give a number of 0 or more")
    return value


def _count(x: int, name: str) -> int:
    return checked_integer(x, name, name, least=0)


def _dimensions(d: int) -> int:
    """The integer d, checked.  Raises InvalidArgument unless 0 <= d <= MAX_DIMENSIONS."""
    return checked_integer(d, "the dimensions of a cube", "d", 0, MAX_DIMENSIONS)
