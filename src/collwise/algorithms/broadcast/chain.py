"""Chain: the message goes from each rank to the next, whole or in segments (a pipeline).

With short segments the time per byte is that of a single transfer, for any number of ranks.  No
algorithm is better for very long messages on few ranks.
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT, register_tree, segment_choices
from collwise.schedule.trees import HeapTree


def tree(ranks: int) -> HeapTree:
    """The chain 0 → 1 → 2 → …, as a tree."""
    return HeapTree(ranks, 1)


register_tree(
    "chain",
    "chain: every rank passes the whole message on to the next",
    "(p − 1)·λ·t0",
    lambda problem, _: tree(problem.ranks),
    source=("Desprez1993",),
    searched=False,
)
register_tree(
    "chain_segmented",
    "pipelined chain: segments follow each other along the ranks",
    "((p − 1)·λ + k − 1)·t0 for k segments, t0 and λ those of a segment",
    lambda problem, _: tree(problem.ranks),
    source=("Desprez1993",),
    choices=lambda problem, machine: segment_choices(tree(problem.ranks), problem, machine),
    parameters={"segment": SEGMENT},
)
