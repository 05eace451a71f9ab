"""Timing on real MPI.

`clock` is common to all ranks; `mpi_prober` times the probes of `measure`, and `measuring` runs
them, and operators, for a profile; `workloads` are the buffers of a race, `race_harness` runs it.
"""
