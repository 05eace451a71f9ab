"""Checks of what collwise needs on a machine, each with a remedy: `checks`.

What only MPI knows is asked in `_MPI_PROBE`.
"""
