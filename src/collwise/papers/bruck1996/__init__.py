"""[Bruck1996]: the postal model, its broadcast trees and the census; the Delta is simulated."""

from collwise.papers.bruck1996 import delta_claims, postal_claims, postal_exhibits
from collwise.papers.exhibits import Paper

PAPER = Paper(
    key="bruck1996",
    title="On the Design and Implementation of Broadcast and Global Combine Operations Using the"
    " Postal Model",
    about="Bruck, De Coster, Dewulf, Ho, Lauwereins, 1996. What the paper derives is computed"
    " exactly. What it measured on the Intel Delta is simulated on the preset “delta”, whose notes"
    " say which of its numbers are estimates; with -n it is also measured on the machine at hand.",
    claims=(*postal_claims.CLAIMS, *delta_claims.CLAIMS),
    exhibits=postal_exhibits.EXHIBITS,
)
