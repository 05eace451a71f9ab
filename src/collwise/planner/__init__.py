"""The planner chooses a schedule and executes nothing.

A candidate's time is its simulated completion, unless the caller passes another `score`.  Read in
this order: `operator_order` (legal orders of combining), `candidates` (simulates candidates, those
with the least estimates from `relaxed` first), `choose` (picks the fastest), `plans` (the result),
`by_hand` (algorithms that users choose), `shortlist` (candidates to race), `own_times` (predicts
those of the MPI library's own algorithms that are ours, too), `race_lookup` (applies measured
races; `Decision.explained` of `comm` shows users why), `worth` (the seconds that further races
would save).
"""
