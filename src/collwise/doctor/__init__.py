"""Checks of what collwise needs on a machine, with a remedy where something is wrong: `checks`.

The script `_MPI_PROBE` asks MPI what only MPI knows, in processes of its own.
"""
