"""What a schedule is, as plain data, and the building blocks of its programs.

Read in this order: `collectives` and `operators` (the two tables), `problem` (what is solved),
`operations` (what one rank does), `program` (what all ranks do: a schedule).  Then what programs
are made of: `trees`, `data_movement`, `reduction` and `exchange` for vectors, `grids` and
`deliveries` for s-to-p broadcasts.  `dependencies` and `evaluation` say what a list of operations
needs, and what it computes.
"""
