"""Broadcast of pieces through a circulant graph, in the minimum number of rounds for any p.

k pieces take k − 1 + ⌈log2 p⌉ rounds, in which every rank sends and receives at the same time.  No
algorithm is better for long messages where λ is 1 [Traeff2024b].
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import circulant, circulant_choices, rounds_fields
from collwise.algorithms.registry import Algorithm, register

register(
    Algorithm(
        name="broadcast/circulant",
        summary="pieces through a circulant graph, in as few rounds as there can be",
        source=("Traeff2024b",),
        time="(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1",
        choices=circulant_choices,
        parameters={"segment": SEGMENT},
        segmented=True,
        **rounds_fields(circulant),
    )
)
