"""Timing on real MPI.

`clock` is common to all ranks; `measuring` times the probes of `measure`, and operators, for a
profile; `workloads` are the buffers of a race, `race_harness` runs it.
"""
