"""Broadcast down two binary trees at full bandwidth: each tree carries every second piece.

In a single binary tree, inner ranks send twice as much as they receive.  Here an inner rank of one
tree is a leaf of the other, so all ranks send as much as they receive [Sanders2009].
"""

from collwise.algorithms.allgatherv.census import LATENCY
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import rounds_fields, two_tree_choices, two_trees
from collwise.algorithms.registry import Algorithm, register

register(
    Algorithm(
        name="broadcast/two_trees",
        summary="two binary trees, each of which passes every other piece down",
        source=("Sanders2009",),
        time="about (k + (2λ + 1)·log2(p)/2)·t0 for k pieces; played round by round",
        choices=two_tree_choices,
        parameters={"latency": LATENCY, "segment": SEGMENT},
        segmented=True,
        **rounds_fields(two_trees),
    )
)
