"""Reduce up two binary trees, each with every second piece: the time-reversed broadcast."""

from collwise.algorithms.allgatherv.census import LATENCY
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import rounds_fields, two_tree_choices, two_trees
from collwise.algorithms.reductions import in_no_order, register_combining

register_combining(
    "reduce/two_trees",
    "two binary trees, each of which passes every other piece up",
    "about (k + (2λ + 1)·log2(p)/2)·t0 for k pieces, and combining; played round by round",
    source=("Sanders2009",),
    choices=two_tree_choices,
    order=in_no_order,
    parameters={"latency": LATENCY, "segment": SEGMENT},
    segmented=True,
    **rounds_fields(two_trees),
)
