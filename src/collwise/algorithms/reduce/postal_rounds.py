"""Reduce of pieces in rounds made for the latency λ: a time-reversed broadcast."""

from collwise.algorithms.allgatherv.census import LATENCY
from collwise.algorithms.broadcast.segmented_tree import SEGMENT
from collwise.algorithms.in_rounds import postal_choices, postal_rounds, rounds_fields
from collwise.algorithms.reductions import in_no_order, register_combining

register_combining(
    "reduce/postal_rounds",
    "pieces in rounds of one distance each, backwards, played for the latency",
    "about (k − 1 + T_λ(p))·t0 for k pieces, and combining; simulated",
    source=("BarNoyKipnis1994", "Karp1993", "Traeff2024b"),
    choices=postal_choices,
    order=in_no_order,
    parameters={"latency": LATENCY, "segment": SEGMENT},
    segmented=True,
    **rounds_fields(postal_rounds),
)
