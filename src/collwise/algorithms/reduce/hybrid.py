"""Reduce by halving and gathering, and the hybrids of that with a tree [vandeGeijn1991 §5].

In each direction of a cube a strategy says whether one of two ranks hands its whole vector over, or
both combine halves, which are gathered at the end.
"""

from collwise.algorithms.reductions import (
    CHOSEN_STRATEGY,
    by_strategy,
    from_root_on,
    halved,
    register_exchange,
)

register_exchange(
    "reduce/halving_gather",
    "halve the vectors in every direction, combine halves, gather them at the root",
    "2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
    halved,
    source=("vandeGeijn1991 §5",),
    order=from_root_on,
    segmented=True,
    usual=True,
)
register_exchange(
    "reduce/hybrid",
    "halve in some directions, hand whole vectors over in the others",
    "T(S, n, d) for p = 2^d",
    by_strategy,
    source=("vandeGeijn1991 §5", "vandeGeijn1991 Theorem 1"),
    order=from_root_on,
    segmented=True,
    **CHOSEN_STRATEGY,
    searched=False,
)
