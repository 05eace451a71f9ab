"""The λ-trees, which are optimal broadcast trees: built greedily, by doubling, or only timed.

Rank 0 is the source.  Times are exact, in units of t0, from the start of the broadcast.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from collwise.errors import InvalidArgument, shown
from collwise.model.exact import Number
from collwise.model.postal._scaled import SMALLEST_LATENCY, Grade, latency, staircase
from collwise.system.integers import checked_integer


class Edge(NamedTuple):
    """One message of a broadcast: its send begins at `sent`; the child has it at `received`."""

    parent: int
    child: int
    sent: Fraction
    received: Fraction


def greedy_tree(n: int, lam: Number) -> tuple[Edge, ...]:
    """The λ-tree in which ranks 1 … n−1 are informed in the order of their numbers.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1/1024, exact (below 1 in LogP).
    Returns the n − 1 messages in the order of their sending; the last is received at T_λ(n).
    Raises InvalidArgument if n < 1 or lam < 1/1024.
    Source: [BarNoyKipnis1994], [Bruck1996] §2.3 (an old and a new queue).  O(n).

    >>> [(e.parent, e.child, int(e.received)) for e in greedy_tree(5, 2)]
    [(0, 1, 2), (0, 2, 3), (0, 3, 4), (1, 4, 4)]
    """
    n = checked_integer(n, "greedy_tree(n, lam)", "n")
    num, den = latency(lam, SMALLEST_LATENCY).as_integer_ratio()
    clock, edges = cache(lambda scaled: Fraction(scaled, den)), list[Edge]()
    # Entries are (time at which the rank can send next, rank).  Times leave both queues in
    # ascending order, so what is appended, 1 or λ later, keeps each queue sorted.
    old: deque[tuple[int, int]] = deque()
    new = deque([(0, 0)])
    for child in range(1, n):
        queue = old if old and (not new or old[0][0] <= new[0][0]) else new
        t, parent = queue.popleft()
        edges.append(Edge(parent, child, clock(t), clock(t + num)))
        old.append((t + den, parent))
        new.append((t + num, child))
    return tuple(edges)


@dataclass(frozen=True, slots=True)
class GradedTree:
    """λ-trees of all sizes N_λ(t) up to the first one >= `doubling`'s n; they share sub-trees.

    lam: latency in units of t0.   grades: by ascending time and size.
    """

    lam: Fraction
    grades: tuple[Grade, ...]

    def edges(self, n: int) -> tuple[Edge, ...]:
        """The n − 1 messages of a λ-tree of n ranks; the last one is received at T_λ(n).

        n: number of ranks, 1 <= n <= grades[-1].size.  Each sub-tree has consecutive ranks, and its
        first rank informs the others.   O(n).
        Raises InvalidArgument if n is not in that range.
        """
        n = checked_integer(n, "GradedTree.edges(n)", "n")
        if n > self.grades[-1].size:
            seen = f"n = {n} for grades up to {self.grades[-1].size} ranks"
            remedy = "call doubling(n, lam) for at least as many ranks"
            raise InvalidArgument("GradedTree.edges(n)", seen, remedy)
        num, den = self.lam.as_integer_ratio()
        clock, edges = (
            cache(lambda scaled: Fraction(scaled, den)),
            list[Edge](),
        )  # few distinct times
        # To do: (first rank, number of ranks, grade that has room for them, scaled time).
        todo = [(0, n, bisect_left(self.grades, n, key=lambda g: g.size), 0)]
        while todo:
            first, count, which, t = todo.pop()
            if count == 1:
                continue
            grade = self.grades[which]
            keep = min(count - 1, self.grades[grade.kept].size)
            edges.append(Edge(first, first + keep, clock(t), clock(t + num)))
            todo.append((first + keep, count - keep, grade.given, t + num))
            todo.append((first, keep, grade.kept, t + den))
        return tuple(edges)


def doubling(n: int, lam: Number) -> GradedTree:
    """λ-trees of sizes N_λ(t), each made of two smaller ones; ranks are not listed.

    n: number of ranks, >= 1.   lam: latency in units of t0, >= 1/1024, exact (below 1 in LogP).
    Returns one grade for each time at which N_λ grows, up to the first size >= n: O(log n) grades
    for a fixed integer λ, and O(min(f·log n, log² n)) for λ = u/f.
    Raises InvalidArgument if n < 1 or lam < 1/1024.
    Source: [Bruck1996] §2.3, §2.5 (2).

    >>> [grade.size for grade in doubling(16, 2).grades]
    [1, 2, 3, 5, 8, 13, 21]
    """
    n, lam = checked_integer(n, "doubling(n, lam)", "n"), latency(lam, SMALLEST_LATENCY)
    return GradedTree(lam, tuple(staircase(n, lam)))


def tree_time(split_rule: Callable[[int], int], n: int, lam: Number) -> Fraction:
    """Time of the recursive broadcast in which the source of m ranks keeps split_rule(m) of them.

    split_rule: from m, 2 <= m <= n, to the number of ranks kept, 1 … m−1; always the same for the
    same m.
    n: number of ranks, >= 1.   lam: latency in units of t0, >= SMALLEST_LATENCY, exact.
    Returns the time in units of t0, at least T_λ(n).  It is T(n), where T(1) = 0 and T(m) =
    max(T(kept) + 1, T(m − kept) + λ).  Each m is worked out once, without recursive calls.
    Raises InvalidArgument if n < 1, lam is too small, or split_rule keeps none or more than m − 1.
    Source: [Bruck1996] §2.4 (Fig 12).

    >>> tree_time(lambda m: (m + 1) // 2, 64, "1.8")
    Fraction(54, 5)
    """
    asked = "tree_time(split_rule, n, lam)"
    n = checked_integer(n, asked, "n")
    num, den = latency(lam, SMALLEST_LATENCY).as_integer_ratio()
    if not callable(split_rule):
        remedy = "give a function from the number of ranks to the number kept"
        raise InvalidArgument(asked, f"split_rule is {shown(split_rule)}", remedy)
    times, keeps, todo = {1: 0}, {}, [n]
    while todo:
        m = todo[-1]
        if m in times:
            todo.pop()
        elif m not in keeps:
            keep = checked_integer(split_rule(m), asked, f"split_rule({m})", 1, m - 1)
            keeps[m] = keep
            todo += (keep, m - keep)
        else:
            keep = keeps.pop(m)
            times[m] = max(times[keep] + den, times[m - keep] + num)
    return Fraction(times[n], den)
