"""Sessions that measure, plan, race and learn; comparisons of simulations.  Results are data.

Read `outcomes` (a task, and what a race decided about it), then `agenda` (which races come first),
`session` (runs races on MPI), `saving` (merges a new profile with an older one), `occurred` (tasks
from a program's calls), `race_records` (races read from documents), `comparison` (of two
documents), `simulations` (without MPI) and `inspection` (what the library does, with names from
`known_shapes`).
"""
