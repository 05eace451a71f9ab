"""Sessions that measure, plan, race and learn; simulations that are compared.  Results are data.

Read `outcomes` (a task, what was decided about it), then `agenda` (what is raced first), `session`
(on MPI), `saving` (what becomes of an older profile), `occurred` (tasks from a program's calls),
`race_records` (races read from documents), `comparison` (of two documents), `simulations` (no MPI),
`exported_rules` (races as rules for an MPI library) and `export_check` (whether they are in force).
"""
