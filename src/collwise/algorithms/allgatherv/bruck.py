"""Bruck's allgather, in ⌈log2 p⌉ rounds for any p.

In round k rank i receives all data that rank i + 2^k holds and rank i lacks.  After the message
from rank i + d, rank i holds the contributions of ranks i … i + 2d − 1, modulo p.  The algorithm is
the census for latency 1.
"""

from collwise.algorithms.allgatherv.census import Census
from collwise.algorithms.allgatherv.spreading import register_allgatherv

register_allgatherv(
    "bruck",
    "in round k rank i gets all that rank i + 2^k holds",
    ("Bruck1997",),
    "⌈log2 p⌉ rounds",
    lambda problem, _: Census(problem, 1),
    alike=True,
    usual=True,
)
