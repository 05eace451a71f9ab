"""Binomial tree: the number of informed ranks doubles in every step.

The tree is the α-tree for α = ½ [Bruck1996 §2.1]: the root of a subtree of n ranks keeps ⌈n/2⌉ of
them and gives ⌊n/2⌋ to a child.  The tree is optimal for λ = 1.  Most MPI libraries use it for
short messages.
"""

from collwise.algorithms.broadcast.segmented_tree import register_tree
from collwise.schedule.trees import SplitTree, keeping


def tree(ranks: int) -> SplitTree:
    """The binomial tree over `ranks` ranks."""
    return keeping(ranks, lambda n: (n + 1) // 2)


register_tree(
    "binomial",
    "binomial tree: the informed ranks double in every step",
    "B(n) = max(B(⌈n/2⌉) + 1, B(⌊n/2⌋) + λ) in t0; λ·log2 n for n = 2^k",
    lambda problem, _: tree(problem.ranks),
    source=("Bruck1996 §2.1", "JohnssonHo1989"),
    usual=True,
)
