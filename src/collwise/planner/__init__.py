"""Chooses a schedule.  It is given its scoring function and never executes anything.

Read in this order: `operator_order` (what is legal), `candidates` (what is tried, in the order of
the lower bounds from `relaxed`), `choose` (the choice), `plans` (what comes out), `by_hand`
(algorithms that users choose), `shortlist` (what is worth a race), `race_lookup` (what measured
races add; `Decision.explained` of `comm` says it to users), `worth` (what more of them would).
"""
