"""Sessions that measure, plan and race; comparisons of simulations.  Results are data.

Read `outcomes` (a task, and what a race decided about it), then `agenda` (which races come first),
`session` (runs races on MPI),
`scanning` (what shows a default to be bad, from races that `scan_races` runs), `saving` (merges a
new profile with an older one), `occurred` (tasks from a program's calls), `race_records` (races
read from documents), `comparison` (of two documents), `grid` and `grid_results` (races on one
network after another), `simulations` (without MPI), `inspection` (what the library does, with names
from `known_shapes`), `exported_rules` (races as rules for an MPI library) and `export_check`
(whether such rules are in force).
"""
