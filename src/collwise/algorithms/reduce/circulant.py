"""The broadcast through a circulant graph, backwards: k pieces in k − 1 + ⌈log2 p⌉ rounds, any p.

In every round each rank sends a piece, receives one and combines it, in no order of the ranks
[Traeff2024b].
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import circulant, circulant_choices, rounds_fields
from collwise.algorithms.reductions import in_no_order, register_combining

register_combining(
    "reduce/circulant",
    "pieces backwards through a circulant graph, in as few rounds as there can be",
    "(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1, and combining in every round",
    source=("Traeff2024b",),
    choices=circulant_choices,
    order=in_no_order,
    parameters={"segment": SEGMENT},
    segmented=True,
    **rounds_fields(circulant),
)
