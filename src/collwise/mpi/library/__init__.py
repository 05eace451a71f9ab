"""The MPI library's own algorithms, found, switched and inspected.  Read in this order:

`tool_interface`  control variables, by MPI's tool information interface (MPI_T)
`own_algorithms`  which algorithms the library says it has, by collective and form
`switching`       runs one call of a collective by one of the library's own algorithms
`fingerprints`    how any library's collectives combine and broadcast, seen from outside
`description`     a program that prints what the library says of itself, for files of rules

MPICH reads a variable of the whole process at each call: collwise writes the variable, calls the
library, and restores the variable.  Open MPI reads the variables of blocking collectives when a
communicator is made: a duplicate keeps its algorithms for life.  A library whose variables have
other names needs another `_Naming` in `own_algorithms`.
"""
