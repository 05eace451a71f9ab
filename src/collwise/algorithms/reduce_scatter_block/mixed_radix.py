"""Reduce-scatters in groups of any size, which divide the vectors until everybody has its block."""

from collwise.algorithms.mixed_radix import STAGES, best_stages, stages_of
from collwise.algorithms.reductions import register_exchange

register_exchange(
    "reduce_scatter_block/mixed_radix",
    "groups of several sizes divide the vectors, stage after stage",
    "the sum of (k − 2 + λ)·t0 over stages of k ranks, and combining",
    stages_of,
    source=("vandeGeijn1991 §3.4", "Ruefenacht2017"),
    choices=best_stages,
    parameters={"stages": STAGES},
    segmented=True,
)
