"""Writes schedules in other tools' formats, reads one of these, writes rules for MPI libraries.

`export_rows` lists what each rank does, from a schedule's rows.  One module writes each format:
`goal_writer` (GOAL, for LogGOPSim), `time_independent_trace` (for SimGrid's SMPI) and
`chrome_trace` (for Perfetto).  `goal_reader` reads GOAL into rows, and times them.

`selection_rules` says what a rule for an MPI library is, and which versions read it.  One
module writes the rules of each library: `openmpi_rules`, `mpich_selection` and `intel_adjust`.
"""
