"""Timing on real MPI.

`clock` is common to all ranks; `placing` finds where they are; `measuring` times the probes of
`measure`, and operators, for a profile.  `workloads` are the buffers of a race, `race_harness` runs
it, and `bare_sends` is a competitor: a schedule's messages sent as a program does by hand.
"""
