"""Runs schedules on the MPI that is there.  With `comm`, the only room that imports mpi4py."""
