"""Recursive halving in the order of the ranks: neighbours first, each keeps every other block.

The first half of halving and doubling [vandeGeijn1991 §3.3].  Ranks that lie side by side exchange
first, so that operators need not commute.  A rank keeps the blocks of those ranks with which it
will still exchange.  Ranks beyond the largest 2^d hand their vectors over and get one block.
"""

from collwise.algorithms.mixed_radix import MAX_SCATTERED
from collwise.algorithms.reductions import halved, register_exchange

register_exchange(
    "reduce_scatter_block/recursive_halving",
    "exchange and combine halves with a neighbour in every direction",
    "dα + (p − 1)/p·n(β + γ) for p = 2^d",
    halved,
    source=("vandeGeijn1991 §3.3", "Thakur2005"),
    segmented=True,
    choices=lambda problem, _: [{}] if problem.ranks <= MAX_SCATTERED else [],
    usual=True,
)
