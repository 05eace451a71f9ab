"""α-trees: of n ranks a root keeps round(αn), and gives the others to a child [Bruck1996 §2.4].

Both parts are then divided in the same way.  One α is used for all n, or a small table has one α
for each triangle of the paper's "Christmas tree" (§2.5); the table always gives an optimal tree.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from collwise.algorithms.broadcast.postal_tree import BY_LAM_FROM_1
from collwise.algorithms.broadcast.segmented_tree import register_tree
from collwise.algorithms.registry import Settings, fraction
from collwise.model import postal
from collwise.model.machine import Machine
from collwise.schedule.problem import Problem
from collwise.schedule.trees import SplitTree, keeping

ALPHA = fraction(
    "alpha", Fraction(1, 2), Fraction(1), "the share α that a source keeps, in [1/2, 1)"
)


@lru_cache(maxsize=256)
def fixed(ranks: int, alpha: Fraction) -> SplitTree:
    """The broadcast tree that uses one value of α for every n.

    The root of a subtree of n ranks keeps round(αn) ranks and gives the others to a child.
    """
    return keeping(ranks, lambda n: postal.split(n, alpha))


@lru_cache(maxsize=256)
def table(ranks: int, lam: Fraction) -> SplitTree:
    """The α-tree over `ranks` ranks that divides n ranks by the table's α for n.

    lam: the latency λ in t0.
    """
    alphas = postal.alpha_table(ranks, lam)
    return keeping(ranks, lambda n: postal.split(n, alphas.lookup(n)))


def _candidates(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """One setting `alpha` that is optimal for all numbers of ranks up to p, if there is one.

    Otherwise several values of `alpha` to try.  Empty for one rank.
    """
    lam = max(machine.planning_lam(problem.nbytes), Fraction(1))
    if problem.ranks < 2:
        return []
    if both := postal.alpha_intersection(problem.ranks, lam):
        low, high = both  # high is always above 1/2
        return [{"alpha": _simplest(max(low, Fraction(1, 2)), high)}]
    return [{"alpha": Fraction(percent, 100)} for percent in range(50, 76, 2)]


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction in [low, high) with the smallest denominator."""
    denominator = 1
    while (numerator := -(-low * denominator // 1)) >= high * denominator:
        denominator += 1
    return Fraction(int(numerator), denominator)


register_tree(
    "alpha",
    "α-tree with one fixed α: of n ranks the root keeps round(αn) and sends to one of the others",
    "A(n) = max(A(n′) + 1, A(n − n′) + λ) in t0, n′ = min(round(αn), n − 1)",
    lambda problem, settings: fixed(problem.ranks, settings["alpha"]),
    source=("Bruck1996 §2.4",),
    choices=_candidates,
    parameters={"alpha": ALPHA},
    searched=False,
)
register_tree(
    "alpha_table",
    "α-tree with a small table of α per number of ranks; optimal in the postal model",
    "T_λ(p)·t0",
    lambda problem, settings: table(problem.ranks, settings["lam"]),
    source=("Bruck1996 §2.4", "Bruck1996 §2.5"),
    **BY_LAM_FROM_1,
    searched=False,
)
