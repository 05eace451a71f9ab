"""[Hambrusch1998]: allgathervs from s of p ranks, mostly simulated on a Paragon's mesh."""

from collwise.papers.exhibits import Paper
from collwise.papers.hambrusch1998 import moving_claims, source_exhibits, spreading_claims

PAPER = Paper(
    key="hambrusch1998",
    title="Scalable S-to-P Broadcasting on Message-Passing MPPs",
    about="Hambrusch, Khokhar, Liu, 1998. The scan has lost the curves and most numbers: judged is"
    " who is faster, and how curves bend. Every figure is a simulation on the preset “paragon”,"
    " whose ports and links carry one message at a time.",
    claims=sorted(
        (*spreading_claims.CLAIMS, *moving_claims.CLAIMS),
        key=lambda claim: int(claim.id[3:].rstrip("abcdefghi")),
    ),
    exhibits=source_exhibits.EXHIBITS,
)
