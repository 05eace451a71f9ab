"""Reduce as the time-reversed broadcast through a circulant graph, for any number of ranks.

k pieces take k − 1 + ⌈log2 p⌉ rounds.  In each round every rank sends a piece, receives a piece and
combines it [Traeff2024b].  Contributions are not combined in the order of the ranks.
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
