"""Two binary trees, each of which passes every other piece down, at full bandwidth.

In one tree, ranks with children send twice what they receive.  Ranks that have children in one of
two trees have none in the other, so all send as much as they receive [Sanders2009].
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import rounds_fields, two_tree_choices, two_trees
from collwise.algorithms.registry import Algorithm, register
from collwise.algorithms.s_to_p.census import LATENCY

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
