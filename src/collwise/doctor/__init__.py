"""Checks of what collwise needs on a machine, each with a remedy: `checks`.

The script `_MPI_PROBE` asks MPI what only MPI knows, in a process of its own.
"""
