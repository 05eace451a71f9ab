"""The planner chooses a schedule.  Callers pass its scoring function; it executes nothing.

Read in this order: `operator_order` (legal orders of combining), `candidates` (simulates candidates
in the order of the lower bounds from `relaxed`), `choose` (picks the fastest), `plans` (the
result), `by_hand` (algorithms that users choose), `shortlist` (candidates worth a race),
`race_lookup` (applies measured races; `Decision.explained` of `comm` shows users why), `worth`
(what further races would save).
"""
