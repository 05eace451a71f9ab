"""Timing on real MPI.

`clock` is common to all ranks, `mpi_prober` times the probes of `measure`, `combine_timing` times
operators, `measuring` runs both for a profile; `workloads` are the buffers of a race and
`race_harness` runs it.
"""
