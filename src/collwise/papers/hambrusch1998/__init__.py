"""Hambrusch, Khokhar, Liu: s-to-p broadcasting on a Paragon's mesh, in simulation.

The paper's curves cannot be read from the scan; what is checked is who is faster and how curves
bend, claim by claim.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from collwise.papers.findings import Finding
from collwise.papers.hambrusch1998.five_algorithms import (
    brute_force,
    distributions,
    growth,
    lengths,
    more_sources,
    shapes,
    wrong_dimension,
)
from collwise.papers.hambrusch1998.moving import (
    ideal_places,
    partitioning,
    placement,
    repositioning,
)

Claim: TypeAlias = Callable[[], Finding]

CLAIMS: Sequence[Claim] = (
    brute_force,
    growth,
    distributions,
    wrong_dimension,
    more_sources,
    shapes,
    repositioning,
    partitioning,
    ideal_places,
    placement,
    lengths,
)
"""All claims that simulation can check; H-c12 is about MPI, see `benchmarks/overhead.py`."""
