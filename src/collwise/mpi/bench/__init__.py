"""Timing on real MPI.

`clock` is common to all ranks, and `placing` finds where they are.  `measuring` times messages and
operators for a profile.  `workloads` has the buffers of a race and `race_harness` runs it.
`bare_sends` is a competitor: a schedule's messages, sent by plain calls of mpi4py.
"""
