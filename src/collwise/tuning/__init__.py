"""Sessions that measure, plan, race and learn; simulations that are compared.  Results are data.

Read `outcomes` (a task, what was decided about it), then `agenda` (what is raced first), `session`
(on MPI), `scanning` (whether the library's defaults are bad), `saving` (what becomes of an older
profile), `occurred` (tasks from a program's calls), `race_records` (races read from documents),
`comparison` (of two documents) and `simulations` (no MPI).
"""
