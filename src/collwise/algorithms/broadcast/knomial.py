"""k-nomial tree: at every level each informed rank sends to at most k − 1 others."""

from functools import partial

from collwise.algorithms.broadcast.segmented_tree import register_tree
from collwise.algorithms.registry import integer
from collwise.schedule.trees import SplitTree, keeping


def kept(n: int, k: int) -> int:
    """How many of n >= 2 ranks the root keeps to serve: the largest j·k^h below n, 1 <= j < k."""
    power = 1
    while power * k < n:
        power *= k
    return (n - 1) // power * power


def tree(ranks: int, k: int) -> SplitTree:
    """The k-nomial tree over `ranks` ranks."""
    return keeping(ranks, partial(kept, k=k))


register_tree(
    "knomial",
    "k-nomial tree: each level multiplies the informed ranks by k",
    "h·(k − 2 + λ)·t0 for n = k^h",
    lambda problem, settings: tree(problem.ranks, settings["k"]),
    source=("MPICH",),
    choices=lambda problem, _: [{"k": k} for k in (2, 3, 4, 8, 16) if k == 2 or k < problem.ranks],
    parameters={"k": integer("k", 2, "the radix, an integer of at least 2")},
    searched=False,
)
