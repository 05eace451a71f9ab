"""Hybrids whose groups are of any size; with groups of two they are those of van de Geijn."""

from collwise.algorithms.mixed_radix import STAGES, best_stages, stages_of
from collwise.algorithms.reductions import register_exchange

register_exchange(
    "allreduce/mixed_radix",
    "groups of several sizes divide the vector in some stages, exchange whole ones in the others",
    "the sum of (k − 2 + λ)·t0 over stages of k ranks, twice where divided, and combining",
    stages_of,
    source=("vandeGeijn1991 §3.4", "Ruefenacht2017"),
    choices=best_stages,
    parameters={"stages": STAGES},
    segmented=True,
)
