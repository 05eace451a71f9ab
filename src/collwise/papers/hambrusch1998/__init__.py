"""[Hambrusch1998]: s-to-p broadcasting on a Paragon's mesh, in simulation.

The paper's curves cannot be read from the scan; what is checked is who is faster and how curves
bend, claim by claim.  The paper's claim about MPI (§6: over MPI every algorithm loses 2 to 5 %
against the native library) cannot be simulated; `benchmarks/overhead.py` measures its counterpart.
"""

from collections.abc import Sequence

from collwise.papers.findings import Claim
from collwise.papers.hambrusch1998 import five_algorithms, moving

CLAIMS: Sequence[Claim] = (
    five_algorithms.brute_force,
    five_algorithms.growth,
    five_algorithms.distributions,
    five_algorithms.wrong_dimension,
    five_algorithms.more_sources,
    five_algorithms.shapes,
    moving.repositioning,
    moving.partitioning,
    moving.ideal_places,
    moving.placement,
    five_algorithms.lengths,
)
"""The claims that simulation can check, from H-c1 to H-c11."""
