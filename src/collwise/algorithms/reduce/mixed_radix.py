"""Reduces by hybrids whose groups are of any size: the parts of divided vectors are gathered."""

from collwise.algorithms.mixed_radix import STAGES, best_stages, stages_of
from collwise.algorithms.reductions import from_root_on, register_exchange

register_exchange(
    "reduce/mixed_radix",
    "groups of several sizes divide the vector in some stages, hand whole ones over in the others",
    "the sum of (k − 2 + λ)·t0 over stages of k ranks, twice where divided, and combining",
    stages_of,
    source=("vandeGeijn1991 §5", "Ruefenacht2017"),
    order=from_root_on,
    choices=best_stages,
    parameters={"stages": STAGES},
    segmented=True,
)
