"""Binomial tree: the informed ranks double in every step.

Recursive halving, α = ½ [Bruck1996 §2.1]: the source keeps ⌈n/2⌉ ranks and hands ⌊n/2⌋ to a leader.
Optimal for λ = 1; what most MPI libraries use for short messages.
"""

from collwise.algorithms.broadcast.segmented_tree import down_tree, tree_time
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.trees import Part, SplitTree


def halves(part: Part) -> tuple[Part, Part]:
    """⌈n/2⌉ and ⌊n/2⌋."""
    kept = (part.size + 1) // 2
    return Part(kept), Part(part.size - kept)


def tree(ranks: int) -> SplitTree:
    """The binomial tree over `ranks` ranks."""
    return SplitTree(halves, Part(ranks))


register(
    Algorithm(
        name="broadcast/binomial",
        summary="binomial tree: the informed ranks double in every step",
        source=("Bruck1996 §2.1", "JohnssonHo1989"),
        time="B(n) = max(B(⌈n/2⌉) + 1, B(⌊n/2⌋) + λ) in t0; λ·log2 n for n = 2^k",
        build=lambda problem, _: down_tree(tree(problem.ranks), problem),
        predicted=lambda problem, machine, _: tree_time(
            tree(problem.ranks), problem.nbytes, machine
        ),
    )
)
