"""The MPI library's own algorithms, found, switched and inspected.  Read in this order:

`tool_interface`  control variables, by MPI's tool information interface (MPI_T)
`own_algorithms`  which algorithms the library says it has, by collective and form
`switching`       calls of the library's collectives by one of them, and nothing else changed
`fingerprints`    what a library's collective does, seen from outside: under any library
`description`     a program that prints what the library says of itself, for files of rules

MPICH reads a variable of the whole process at each call: it is written, the library is called, and
the variable gets its former value.  Open MPI reads the variables of blocking collectives when a
communicator is made: a duplicate keeps its algorithms for life.  A library that tells of its
algorithms in another way is a `_Naming` in `own_algorithms`.
"""
