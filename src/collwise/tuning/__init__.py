"""Sessions that measure, plan, race and learn; simulations that are compared.  Results are data.

Read outcomes (a task, what was decided about it), then session (on MPI), then simulations (no MPI).
"""
