"""Exact theory of the postal model [BarNoyKipnis1994], [Bruck1996] §2.

The unit of time is t0: a message keeps its sender busy for 1 and is received λ >= 1 after the send
began.  A rank sends one message and receives one message at a time.  Trees also exist for λ < 1, as
LogP allows: a message may arrive before its sender can send the next one.

Read in this order: `growth` (how many ranks are reached, and when), `alpha` (where to split ranks),
`table` (the look-up table, the triangles of the "Christmas tree"), `lambda_tree` (the trees
themselves), `census` (combining on all ranks).  They all call `_scaled`, which counts in integers.
All values are exact (`int`, `Fraction`), except irrational limits, which are floats.
"""

from collwise.model.postal._scaled import SMALLEST_LATENCY, Grade
from collwise.model.postal.alpha import alpha_intersection, alpha_range, partitions, split
from collwise.model.postal.census import (
    CensusRound,
    census_rounds,
    census_time,
    deficiencies,
    delay_receive_growth,
    delay_receive_time,
    delay_send_growth,
    delay_send_time,
)
from collwise.model.postal.growth import break_even, broadcast_time, growth, reached, scaling
from collwise.model.postal.lambda_tree import (
    Edge,
    GradedTree,
    doubling,
    greedy_tree,
    tree_time,
)
from collwise.model.postal.table import (
    AlphaTable,
    AsymptoticTriangle,
    Corner,
    Triangle,
    alpha_table,
    asymptotic_corners,
    corners,
)

__all__ = [
    "SMALLEST_LATENCY",
    "AlphaTable",
    "AsymptoticTriangle",
    "CensusRound",
    "Corner",
    "Edge",
    "Grade",
    "GradedTree",
    "Triangle",
    "alpha_intersection",
    "alpha_range",
    "alpha_table",
    "asymptotic_corners",
    "break_even",
    "broadcast_time",
    "census_rounds",
    "census_time",
    "corners",
    "deficiencies",
    "delay_receive_growth",
    "delay_receive_time",
    "delay_send_growth",
    "delay_send_time",
    "doubling",
    "greedy_tree",
    "growth",
    "partitions",
    "reached",
    "scaling",
    "split",
    "tree_time",
]
