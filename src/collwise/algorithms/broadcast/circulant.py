"""Pieces through a circulant graph: as few rounds as there can be, for any number of ranks.

k pieces take k − 1 + ⌈log2 p⌉ rounds, in which every rank sends and receives at the same time: the
best for long messages where λ is 1, from log2 p pieces on [Traeff2024b].
"""

from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.circulant_rounds import (
    circulant_time,
    piece_choices,
    pieces_of,
    rank_rounds,
)
from collwise.algorithms.registry import Algorithm, register
from collwise.schedule.circulant import CirculantDown

register(
    Algorithm(
        name="broadcast/circulant",
        summary="pieces through a circulant graph, in as few rounds as there can be",
        source=("Traeff2024b",),
        time="(k − 1 + ⌈log2 p⌉)·t0 for k equal pieces and λ = 1",
        build=lambda problem, settings: CirculantDown(problem.ranks, pieces_of(problem, settings)),
        predicted=circulant_time,
        simulated=rank_rounds,
        choices=piece_choices,
        parameters={"segment": SEGMENT},
        segmented=True,
    )
)
