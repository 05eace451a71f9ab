"""[vandeGeijn1991]: combining on hypercubes; the iPSC/860 is simulated."""

from collwise.papers.exhibits import Paper
from collwise.papers.vandegeijn1991 import cube_claims, cube_exhibits

PAPER = Paper(
    key="vandegeijn1991",
    title="LAPACK Working Note 29: On Global Combine Operations",
    about="van de Geijn, 1991. Its theory is computed exactly, and compared with simulated"
    " schedules; its measurements on the Intel iPSC/860 are simulated with the paper's parameters.",
    claims=cube_claims.CLAIMS,
    exhibits=cube_exhibits.EXHIBITS,
)
