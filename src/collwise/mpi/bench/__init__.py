"""Timing on real MPI.

`clock` is common to all ranks, and `placing` finds where they are.  `measuring` times messages and
operators for a profile.  `workloads` has the buffers of a race and `race_harness` runs it.
Two kinds of competitors: `bare_sends` sends a schedule's messages by plain calls of mpi4py, and
`compositions` makes other collectives that together do the same.
"""
