"""Versions 2, 3 and 4 of van de Geijn: exchange whole vectors, halves, or some of both.

Version 2 is recursive doubling, and Version 3 recursive halving and doubling.  Version 4 follows a
strategy, which says in which of the d directions vectors are halved.  Theorem 1 says which strategy
is best if costs are a straight line; otherwise dynamic programming finds it
[vandeGeijn1991 §3, §4, §6].
"""

from collwise.algorithms.reductions import (
    CHOSEN_STRATEGY,
    by_strategy,
    halved,
    register_exchange,
    whole_vectors,
)

register_exchange(
    "allreduce/recursive_doubling",
    "exchange whole vectors with a neighbour in every direction",
    "d(α + nβ + nγ) for p = 2^d",
    whole_vectors,
    source=("vandeGeijn1991 §3.2",),
    usual=True,
)
register_exchange(
    "allreduce/halving_doubling",
    "exchange and combine halves in every direction, then put them together again",
    "2dα + (p − 1)/p·n(2β + γ) for p = 2^d",
    halved,
    source=("vandeGeijn1991 §3.3", "Thakur2005"),
    segmented=True,
    usual=True,
)
register_exchange(
    "allreduce/hybrid",
    "halve in some directions, exchange whole vectors in the others",
    "T(S, n, d) for p = 2^d",
    by_strategy,
    source=("vandeGeijn1991 §3.4", "vandeGeijn1991 Theorem 1"),
    segmented=True,
    **CHOSEN_STRATEGY,
    searched=False,
)
