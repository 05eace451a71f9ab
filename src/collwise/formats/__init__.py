"""Writes schedules in the formats of other tools, and reads one of these formats.

`export_rows` lists what each rank does, from a schedule's rows.  One module writes each format:
`goal_writer` (GOAL, for LogGOPSim), `time_independent_trace` (for SimGrid's SMPI) and
`chrome_trace` (for Perfetto).  `goal_reader` reads GOAL into rows, and times them.
"""
