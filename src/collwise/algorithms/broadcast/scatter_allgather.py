"""Scatter, then allgather in ⌈log2 p⌉ rounds of doubling size.

The algorithm is for long messages on many ranks, whose number need not be a power of two.  The
allgather has the rounds of Bruck's allgather (dissemination), and works in place.
"""

from collwise.algorithms.broadcast.scatter_collect import register_scatter_collect
from collwise.schedule.data_movement import Step, Steps


def steps(ranks: int) -> Steps:
    """The allgather's steps at distances 1, 2, 4, …: each doubles the pieces that a rank has."""
    powers = [1 << k for k in range((ranks - 1).bit_length())]
    return tuple(Step(d, d, min(2 * d, ranks)) for d in powers)


register_scatter_collect(
    "scatter_allgather",
    "scatter down a binomial tree, collect in ⌈log2 p⌉ rounds of doubling size",
    "recurrence over 2⌈log2 p⌉ rounds; about 2d·α + 2(p − 1)/p·nβ for p = 2^d",
    ("vandeGeijn1991 §3", "Barnett1994", "Bruck1997"),
    steps,
    most=1 << 16,
)
