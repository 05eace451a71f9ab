"""Writes schedules in other tools' formats, reads one of these, writes rules for MPI libraries.

`export_rows` lists what each rank does, from a schedule's rows.  One module writes each format:
`goal_writer` (GOAL, for LogGOPSim), `time_independent_trace` (for SimGrid's SMPI) and
`chrome_trace` (for Perfetto).  `goal_reader` reads GOAL into rows, and times them.

`selection_rules` says what a rule for an MPI library is, and which of its algorithms are ours.  One
module writes each library's: `openmpi_rules`, `mpich_selection` and `intel_adjust`.
"""
