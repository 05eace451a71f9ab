"""Chooses a schedule.  It is given its scoring function and never executes anything.

Read in this order: `operator_order` (what is legal), `choose` (candidates, times, the choice),
`plans` (what comes out), `race_lookup` (what measured races add).
"""
