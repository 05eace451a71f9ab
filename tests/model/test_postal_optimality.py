"""T_λ is optimal: against all splits, and against all broadcasts of whatever shape."""

from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.model import postal


def best_times(n: int, lam: Fraction) -> list[Fraction]:
    """T(m) for m = 0 … n by trying every split of every m (entry 0 is unused)."""
    times = [Fraction(0)] * 2
    for m in range(2, n + 1):
        times.append(min(max(times[k] + 1, times[m - k] + lam) for k in range(1, m)))
    return times


@given(st.integers(2, 60), st.fractions(1, 15, max_denominator=50))
def test_no_split_is_faster_and_no_other_is_as_fast(n: int, lam: Fraction) -> None:
    times = best_times(n, lam)
    for m in range(2, n + 1):
        assert postal.broadcast_time(m, lam) == times[m]
        optimal = [k for k in range(1, m) if max(times[k] + 1, times[m - k] + lam) == times[m]]
        n_min, n_max = postal.partitions(m, lam)
        assert optimal == list(range(n_min, n_max + 1))


def can_inform(n: int, deadline: int, num: int, den: int) -> bool:
    """Is there any broadcast to n ranks by `deadline`?  All times are multiples of 1/den.

    Knows nothing of trees or recursion: it goes through the sends in the order of their times.  The
    state is now, and when each informed rank has both its copy and a free port; the next send is by
    any of them, at any later time.  (To send to a rank that is informed already is the same as to
    idle for one send.)
    """

    @cache
    def reachable(now: int, free: tuple[int, ...]) -> bool:
        if len(free) == n:
            return True
        for sender in set(free):
            others = list(free)
            others.remove(sender)
            for time in range(max(now, sender), deadline - num + 1):
                then = sorted(max(time, t) for t in (*others, time + den, time + num))
                if reachable(time, tuple(then)):
                    return True
        return False

    return reachable(0, (0,))


@pytest.mark.parametrize("finer", [1, 2])
@pytest.mark.parametrize("lam", ["1", "5/4", "3/2", "9/5", "2", "5/2", "10/3", "4"])
def test_no_broadcast_of_any_shape_is_faster(lam: str, finer: int) -> None:
    """On the grid of 1/f, and on one twice as fine, on which ranks could start in between."""
    value = Fraction(lam)
    num, den = value.numerator * finer, value.denominator * finer
    for n in range(2, 7):
        best = postal.broadcast_time(n, value) * den
        assert best.denominator == 1
        assert can_inform(n, int(best), num, den)
        assert not can_inform(n, int(best) - 1, num, den)


@pytest.mark.parametrize("lam", [1, 2, 3])
def test_no_broadcast_of_any_shape_is_faster_with_more_ranks(lam: int) -> None:
    for n in (7, 8, 9):
        best = int(postal.broadcast_time(n, lam))
        assert can_inform(n, best, lam, 1)
        assert not can_inform(n, best - 1, lam, 1)
