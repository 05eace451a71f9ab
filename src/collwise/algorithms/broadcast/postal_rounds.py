"""Broadcast of pieces in rounds that are made for the latency λ.

In a tree, a rank with c children needs c·t0 for each piece.  Here, in almost every t0, every rank
receives one piece and sends one: k pieces take little more than (k − 1 + T_λ(p))·t0.
"""

from collwise.algorithms.allgatherv.census import LATENCY
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import postal_choices, postal_rounds, rounds_fields
from collwise.algorithms.registry import Algorithm, register

register(
    Algorithm(
        name="broadcast/postal_rounds",
        summary="pieces in rounds of one distance each, the newest first, played for the latency",
        source=("BarNoyKipnis1994", "Karp1993", "Traeff2024b"),
        time="about (k − 1 + T_λ(p))·t0 for k pieces; simulated",
        choices=postal_choices,
        parameters={"latency": LATENCY, "segment": SEGMENT},
        segmented=True,
        **rounds_fields(postal_rounds),
    )
)
