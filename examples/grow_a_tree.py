"""1. Pick a λ, and grow the tree that informs 13 ranks soonest.

In the postal model a message keeps its sender busy for one step (t0), and is received λ steps after
its sending began.  How many ranks can know it after t steps?
"""

from fractions import Fraction

import collwise as cw

lam, ranks = Fraction(5, 2), 13

for t in range(9):
    print(f"after {t} t0: {cw.postal.reached(t, lam)} ranks")

best = cw.postal.broadcast_time(ranks, lam)
print(
    f"\nno tree informs {ranks} ranks before {float(best)} t0.  Greedily, who is free first sends:"
)
for edge in cw.postal.greedy_tree(ranks, lam):
    sent, received = float(edge.sent), float(edge.received)
    print(f"  at {sent} rank {edge.parent} sends to {edge.child}, which has it at {received}")
