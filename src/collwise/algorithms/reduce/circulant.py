"""The broadcast through a circulant graph, backwards: k pieces in k − 1 + ⌈log2 p⌉ rounds, any p.

In every round each rank sends a piece, receives one and combines it, in no order of the ranks
[Traeff2024b].
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.circulant_rounds import (
    circulant_time,
    piece_choices,
    pieces_of,
    rank_rounds,
)
from collwise.algorithms.reductions import from_root_on, register_combining
from collwise.schedule.circulant import CirculantUp

register_combining(
    "reduce/circulant",
    "pieces backwards through a circulant graph, in as few rounds as there can be",
    "(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1, and combining in every round",
    lambda problem, settings: CirculantUp(problem.ranks, pieces_of(problem, settings)),
    source=("Traeff2024b",),
    predicted=circulant_time,
    simulated=rank_rounds,
    choices=piece_choices,
    order=lambda problem: from_root_on(problem) if problem.ranks == 2 else "same",
    parameters={"segment": SEGMENT},
    segmented=True,
)
